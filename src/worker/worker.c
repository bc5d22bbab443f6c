/* The parent's side: starts the child, hands its log lines and progress on, and judges the end. A whole
 * reply counts whatever came after it; without one the error names phase, cause and last words. */
#include "worker/worker.h"

#include <inttypes.h>
#include "os/file.h"
#include "os/path.h"
#include "os/spawn.h"
#include "os/sys.h"
#include "worker/wire.h"

enum { TEARDOWN_MS = 10000, CHANNEL_LINE_MAX = 1 << 20 };

struct listener {
    struct wml_ctx *cx;
    const struct wml_worker_call *call;
    struct wml_worker_reply *reply;
    bool replied, timed;
};

static void hear_progress(struct wml_ctx *cx, const struct wml_json_val *v)
{
    struct wml_buf stage = {0}, item = {0}, unit = {0};
    if (wml_json_is_null(wml_json_get(v, "progress"))) {
        wml_end_progress(cx);
        return;
    }
    wml_buf_str(&stage, wml_json_get_str(v, "progress"));
    wml_buf_str(&item, wml_json_get_str(v, "item"));
    wml_buf_str(&unit, wml_json_get_str(v, "unit"));
    wml_note_progress(cx, wml_buf_text(&stage), item.len ? wml_buf_text(&item) : NULL,
                      (uint64_t)wml_json_get_int(v, "done", 0), (uint64_t)wml_json_get_int(v, "total", 0),
                      unit.len ? wml_buf_text(&unit) : NULL);
    wml_buf_release(&stage);
    wml_buf_release(&item);
    wml_buf_release(&unit);
}

static void tell_quiet(void *arg, uint64_t ms)
{
    const struct listener *l = arg;
    const char *phase = l->reply->phase[0] ? l->reply->phase : "start";
    wml_log(l->cx, WML_LOG_WARN, "the child process (%s) has said nothing for %" PRIu64 " s, in phase %s", l->call->job, ms / 1000, phase);
}

static bool tell_more(void *arg, struct wml_buf *out)
{
    const struct listener *l = arg;
    return l->call->more(l->call->arg, out);
}

static uint64_t hear(void *arg, struct wml_str line)
{
    struct listener *l = arg;
    struct wml_json_doc *doc = NULL;
    struct wml_err ignored = {0};
    uint64_t limit = 0;
    if (line.len > CHANNEL_LINE_MAX || !wml_json_parse(line, &doc, &ignored)) return 0;
    const struct wml_json_val *v = wml_json_root(doc), *phase = wml_json_get(v, "phase");
    if (wml_json_is_string(phase)) {
        struct wml_str s = wml_json_str(phase);
        snprintf(l->reply->phase, sizeof l->reply->phase, "%.*s", WML_ARG(s));
    } else if (wml_json_is_string(wml_json_get(v, "log"))) {
        struct wml_str s = wml_json_get_str(v, "log");
        wml_log(l->cx, (enum wml_log_level)wml_json_get_int(v, "level", WML_LOG_INFO), "%.*s", WML_ARG(s));
    } else if (wml_json_is_object(wml_json_get(v, "event"))) {
        if (l->call->on_event) l->call->on_event(l->call->arg, wml_json_get(v, "event"));
    } else if (wml_json_get_bool(v, "replied", false)) {
        l->replied = true;
        limit = TEARDOWN_MS;
    } else {
        hear_progress(l->cx, v);
    }
    wml_json_free(doc);
    return limit;
}

static void write_request(const struct wml_ctx *cx, const struct wml_worker_call *call, const char *reply,
                          struct wml_buf *out)
{
    struct wml_json j = {.out = out};
    wml_json_begin(&j, '{');
    wml_json_key(&j, "reply");
    wml_json_put_cstr(&j, reply);
    wml_json_key(&j, "cache");
    wml_json_put_cstr(&j, cx->cache_dir);
    wml_json_key(&j, "level");
    wml_json_put_int(&j, cx->level);
    wml_json_key(&j, "native");
    wml_json_put_bool(&j, cx->show_native);
    wml_json_key(&j, "request");
    wml_json_put_raw(&j, call->request);
    wml_json_end(&j, '}');
}

