/* Calibration: one session whose outputs are the wanted values. ONNX Runtime computes a sample on all cores, then the
 * values are looked at on all cores, tensor by tensor. */
#include "flow/calibrate.h"

#include <stdatomic.h>

#include "calib/cache.h"
#include "flow/oracle_internal.h"
#include "flow/ranges.h"
#include "graph/type.h"
#include "os/file.h"
#include "os/path.h"
#include "os/sys.h"
#include "os/thread.h"

struct run {
    struct wml_ctx *cx;
    struct wml_session *session;
    struct wml_samples *samples;
    struct wml_calib *calib;
    size_t *output; /* per wanted value: number of the session's output */
    size_t n;
    unsigned threads;
    double run_ms;
};

/* What the cores share while they go from tensor to tensor. */
struct look {
    struct run *r;
    struct wml_tensor_view *view; /* of one sample, by wanted value */
    size_t sample;
    struct wml_range *range;      /* by wanted value: where the results go, after the last sample */
    atomic_size_t next;
};

static void look_at(void *arg)
{
    struct look *l = arg;
    for (size_t i; (i = atomic_fetch_add(&l->next, 1)) < l->r->n;) {
        if (l->range) {
            l->range[i] = wml_calib_range(l->r->calib, i);
            continue;
        }
        const struct wml_tensor_view *v = &l->view[i];
        unsigned bits = wml_dtype_info((int)v->dtype)->bits;
        if (v->data && bits && wml_calib_wants(l->r->calib, i)) /* one core at a time has the tensor: one state is enough */
            wml_calib_observe(l->r->calib, 0, i, l->sample, v->data, v->bytes / (bits / 8));
    }
}

static void on_all_cores(struct look *l, struct wml_arena *arena)
{
    struct wml_thread **thread = WML_NEW_ARRAY(arena, struct wml_thread *, l->r->threads);
    for (unsigned t = 1; t < l->r->threads; t++)
        (void)wml_thread_start(&thread[t], look_at, l, NULL); /* the first does the work of one that cannot start */
    look_at(l);
    for (unsigned t = 1; t < l->r->threads; t++) wml_thread_join(thread[t]);
}

static bool look(struct run *r, struct wml_run *run, size_t sample, struct wml_arena *arena, struct wml_err *err)
{
    struct look l = {.r = r, .view = WML_NEW_ARRAY(arena, struct wml_tensor_view, r->n + 1), .sample = sample};
    for (size_t i = 0; i < r->n; i++)
        if (!wml_run_output(run, r->output[i], &l.view[i], err)) return false;
    on_all_cores(&l, arena);
    return true;
}

static void finish(struct run *r, struct wml_value *const *want, struct wml_arena *arena, struct wml_ranges *out)
{
    struct look l = {.r = r, .range = WML_NEW_ARRAY(arena, struct wml_range, r->n + 1)};
    on_all_cores(&l, arena);
    for (size_t i = 0; i < r->n; i++) wml_ranges_put(out, want[i]->name, l.range[i]);
}

static bool one_sample(struct run *r, size_t i, struct wml_err *err)
{
    struct wml_feed feed = {0};
    struct wml_run *run = NULL;
    struct wml_arena arena = {0};
    bool ok = wml_samples_make(r->samples, i, &feed, err) && wml_run_new(r->session, feed.view.at, feed.view.len, &run, err);
    uint64_t start = wml_now_ns();
    ok = ok && wml_run_watched(run, 0, err);
    r->run_ms += (double)(wml_now_ns() - start) / 1e6;
    ok = ok && look(r, run, i, &arena, err);
    wml_run_free(run);
    wml_feed_release(&feed);
    wml_arena_release(&arena);
    return ok;
}

static bool run_samples(struct run *r, const struct wml_range_method *method, struct wml_err *err)
{
    size_t n = wml_samples_count(r->samples), done = 0;
    while (wml_calib_pass(r->calib))
        for (size_t i = 0; i < n; i++) {
            wml_note_progress(r->cx, "Calibrating", method->name, done++, n * method->passes, "samples");
            if (!wml_check_cancel(r->cx, err)) return false;
            if (!one_sample(r, i, err)) {
                wml_wrap(err, "calibration, sample %zu", i + 1);
                return wml_hint(err, "--input-shape NAME=... gives open sizes the model can run with; --calibration-data gives real inputs");
            }
        }
    return true;
}

