/* cli/console.h - everything that appears on stderr, and the one write to stdout. Log lines, warnings and
 * the live progress line share stderr, so they share a lock: a line is never torn, and a message moves
 * the progress line down instead of writing over it. Any thread may log. */
#ifndef WML_CLI_CONSOLE_H
#define WML_CLI_CONSOLE_H

#include "base/ctx.h"

struct wml_thread;
struct wml_mutex;
struct wml_cond;

struct wml_console {
    bool quiet;
    bool json;       /* the result is JSON: no stage lines on a stderr that is no terminal */
    bool err_colour;
    bool live;       /* stderr can redraw a line */
    struct wml_mutex *lock;
    struct wml_cond *wake;
    struct wml_thread *ticker; /* redraws while a stage is silent */
    bool stop;
    /* the stage on display */
    bool active, drawn;
    char stage[48], item[160], unit[24];
    uint64_t done, total, first_done, begun_ns, noted_ns, drawn_ns;
};

/* The rules of NO_COLOR, FORCE_COLOR, TERM and CI for one stream. */
bool wml_console_colour(bool is_terminal);

void wml_console_open(struct wml_console *c, bool quiet, bool json);
void wml_console_close(struct wml_console *c);
/* One message: a coloured word, the text, a newline. code: ANSI colour such as "31". */
void wml_console_say(struct wml_console *c, const char *code, const char *word, const char *text);
/* The sinks of struct wml_ctx; sink is the console. */
void wml_console_log(void *sink, enum wml_log_level level, const char *msg);
void wml_console_progress(void *sink, const struct wml_progress *p);

/* The progress line for people, at most `width` columns. now_ns from wml_now_ns. For tests as well. */
void wml_console_line(const struct wml_console *c, uint64_t now_ns, unsigned width, struct wml_buf *out);

/* All bytes to stdout. False: *broken tells a closed pipe from a failure, which err describes. */
bool wml_console_result(struct wml_str bytes, bool *broken, struct wml_err *err);

#endif