/* The last line that says something, without the blanks around it. */
static struct wml_str last_line(const struct wml_buf *log)
{
    struct wml_str rest = wml_str_trim(wml_buf_view(log));
    size_t at = wml_str_rfind(rest, '\n');
    struct wml_str line = at == SIZE_MAX ? rest : wml_str_trim(wml_str_sub(rest, at + 1, rest.len));
    return wml_str_sub(line, 0, 300);
}

static void describe_end(const struct wml_child_result *r, const struct listener *l,
                         const struct wml_worker_call *call, struct wml_worker_reply *reply)
{
    static const enum wml_child_end ends[] = {
        [WML_CHILD_RUNNING] = WML_CHILD_EXITED, [WML_CHILD_EXIT] = WML_CHILD_EXITED,
        [WML_CHILD_SIGNAL] = WML_CHILD_SIGNALLED, [WML_CHILD_TIMEOUT] = WML_CHILD_TIMED_OUT,
        [WML_CHILD_CANCEL] = WML_CHILD_CANCELLED};
    struct wml_buf how = {0};
    const char *phase = reply->phase[0] ? reply->phase : "start";
    reply->end = r->how == WML_CHILD_EXIT && r->status == 0 ? WML_CHILD_OK : ends[r->how];
    reply->wall_ms = r->wall_ms;
    reply->peak_rss = r->peak_rss;
    reply->status = r->status;
    wml_child_describe(r, &how);
    snprintf(reply->name, sizeof reply->name, "%s", wml_buf_text(&how));
    wml_buf_clear(&how);
    if (reply->end == WML_CHILD_OK) goto done;
    if (reply->end == WML_CHILD_TIMED_OUT) {
        uint64_t ms = l->replied ? TEARDOWN_MS : call->timeout_ms;
        wml_buf_fmt(&how, "did not end within %.6g s and was stopped during %s", (double)ms / 1000, phase);
    } else if (reply->end == WML_CHILD_CANCELLED) {
        wml_buf_fmt(&how, "was stopped by Ctrl-C during %s", phase);
    } else {
        wml_buf_cstr(&how, reply->end == WML_CHILD_SIGNALLED ? "was killed by " : "ended with ");
        wml_child_describe(r, &how);
        wml_buf_fmt(&how, " during %s", phase);
    }
    snprintf(reply->ended, sizeof reply->ended, "%s", wml_buf_text(&how));
done:
    wml_buf_release(&how);
}

/* By the phase it died in. */
static enum wml_code code_of(const char *phase)
{
    static const char *const loading[] = {"load", "register", "config", "model", "tokenizer"};
    static const char *const running[] = {"run", "warmup", "timed"};
    for (size_t i = 0; i < WML_COUNT(loading); i++)
        if (strcmp(phase, loading[i]) == 0) return WML_E_LOAD;
    for (size_t i = 0; i < WML_COUNT(running); i++)
        if (strcmp(phase, running[i]) == 0) return WML_E_RUN;
    return WML_E_CHILD;
}

/* What a child that left no reply means for the caller. */
static bool no_reply(const struct wml_worker_call *call, const struct wml_worker_reply *reply,
                     struct wml_err *err)
{
    enum wml_code code = code_of(reply->phase);
    struct wml_str words = last_line(&reply->log);
    if (reply->end == WML_CHILD_CANCELLED) code = WML_E_CANCELLED;
    else if (reply->end == WML_CHILD_TIMED_OUT) code = WML_E_TIMEOUT;
    const char *ended = reply->end == WML_CHILD_OK ? "ended without a result" : reply->ended;
    wml_fail(err, code, "the child process (%s) %s%s%.*s", call->job, ended,
             words.len ? "; its last words: " : "", WML_ARG(words));
    if (code == WML_E_TIMEOUT) return wml_hint(err, "give it more time with --timeout SECONDS, 0 for no limit");
    if (code == WML_E_CANCELLED) return false;
    return wml_hint(err, "the crash is in the EP or its driver; -v shows all that it said");
}

