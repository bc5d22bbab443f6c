/* Calibration: one session whose outputs are the wanted values. ONNX Runtime computes a sample on all cores, then the
 * values are looked at on all cores, tensor by tensor. */
#include "flow/calibrate.h"

#include <stdatomic.h>

#include "calib/cache.h"
#include "flow/oracle.h"
#include "flow/ranges.h"
#include "graph/edit.h"
#include "onnx/onnx.h"
#include "os/file.h"
#include "os/path.h"
#include "os/thread.h"

struct run {
    struct wml_ctx *cx;
    struct wml_session *session;
    struct wml_samples *samples;
    struct wml_calib *calib;
    size_t *output; /* per wanted value: number of the session's output; lean: of its minimum */
    bool lean;      /* the session shows extents, not values: they need no memory */
    size_t *high;           /* lean: number of the maximum */
    struct wml_str *shown, *most; /* their names */
    struct wml_arena *arena;
    size_t n;
    unsigned threads;
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

/* The two numbers stand for all of the value. An empty one has none. */
static bool both_ends(struct run *r, struct wml_run *run, size_t i, struct wml_arena *arena, struct wml_tensor_view *out, struct wml_err *err)
{
    struct wml_tensor_view low, high;
    if (!wml_run_output(run, r->output[i], &low, err) || !wml_run_output(run, r->high[i], &high, err)) return false;
    float *ends = WML_NEW_ARRAY(arena, float, 2);
    memcpy(&ends[0], low.data, sizeof ends[0]);
    memcpy(&ends[1], high.data, sizeof ends[1]);
    *out = (struct wml_tensor_view){.dtype = WML_F32, .data = ends, .bytes = 2 * sizeof *ends, .is_tensor = true};
    return true;
}

static bool look(struct run *r, struct wml_run *run, size_t sample, struct wml_arena *arena, struct wml_err *err)
{
    struct look l = {.r = r, .view = WML_NEW_ARRAY(arena, struct wml_tensor_view, r->n + 1), .sample = sample};
    for (size_t i = 0; i < r->n; i++)
        if (!(r->lean ? both_ends(r, run, i, arena, &l.view[i], err) : wml_run_output(run, r->output[i], &l.view[i], err))) return false;
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
    ok = ok && wml_run_watched(run, 0, err) && look(r, run, i, &arena, err);
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
                return wml_hint(err, wml_samples_are_random(r->samples)
                                         ? "--input-shape NAME=... gives open sizes the model can run with; --calibration-data gives real inputs"
                                         : "`winml inspect -m MODEL` lists the inputs and their shapes");
            }
        }
    return true;
}

static bool open_model(struct run *r, struct wml_model *m, struct wml_value *const *show, size_t n, struct wml_err *err)
{
    struct wml_skeleton_opts part = {.also = show, .n_also = n};
    struct wml_session_opts opts = {.no_memory_plan = true};
    return wml_flow_session(r->cx, m, &part, &opts, &r->session, err);
}

static struct wml_value *reduced(struct wml_graph *g, const char *op, struct wml_value *v)
{
    struct wml_node *n = wml_graph_append(g, "", op);
    wml_node_add_input(n, v);
    wml_attr_set_int(n, "keepdims", 0);
    return wml_node_add_output(n, wml_arena_fmt(&g->model->arena, "%.*s_%s", WML_ARG(v->name), op));
}

/* The model gets nodes for the minimum and the maximum of every value, for as long as the session is made. */
static bool open_lean(struct run *r, struct wml_model *m, struct wml_value *const *want, struct wml_err *err)
{
    struct wml_value **show = WML_NEW_ARRAY(r->arena, struct wml_value *, 2 * r->n + 1);
    /* ONNX Runtime works from the last node that nothing reads to the first: in this order each value is reduced where it
     * is made, and its memory is free again. The other way round all of them would live to the end. */
    for (size_t i = r->n; i-- > 0;) {
        show[2 * i] = reduced(m->graph, "ReduceMin", want[i]);
        show[2 * i + 1] = reduced(m->graph, "ReduceMax", want[i]);
        r->shown[i] = show[2 * i]->name;
        r->most[i] = show[2 * i + 1]->name;
    }
    bool ok = open_model(r, m, show, 2 * r->n, err);
    for (size_t i = 0; i < 2 * r->n; i++) wml_node_remove(show[i]->def);
    return ok;
}

