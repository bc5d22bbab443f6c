/* The child's side: reads the request, runs one job, renames the reply into place, and only then tears
 * down. The process ends with _exit, so no library gets a second chance to crash in its destructors. */
#include "os/file.h"
#include "os/spawn.h"
#include "os/sys.h"
#include "os/thread.h"
#include "worker/wire.h"

enum { REQUEST_MAX = 256 << 20 };

struct channel {
    intptr_t pipe;
    bool open;
    struct wml_mutex *lock; /* monitors tell progress from their own threads */
    uint64_t last_progress;
};

static void say(struct channel *c, struct wml_buf *line)
{
    wml_buf_char(line, '\n');
    if (c->open) {
        wml_mutex_lock(c->lock);
        c->open = wml_channel_write(c->pipe, wml_buf_view(line));
        wml_mutex_unlock(c->lock);
    }
    wml_buf_release(line);
}

static void say_word(struct channel *c, const char *key, const char *word)
{
    struct wml_buf line = {0};
    struct wml_json j = {.out = &line};
    wml_json_begin(&j, '{');
    wml_json_key(&j, key);
    wml_json_put_cstr(&j, word);
    wml_json_end(&j, '}');
    say(c, &line);
}

static void send_log(void *sink, enum wml_log_level level, const char *msg)
{
    struct wml_buf line = {0};
    struct wml_json j = {.out = &line};
    wml_json_begin(&j, '{');
    wml_json_key(&j, "log");
    wml_json_put_cstr(&j, msg);
    wml_json_key(&j, "level");
    wml_json_put_int(&j, level);
    wml_json_end(&j, '}');
    say(sink, &line);
}

static void send_progress(void *sink, const struct wml_progress *p)
{
    struct channel *c = sink;
    struct wml_buf line = {0};
    struct wml_json j = {.out = &line};
    uint64_t now = wml_now_ns();
    /* The parent draws ten times a second at most: more lines would only cost the run. */
    if (p && p->done && p->done != p->total && now - c->last_progress < 50000000) return;
    c->last_progress = now;
    wml_json_begin(&j, '{');
    wml_json_key(&j, "progress");
    wml_json_put_cstr(&j, p ? p->stage : NULL);
    if (p) {
        wml_json_key(&j, "item");
        wml_json_put_cstr(&j, p->item);
        wml_json_key(&j, "done");
        wml_json_put_uint(&j, p->done);
        wml_json_key(&j, "total");
        wml_json_put_uint(&j, p->total);
        wml_json_key(&j, "unit");
        wml_json_put_cstr(&j, p->unit);
    }
    wml_json_end(&j, '}');
    say(c, &line);
}

void wml_job_phase(struct wml_job_io *io, const char *phase)
{
    if (io->channel) say_word(io->channel, "phase", phase);
}

void wml_job_event(struct wml_job_io *io, struct wml_str object)
{
    struct wml_buf line = {0};
    if (!io->channel) return;
    wml_buf_fmt(&line, "{\"event\":");
    wml_buf_str(&line, object);
    wml_buf_char(&line, '}');
    say(io->channel, &line);
}

static bool write_reply(const char *path, const struct wml_job_io *io, const struct wml_err *err)
{
    struct wml_buf envelope = {0};
    struct wml_err failed = {0};
    wml_wire_reply(&envelope, wml_buf_view(&io->reply), err);
    bool ok = wml_file_write(path, wml_buf_view(&envelope), &failed);
    if (!ok) fprintf(stderr, "%s\n", failed.msg);
    wml_buf_release(&envelope);
    return ok;
}

bool wml_job_hear(struct wml_job_io *io, struct wml_buf *line)
{
    wml_buf_clear(line);
    return io->channel && wml_stdin_line(line, REQUEST_MAX, NULL);
}

/* talk: more lines follow the request. */
static bool run_job(struct wml_ctx *cx, const struct wml_job *job, struct channel *channel, bool talk,
                    struct wml_err *err)
{
    struct wml_buf text = {0};
    struct wml_json_doc *doc = NULL, *request = NULL;
    struct wml_job_io io = {.cx = cx, .channel = channel};
    if (talk ? !wml_stdin_line(&text, REQUEST_MAX, NULL) : !wml_stdin_read(&text, REQUEST_MAX, err)) return false;
    if (!wml_json_parse(wml_buf_view(&text), &doc, err)) return wml_wrap(err, "request of the parent");
    const struct wml_json_val *root = wml_json_root(doc);
    struct wml_buf reply = {0}, cache = {0}, inner = {0};
    wml_buf_str(&reply, wml_json_get_str(root, "reply"));
    wml_buf_str(&cache, wml_json_get_str(root, "cache"));
    wml_json_print(wml_json_get(root, "request"), &inner);
    if (cache.len) cx->cache_dir = wml_buf_text(&cache);
    cx->level = (enum wml_log_level)wml_json_get_int(root, "level", WML_LOG_WARN);
    cx->show_native = wml_json_get_bool(root, "native", false);
    if (!reply.len) return wml_fail(err, WML_E_USAGE, "this command is for winml's own use");
    bool ok = wml_json_parse(wml_buf_view(&inner), &request, err) && job->run(&io, request, err);
    bool kept = write_reply(wml_buf_text(&reply), &io, ok ? NULL : err);
    if (kept) {
        struct wml_buf line = {0};
        wml_buf_cstr(&line, "{\"replied\":true}");
        say(channel, &line);
        wml_job_phase(&io, "teardown");
        if (job->teardown && io.state) job->teardown(io.state);
    }
    /* Buffers stay: the process ends in a moment. */
    return kept;
}

int wml_worker_main(struct wml_ctx *cx, int argc, char **argv)
{
    struct wml_err err = {0};
    struct channel channel = {.lock = wml_mutex_new()};
    const struct wml_job *job = argc > 2 ? wml_job_find(argv[2]) : NULL;
    channel.open = wml_channel_open(&channel.pipe);
    if (!job || !channel.open) {
        fprintf(stderr, "Error: this command is for winml's own use\n");
        return 2;
    }
    cx->sink = &channel;
    cx->log = send_log;
    cx->progress = send_progress;
    bool ok = run_job(cx, job, &channel, argc > 3 && strcmp(argv[3], "talk") == 0, &err);
    if (!ok && err.code) fprintf(stderr, "Error: %s\n", err.msg);
    wml_exit_now(ok ? 0 : 1);
}
