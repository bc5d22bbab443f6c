/* The timed pass: one job, in this process on the CPU EP, in a child on any other. If the child dies while it
 * runs, the samples it left behind are the result, and the error says how it ended. */
#include <inttypes.h>

#include "flow/perf/internal.h"
#include "os/file.h"
#include "os/path.h"
#include "worker/target.h"

/* The options that make the EP of this row write its trace. */
static void put_target(struct wml_perf_run *r, struct wml_json *j, const char *csv)
{
    struct wml_target_spec spec = r->target;
    if (csv && r->ep && r->ep->trace_file_key) {
        struct wml_pair *option = WML_NEW_ARRAY(&r->arena, struct wml_pair, spec.n_options + 2);
        size_t n = 0;
        for (size_t i = 0; i < spec.n_options; i++)
            if (strcmp(spec.option[i].key, r->ep->trace_file_key) != 0 && strcmp(spec.option[i].key, r->ep->trace_level_key) != 0)
                option[n++] = spec.option[i];
        /* "detailed" also for the basic trace: the EP's own basic level has no operators. "optrace" adds what the
         * vendor's viewer needs. */
        option[n++] = (struct wml_pair){r->ep->trace_level_key, r->trace.viewer ? "optrace" : "detailed"};
        option[n++] = (struct wml_pair){r->ep->trace_file_key, csv};
        spec.option = option;
        spec.n_options = n;
    }
    wml_target_spec_put(j, &spec);
}

void wml_perf_request(struct wml_perf_run *r, const char *samples, const char *csv, bool cut, const char *profile,
                      struct wml_buf *out)
{
    const struct wml_perf_args *a = r->args;
    struct wml_json j = {.out = out};
    bool traced = profile != NULL;
    wml_json_begin(&j, '{');
    wml_json_key(&j, "model");
    wml_json_put_path(&j, r->running);
    put_target(r, &j, csv);
    wml_json_key(&j, "level");
    struct wml_str level = traced ? wml_json_get_str(wml_json_root(r->reply), "level") : WML_NO_STR;
    wml_json_put_str(&j, level.len ? level : wml_str(a->level)); /* the one that worked */
    wml_json_key(&j, "threads");
    wml_json_put_int(&j, a->threads);
    wml_json_key(&j, "feed");
    wml_feed_spec_put(&j, &r->feed);
    wml_json_key(&j, "iterations");
    wml_json_put_uint(&j, traced ? a->trace_iterations : a->iterations);
    wml_json_key(&j, "warmup");
    wml_json_put_uint(&j, traced ? WML_MIN(a->warmup, 1) : a->warmup);
    wml_json_key(&j, "duration_ms");
    wml_json_put_num(&j, traced ? 0 : a->duration_s * 1000);
    wml_json_key(&j, "monitor");
    wml_json_put_bool(&j, a->monitor && !traced);
    wml_json_key(&j, "live");
    wml_json_put_bool(&j, a->live && !traced);
    if (csv && cut) {
        wml_json_key(&j, "csv");
        wml_json_put_cstr(&j, csv);
    }
    if (samples) {
        wml_json_key(&j, "samples");
        wml_json_put_cstr(&j, samples);
    }
    if (profile) {
        wml_json_key(&j, "profile");
        wml_json_put_cstr(&j, profile);
    }
    wml_json_end(&j, '}');
}

static void take_samples(struct wml_perf_run *r)
{
    const struct wml_json_val *root = wml_json_root(r->reply), *v;
    struct wml_json_iter it = {0};
    struct wml_str key;
    while (wml_json_next(wml_json_get(root, "samples_ms"), &it, &key, &v)) WML_PUSH(&r->sample, wml_json_num(v, 0));
    it = (struct wml_json_iter){0};
    while (wml_json_next(wml_json_get(root, "warmup_ms"), &it, &key, &v)) WML_PUSH(&r->warmup, wml_json_num(v, 0));
    r->interrupted = wml_json_get_bool(root, "interrupted", false);
}

static void take_file(struct wml_perf_run *r, const char *path)
{
    struct wml_buf bytes = {0};
    struct wml_err ignored = {0};
    if (wml_file_read(path, UINT64_C(1) << 30, &bytes, &ignored))
        for (size_t i = 0; i + sizeof(double) <= bytes.len; i += sizeof(double)) {
            double v;
            memcpy(&v, bytes.ptr + i, sizeof v);
            WML_PUSH(&r->sample, v);
        }
    wml_buf_release(&bytes);
}