static bool open_session(struct run *r, struct wml_model *m, struct wml_value *const *want, struct wml_err *err)
{
    for (size_t i = 0; i < r->n; i++) r->shown[i] = want[i]->name;
    return r->lean ? open_lean(r, m, want, err) : open_model(r, m, want, r->n, err);
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
        size_t at = (size_t)(uintptr_t)wml_map_get(&by_name, r->shown[i]), most = (size_t)(uintptr_t)wml_map_get(&by_name, r->most[i]);
        if (!at || (r->lean && !most)) ok = wml_fail(err, WML_E_INTERNAL, "ONNX Runtime does not show value '%.*s'", WML_ARG(want[i]->name));
        r->output[i] = at - 1;
        r->high[i] = most - 1;
        if (ok) wml_calib_add(r->calib, want[i]->name, io[at - 1].dtype == WML_F16 ? WML_F16 : WML_F32);
    }
    wml_map_release(&by_name);
    return ok;
}

/* NaN and infinities hide what else there is, so the values themselves must be looked at. */
static bool is_clear(const struct run *r)
{
    for (size_t i = 0; r->lean && i < r->n; i++) {
        struct wml_extent e = wml_calib_extent(r->calib, i);
        if (e.nan || e.inf) return false;
    }
    return true;
}

static bool try(struct run *r, struct wml_model *m, struct wml_value *const *want, const struct wml_range_method *method,
                const struct wml_calibration_spec *spec, struct wml_calibration *out, bool *clear, struct wml_err *err)
{
    struct wml_samples_spec samples = spec->samples;
    size_t n_inputs = 0;
    wml_model_ranges(m, r->arena, &samples.feed);
    r->calib = wml_calib_new(method, &spec->range, 1, err);
    bool ok = r->calib && open_session(r, m, want, err) && find_outputs(r, want, err);
    const struct wml_io *input = ok ? wml_session_inputs(r->session, &n_inputs) : NULL;
    ok = ok && wml_samples_open(&samples, input, n_inputs, &r->samples, err) && run_samples(r, method, err);
    *clear = ok && is_clear(r);
    if (*clear) {
        finish(r, want, r->arena, &out->ranges);
        out->samples = wml_samples_count(r->samples);
        out->random = wml_samples_are_random(r->samples);
        snprintf(out->data, sizeof out->data, "%s", wml_samples_text(r->samples));
    }
    wml_samples_close(r->samples);
    wml_session_close(r->session);
    wml_calib_free(r->calib);
    r->samples = NULL;
    r->session = NULL;
    r->calib = NULL;
    return ok;
}

static bool measure(struct wml_ctx *cx, struct wml_model *m, struct wml_value *const *want, size_t n_wanted,
                    const struct wml_range_method *method, const struct wml_calibration_spec *spec, struct wml_calibration *out,
                    struct wml_err *err)
{
    struct wml_arena arena = {0};
    struct run r = {.cx = cx, .n = n_wanted, .threads = wml_cpu_count(), .arena = &arena, .lean = method->extremes};
    bool clear = false;
    r.output = WML_NEW_ARRAY(&arena, size_t, n_wanted + 1);
    r.high = WML_NEW_ARRAY(&arena, size_t, n_wanted + 1);
    r.shown = WML_NEW_ARRAY(&arena, struct wml_str, n_wanted + 1);
    r.most = WML_NEW_ARRAY(&arena, struct wml_str, n_wanted + 1);
    for (size_t i = 0; i < n_wanted; i++) r.lean = r.lean && wml_value_elem(want[i]) == WML_F32;
    bool ok = try(&r, m, want, method, spec, out, &clear, err);
    if (ok && !clear) {
        r.lean = false;
        ok = try(&r, m, want, method, spec, out, &clear, err);
    }
    wml_arena_release(&arena);
    return ok;
}

bool wml_flow_calibrate(struct wml_ctx *cx, struct wml_model *m, struct wml_value *const *want, size_t n_wanted,
                        const struct wml_calibration_spec *spec, struct wml_calibration *out, struct wml_err *err)
{
    const struct wml_range_method *method = wml_range_method_find(spec->method);
    *out = (struct wml_calibration){0};
    if (!method) return wml_fail(err, WML_E_USAGE, "no calibration method is called '%s'", spec->method);
    bool ok;
    if (spec->cache && wml_file_exists(spec->cache)) {
        ok = wml_ranges_load(spec->cache, method, &out->ranges, err) || wml_hint(err, "without this file the ranges are measured, and written to it");
        out->from_cache = true;
        snprintf(out->data, sizeof out->data, "ranges in %.*s", WML_ARG(wml_path_name(wml_str(spec->cache))));
    } else {
        ok = measure(cx, m, want, n_wanted, method, spec, out, err) &&
             (!spec->cache || wml_ranges_save(&out->ranges, method, spec->cache, err));
    }
    if (!ok) wml_calibration_release(out);
    return ok;
}

void wml_calibration_release(struct wml_calibration *c)
{
    wml_ranges_release(&c->ranges);
    *c = (struct wml_calibration){0};
}
