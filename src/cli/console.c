/* cli/console.c - colour rules, messages, log lines, and the result on stdout. */
#include "cli/console.h"

#include <errno.h>

#include "os/sys.h"
#include "os/thread.h"

static bool env_is(const char *name, const char *a, const char *b)
{
    struct wml_buf v = {0};
    bool yes = wml_env(name, &v) && (wml_str_ieq(wml_buf_view(&v), wml_str(a)) ||
                                     wml_str_ieq(wml_buf_view(&v), wml_str(b)));
    wml_buf_release(&v);
    return yes;
}

bool wml_console_colour(bool is_terminal)
{
    if (wml_env_is_set("NO_COLOR")) return false;
    if (wml_env_is_set("FORCE_COLOR") && !env_is("FORCE_COLOR", "0", "false")) return true;
    return is_terminal && !env_is("TERM", "dumb", "unknown") && !wml_env_is_set("CI");
}

void wml_console_open(struct wml_console *c, bool quiet, bool json)
{
    bool terminal = wml_term_is(2);
    *c = (struct wml_console){.quiet = quiet, .json = json};
    c->err_colour = wml_console_colour(terminal);
    c->live = terminal && !quiet && !env_is("TERM", "dumb", "unknown") && !wml_env_is_set("CI");
    c->lock = wml_mutex_new();
    c->wake = wml_cond_new();
}

void wml_console_close(struct wml_console *c)
{
    wml_console_progress(c, NULL);
    if (c->ticker) {
        wml_mutex_lock(c->lock);
        c->stop = true;
        wml_cond_signal(c->wake);
        wml_mutex_unlock(c->lock);
        wml_thread_join(c->ticker);
    }
    wml_cond_free(c->wake);
    wml_mutex_free(c->lock);
    *c = (struct wml_console){0};
}

/* Puts a finished line above the progress line, which the next redraw brings back. */
static void put_line(struct wml_console *c, struct wml_buf *line)
{
    wml_mutex_lock(c->lock);
    if (c->drawn) wml_term_write(2, WML_STR("\r\x1b[2K"));
    c->drawn = false;
    wml_term_write(2, wml_buf_view(line));
    wml_mutex_unlock(c->lock);
    wml_buf_release(line);
}

void wml_console_say(struct wml_console *c, const char *code, const char *word, const char *text)
{
    struct wml_buf line = {0};
    if (word && c->err_colour && code)
        wml_buf_fmt(&line, "\x1b[%sm%s\x1b[0m ", code, word);
    else if (word)
        wml_buf_fmt(&line, "%s ", word);
    wml_buf_fmt(&line, "%s\n", text);
    put_line(c, &line);
}

void wml_console_log(void *sink, enum wml_log_level level, const char *msg)
{
    static const char *const names[] = {"ERROR", "WARNING", "INFO", "DEBUG"};
    static const char *const codes[] = {"31", "33", "36", "2"};
    struct wml_console *c = sink;
    size_t i = WML_MIN((size_t)level, WML_COUNT(names) - 1);
    if (c->quiet && level != WML_LOG_ERROR) return;
    char now[WML_TIME_TEXT];
    wml_time_stamp(now); /* "20260131-120000" */
    struct wml_buf line = {0};
    wml_buf_fmt(&line, "%s[%.2s:%.2s:%.2s ", c->err_colour ? "\x1b[2m" : "", now + 9, now + 11, now + 13);
    if (c->err_colour)
        wml_buf_fmt(&line, "\x1b[0m\x1b[%sm%-7s\x1b[0m\x1b[2m winml]\x1b[0m %s\n", codes[i], names[i], msg);
    else
        wml_buf_fmt(&line, "%-7s winml] %s\n", names[i], msg);
    put_line(c, &line);
}

bool wml_console_result(struct wml_str bytes, bool *broken, struct wml_err *err)
{
    *broken = false;
    errno = 0;
    if (bytes.len == 0 || (fwrite(bytes.ptr, 1, bytes.len, stdout) == bytes.len && fflush(stdout) == 0))
        return true;
    int code = errno;
    *broken = code == EPIPE;
    wml_fail(err, WML_E_IO, "Cannot write standard output: %s", code ? strerror(code) : "short write");
    return code == ENOSPC ? wml_hint(err, "free some space on the disk that it is redirected to") : false;
}