static bool open_session(struct run *r, struct wml_model *m, struct wml_value *const *want, struct wml_err *err)
{
    struct wml_buf skeleton = {0}, dir = {0};
    struct wml_str folder;
    struct wml_ort *ort;
    struct wml_skeleton_opts opts = {.also = want, .n_also = r->n};
    struct wml_session_opts session = {0};
    bool ok = wml_ort_open(r->cx, &ort, err) && wml_onnx_skeleton(m, &opts, &skeleton, &folder, err);
    if (ok) {
        struct wml_model_source source = wml_flow_source(&skeleton, folder, &dir);
        ok = wml_session_open(ort, &source, &session, &r->session, err);
    }
    wml_buf_release(&skeleton);
    wml_buf_release(&dir);
    return ok;
}

/* Which output each wanted value is. */
static bool find_outputs(struct run *r, struct wml_value *const *want, struct wml_err *err)
{
    struct wml_map by_name = {0};
    size_t n = 0;
    const struct wml_io *io = wml_session_outputs(r->session, &n);
    bool ok = true;
    for (size_t i = 0; i < n; i++) wml_map_put(&by_name, wml_str(io[i].name), (void *)(uintptr_t)(i + 1));
    for (size_t i = 0; ok && i < r->n; i++) {
        size_t at = (size_t)(uintptr_t)wml_map_get(&by_name, want[i]->name);
        if (!at) ok = wml_fail(err, WML_E_INTERNAL, "ONNX Runtime does not show value '%.*s'", WML_ARG(want[i]->name));
        r->output[i] = at - 1;
        if (ok) wml_calib_add(r->calib, want[i]->name, io[at - 1].dtype == WML_F16 ? WML_F16 : WML_F32);
    }
    wml_map_release(&by_name);
    return ok;
}

static bool measure(struct wml_ctx *cx, struct wml_model *m, struct wml_value *const *want, size_t n_wanted,
                    const struct wml_range_method *method, const struct wml_calibration_spec *spec, struct wml_calibration *out,
                    struct wml_err *err)
{
    struct wml_arena arena = {0};
    struct wml_samples_spec samples = spec->samples;
    struct run r = {.cx = cx, .n = n_wanted, .threads = wml_cpu_count()};
    size_t n_inputs = 0;
    r.output = WML_NEW_ARRAY(&arena, size_t, n_wanted + 1);
    wml_model_ranges(m, &arena, &samples.feed);
    r.calib = wml_calib_new(method, &spec->range, 1, err);
    bool ok = r.calib && open_session(&r, m, want, err) && find_outputs(&r, want, err);
    const struct wml_io *input = ok ? wml_session_inputs(r.session, &n_inputs) : NULL;
    ok = ok && wml_samples_open(&samples, input, n_inputs, &r.samples, err) && run_samples(&r, method, err);
    if (ok) {
        finish(&r, want, &arena, &out->ranges);
        out->samples = wml_samples_count(r.samples);
        out->random = wml_samples_are_random(r.samples);
        snprintf(out->data, sizeof out->data, "%s", wml_samples_text(r.samples));
        out->run_ms = r.run_ms;
    }
    wml_samples_close(r.samples);
    wml_session_close(r.session);
    wml_calib_free(r.calib);
    wml_arena_release(&arena);
    return ok;
}

bool wml_flow_calibrate(struct wml_ctx *cx, struct wml_model *m, struct wml_value *const *want, size_t n_wanted,
                        const struct wml_calibration_spec *spec, struct wml_calibration *out, struct wml_err *err)
{
    uint64_t start = wml_now_ns();
    const struct wml_range_method *method = wml_range_method_find(spec->method);
    *out = (struct wml_calibration){0};
    if (!method) return wml_fail(err, WML_E_USAGE, "no calibration method is called '%s'", spec->method);
    bool ok;
    if (spec->cache && wml_file_exists(spec->cache)) {
        ok = wml_ranges_load(spec->cache, method, &out->ranges, err);
        out->from_cache = true;
        snprintf(out->data, sizeof out->data, "ranges in %.*s", WML_ARG(wml_path_name(wml_str(spec->cache))));
    } else {
        ok = measure(cx, m, want, n_wanted, method, spec, out, err) &&
             (!spec->cache || wml_ranges_save(&out->ranges, method, spec->cache, err));
    }
    out->ms = (double)(wml_now_ns() - start) / 1e6;
    if (!ok) wml_calibration_release(out);
    return ok;
}

void wml_calibration_release(struct wml_calibration *c)
{
    wml_ranges_release(&c->ranges);
    *c = (struct wml_calibration){0};
}