/* What a dead child left: the samples, and in FILE.json the facts. */
static void take_left(struct wml_perf_run *r, const char *path)
{
    struct wml_err ignored = {0};
    take_file(r, path);
    if (r->sample.len && !r->reply) wml_json_load(wml_arena_fmt(&r->arena, "%s.json", path).ptr, &r->reply, &ignored);
}

/* Share of nodes that the EP took. */
static void find_share(struct wml_perf_run *r)
{
    const struct wml_json_val *list = wml_json_get(wml_json_root(r->reply), "placement"), *e;
    struct wml_str ep = wml_json_get_str(wml_perf_target(r), "ep"), key;
    struct wml_json_iter it = {0};
    double on = 0, all = 0;
    r->on_ep_percent = -1;
    while (wml_json_next(list, &it, &key, &e)) {
        double n = wml_json_get_num(e, "nodes", 0);
        all += n;
        if (wml_str_eq(wml_json_get_str(e, "ep"), ep)) on += n;
    }
    if (all > 0) r->on_ep_percent = 100 * on / all;
}

static bool is_auto(const char *word)
{
    return !word || strcmp(word, "auto") == 0;
}

/* Nobody named a target, and the one that was found cannot take the model. */
static bool may_try_cpu(const struct wml_perf_run *r, const struct wml_worker_reply *reply, const struct wml_err *err)
{
    const struct wml_target_spec *t = &r->target;
    bool early = strcmp(reply->phase, "load") == 0 || strcmp(reply->phase, "resolve") == 0;
    return (err->code == WML_E_LOAD || (err->code == WML_E_CHILD && early)) && is_auto(t->ep) && is_auto(t->device) && !t->n_options && reply->end != WML_CHILD_CANCELLED;
}

static bool call_bench(struct wml_perf_run *r, const char *samples, struct wml_worker_reply *reply, struct wml_err *err)
{
    struct wml_buf request = {0};
    wml_perf_request(r, samples, NULL, false, NULL, &request);
    struct wml_worker_call call = {.job = "bench", .request = wml_buf_view(&request), .timeout_ms = r->args->timeout_ms,
                                   .in_process = wml_target_is_plain_cpu(&r->target)};
    bool ok = wml_worker_call(r->cx, &call, reply, err);
    wml_buf_release(&request);
    return ok;
}

static void note_end(struct wml_perf_run *r, const struct wml_worker_reply *reply, bool ok)
{
    if (reply->end != WML_CHILD_OK) r->salvaged = wml_arena_cstr(&r->arena, wml_str(reply->ended));
    if (ok && reply->salvaged)
        wml_perf_warn(r, wml_arena_fmt(&r->arena, "the child process %s; all results were there before", reply->ended));
    if (!ok && r->sample.len) {
        struct wml_str of = r->args->duration_s > 0 ? WML_STR("") : wml_arena_fmt(&r->arena, " of %zu", r->args->iterations);
        wml_perf_warn(r, wml_arena_fmt(&r->arena, "salvaged %zu%.*s runs: the child process %s", r->sample.len, WML_ARG(of),
                                       r->salvaged ? r->salvaged : "failed"));
        r->interrupted = true;
    }
}

bool wml_perf_bench(struct wml_perf_run *r, struct wml_err *err)
{
    struct wml_buf dir = {0}, samples = {0};
    struct wml_worker_reply reply = {0};
    bool ok = wml_dir_temp(NULL, "winml-perf-", &dir, err);
    if (!ok) goto done;
    wml_path_join(&samples, wml_buf_view(&dir), WML_STR("samples"));
    ok = call_bench(r, wml_buf_text(&samples), &reply, err);
    if (!ok && may_try_cpu(r, &reply, err)) {
        struct wml_str ep = wml_json_get_str(wml_json_get(wml_json_root(reply.json), "target"), "ep");
        wml_perf_warn(r, wml_arena_fmt(&r->arena, "%.*s, chosen automatically, cannot take the model: %s; the CPU EP is used instead",
                                       WML_ARG(ep.len ? ep : WML_STR("the EP")), err->msg));
        wml_worker_reply_release(&reply);
        reply = (struct wml_worker_reply){0};
        *err = (struct wml_err){0};
        r->target.ep = "cpu";
        r->target.device = NULL;
        r->ep = NULL;
        ok = call_bench(r, wml_buf_text(&samples), &reply, err);
    }
    r->reply = reply.json;
    reply.json = NULL;
    if (r->reply) take_samples(r);
    if (!ok && !r->sample.len) take_left(r, wml_buf_text(&samples));
    find_share(r);
    note_end(r, &reply, ok);
done:
    wml_worker_reply_release(&reply);
    if (dir.len) wml_dir_remove(wml_buf_text(&dir));
    wml_buf_release(&dir);
    wml_buf_release(&samples);
    return ok;
}
