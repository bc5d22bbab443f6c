/* The child: it opens the model on the target once, and runs it on every sample. */
#include "flow/run/internal.h"

#include "os/file.h"
#include "os/path.h"
#include "text/npy.h"
#include "worker/feed.h"
#include "worker/target.h"
#include "worker/worker.h"

static const char *numbered(struct wml_run_call *c, const char *folder, const char *what, size_t i)
{
    return wml_path_in(&c->arena, folder, wml_arena_fmt(&c->arena, "%s-%zu.npz", what, i).ptr);
}

static void write_request(struct wml_run_call *c, const char *folder, struct wml_buf *out)
{
    struct wml_json j = {.out = out};
    wml_json_begin(&j, '{');
    wml_json_key(&j, "model");
    wml_json_put_path(&j, c->path);
    struct wml_target_spec target = c->args->target;
    target.exact = true; /* what is shown are the model's answers; `perf` measures what an EP makes of it */
    wml_target_spec_put(&j, &target);
    wml_json_key(&j, "level");
    wml_json_put_cstr(&j, wml_opt_level_name(WML_LEVEL_ALL));
    wml_json_key(&j, "runs");
    wml_json_begin(&j, '[');
    for (size_t i = 0; i < c->work.sample.len; i++) {
        struct wml_feed_spec feed = {.data = c->args->file ? c->args->file : numbered(c, folder, "in", i)};
        wml_json_begin(&j, '{');
        wml_json_key(&j, "feed");
        wml_feed_spec_put(&j, &feed);
        wml_json_key(&j, "outputs");
        wml_json_put_cstr(&j, numbered(c, folder, "out", i));
        wml_json_end(&j, '}');
    }
    wml_json_end(&j, ']');
    wml_json_end(&j, '}');
}

/* Every input of the model must have become something. */
static bool save_samples(struct wml_run_call *c, const char *folder, struct wml_err *err)
{
    for (size_t i = 0; i < c->work.sample.len; i++) {
        const struct wml_npys *s = &c->work.sample.at[i];
        for (size_t k = 0; k < c->work.n_inputs; k++)
            if (!wml_npys_find(s, c->work.input[k].name)) {
                wml_fail(err, WML_E_UNSUPPORTED, "%s makes nothing for the model's input '%.*s'", c->task->name, WML_ARG(c->work.input[k].name));
                return wml_hint(err, "another task fits this model; or give it arrays, without --task");
            }
        if (!wml_npz_save(numbered(c, folder, "in", i), s->v.at, s->v.len, err)) return false;
    }
    return true;
}

/* "/tmp/winml-run-1/in-0.npz: input 'x' ...": what is ours says nothing to the user. */
static void hide_file(struct wml_err *err, const char *folder)
{
    const char *rest = strstr(err->msg, ".npz: ");
    if (rest && wml_str_starts(wml_str(err->msg), folder)) memmove(err->msg, rest + 6, strlen(rest + 6) + 1);
}

static bool ask(struct wml_run_call *c, const char *folder, struct wml_err *err)
{
    enum { QUIET_MS = 60000 };
    struct wml_buf request = {0};
    struct wml_worker_reply reply = {0};
    write_request(c, folder, &request);
    struct wml_worker_call call = {.job = "infer", .request = wml_buf_view(&request), .quiet_ms = QUIET_MS};
    bool ok = wml_worker_call(c->cx, &call, &reply, err);
    if (!ok && (err->code == WML_E_CHILD || err->code == WML_E_RUNTIME))
        err->code = strcmp(reply.phase, "run") == 0 ? WML_E_RUN : WML_E_LOAD;
    if (!ok) hide_file(err, folder);
    if (ok && reply.salvaged) wml_log(c->cx, WML_LOG_WARN, "the child process %s; its result was kept", reply.ended);
    if (ok) {
        c->reply = reply.json;
        reply.json = NULL;
        c->run_ms = wml_json_get_num(wml_json_root(c->reply), "run_ms", 0);
        struct wml_str note = wml_json_get_str(wml_json_root(c->reply), "level_note");
        if (note.len) wml_log(c->cx, WML_LOG_WARN, "%.*s", WML_ARG(note));
    }
    wml_worker_reply_release(&reply);
    wml_buf_release(&request);
    return ok;
}

bool wml_run_infer(struct wml_run_call *c, struct wml_err *err)
{
    if (!wml_dir_temp(NULL, "winml-run-", &c->folder, err)) return false;
    const char *dir = wml_buf_text(&c->folder);
    c->work.answer = wml_xcalloc(c->work.sample.len + 1, sizeof *c->work.answer);
    bool ok = (c->args->file || save_samples(c, dir, err)) && ask(c, dir, err);
    for (size_t i = 0; ok && i < c->work.sample.len; i++) ok = wml_npy_load(numbered(c, dir, "out", i), &c->work.answer[i], err);
    return ok;
}