static bool run_in_process(struct wml_ctx *cx, const struct wml_worker_call *call,
                           struct wml_worker_reply *reply, struct wml_err *err)
{
    const struct wml_job *job = wml_job_find(call->job);
    struct wml_job_io io = {.cx = cx};
    struct wml_json_doc *request = NULL;
    uint64_t start = wml_now_ns();
    bool ok = wml_json_parse(call->request, &request, err) && job->run(&io, request, err);
    if (job->teardown && io.state) job->teardown(io.state);
    wml_json_free(request);
    if (io.reply.len) {
        struct wml_err bad = {0};
        if (!wml_json_parse(wml_buf_view(&io.reply), &reply->json, &bad) && ok) {
            *err = bad;
            ok = false;
        }
    } else if (ok) {
        ok = wml_json_parse(WML_STR("{}"), &reply->json, err);
    }
    wml_buf_release(&io.reply);
    reply->wall_ms = (double)(wml_now_ns() - start) / 1e6;
    return ok;
}

static bool run_child(struct wml_ctx *cx, const struct wml_worker_call *call, const char *dir,
                      struct wml_worker_reply *reply, struct wml_err *err)
{
    bool ok = false;
    struct wml_buf file = {0}, request = {0}, envelope = {0};
    struct wml_child_result result = {0};
    struct wml_err unread = {0};
    struct listener l = {.cx = cx, .call = call, .reply = reply};
    const char *argv[] = {cx->program, WML_WORKER_COMMAND, call->job, call->more ? "talk" : NULL, NULL};
    wml_path_join(&file, wml_str(dir), WML_STR("reply.json"));
    write_request(cx, call, wml_buf_text(&file), &request);
    if (call->more) wml_buf_char(&request, '\n');
    struct wml_spawn s = {.program = cx->program, .argv = argv, .input = wml_buf_view(&request),
                          .dir = call->dir, .channel = true, .echo_output = cx->show_native};
    struct wml_child_hooks hooks = {.arg = &l, .on_line = hear, .more = call->more ? tell_more : NULL, .cancel = cx->cancel,
                                    .timeout_ms = call->timeout_ms, .on_quiet = tell_quiet, .quiet_ms = call->quiet_ms};
    if (!wml_child_run(&s, &hooks, &result, err)) goto done;
    describe_end(&result, &l, call, reply);
    reply->log = result.output;
    result.output = (struct wml_buf){0};
    if (!wml_file_read(wml_buf_text(&file), UINT64_C(1) << 30, &envelope, &unread)) {
        no_reply(call, reply, err);
        goto done;
    }
    reply->salvaged = reply->end != WML_CHILD_OK;
    ok = wml_wire_read(wml_buf_view(&envelope), &reply->json, err);
done:
    wml_child_result_release(&result);
    wml_buf_release(&file);
    wml_buf_release(&request);
    wml_buf_release(&envelope);
    return ok;
}

bool wml_worker_call(struct wml_ctx *cx, const struct wml_worker_call *call,
                     struct wml_worker_reply *reply, struct wml_err *err)
{
    struct wml_buf temp = {0}, dir = {0};
    bool ok = false;
    *reply = (struct wml_worker_reply){0};
    if (!wml_job_find(call->job)) return wml_fail(err, WML_E_INTERNAL, "no job '%s'", call->job);
    if (call->in_process) return run_in_process(cx, call, reply, err);
    if (!cx->program) return wml_fail(err, WML_E_INTERNAL, "the path of this program is not known");
    /* The reply always lies in a folder of its own, so an old one can never be taken for it. */
    if (!wml_dir_temp(NULL, "winml-job-", &temp, err)) goto done;
    if (!wml_path_absolute(&dir, wml_buf_view(&temp), err)) goto done;
    ok = run_child(cx, call, wml_buf_text(&dir), reply, err);
done:
    if (temp.len) wml_dir_remove(wml_buf_text(&temp));
    wml_buf_release(&temp);
    wml_buf_release(&dir);
    return ok;
}

void wml_worker_reply_release(struct wml_worker_reply *reply)
{
    wml_json_free(reply->json);
    wml_buf_release(&reply->log);
    *reply = (struct wml_worker_reply){0};
}
