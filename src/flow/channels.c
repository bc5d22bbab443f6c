/* Sums and peaks per channel, added up sample by sample. The cores take values in turn. */
#include "flow/channels.h"

#include <math.h>

#include "flow/oracle.h"
#include "flow/ranges.h"
#include "onnx/onnx.h"
#include "os/crew.h"
#include "os/thread.h"

struct run {
    struct wml_ctx *cx;
    struct wml_session *session;
    struct wml_samples *samples;
    struct wml_channels *c;
    size_t n, *output; /* of each: number of the session's output */
};

struct look { /* what the cores share while they look at one sample */
    struct run *r;
    struct wml_tensor_view *view;
};

/* Channels that lie side by side. */
static void side_by_side(struct wml_channels *c, const float *x)
{
    for (size_t i = 0; i < c->n; i++) {
        double v = (double)x[i], m = fabs(v);
        c->sum[i] += v;
        c->peak[i] = m > c->peak[i] ? m : c->peak[i];
    }
}

/* n elements of channel i. */
static void one_channel(struct wml_channels *c, size_t i, const float *x, size_t n)
{
    double sum = 0;
    float peak = 0;
    for (size_t k = 0; k < n; k++) {
        float m = fabsf(x[k]);
        sum += (double)x[k];
        peak = m > peak ? m : peak;
    }
    c->sum[i] += sum;
    c->peak[i] = WML_MAX(c->peak[i], (double)peak);
}

void wml_channels_add(struct wml_channels *c, const struct wml_tensor_view *v)
{
    int64_t axis = c->axis < 0 ? c->axis + (int64_t)v->rank : c->axis;
    size_t outer = 1, inner = 1;
    if (!v->data || v->dtype != WML_F32 || axis < 0 || axis >= (int64_t)v->rank || v->dim[axis] != (int64_t)c->n) return;
    for (size_t i = 0; i < v->rank; i++)
        if ((int64_t)i != axis) *((int64_t)i < axis ? &outer : &inner) *= (size_t)v->dim[i];
    const float *x = v->data;
    for (size_t o = 0; o < outer && inner == 1; o++) side_by_side(c, x + o * c->n);
    for (size_t o = 0; o < outer && inner > 1; o++)
        for (size_t i = 0; i < c->n; i++) one_channel(c, i, x + (o * c->n + i) * inner, inner);
    c->count += (double)(outer * inner);
}

void wml_channels_start(struct wml_model *m, struct wml_channels *c, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        c[i].sum = WML_NEW_ARRAY(&m->arena, double, c[i].n);
        c[i].peak = WML_NEW_ARRAY(&m->arena, double, c[i].n);
        c[i].count = 0;
    }
}

static bool look_at(void *arg, size_t i, unsigned worker, struct wml_err *err)
{
    const struct look *l = arg;
    (void)worker, (void)err;
    wml_channels_add(&l->r->c[i], &l->view[i]);
    return true;
}

static bool one_sample(struct run *r, size_t i, struct wml_err *err)
{
    struct wml_feed feed = {0};
    struct wml_run *run = NULL;
    struct wml_arena arena = {0};
    struct look l = {.r = r, .view = WML_NEW_ARRAY(&arena, struct wml_tensor_view, r->n)};
    bool ok = wml_samples_make(r->samples, i, &feed, err) && wml_run_new(r->session, feed.view.at, feed.view.len, &run, err) &&
              wml_run_watched(run, 0, err);
    for (size_t k = 0; ok && k < r->n; k++) ok = wml_run_output(run, r->output[k], &l.view[k], err);
    if (ok) (void)wml_crew_run(wml_cpu_count(), r->n, look_at, &l, NULL);
    wml_run_free(run);
    wml_feed_release(&feed);
    wml_arena_release(&arena);
    return ok;
}

static bool find_outputs(struct run *r, struct wml_err *err)
{
    struct wml_map by_name = {0};
    size_t n = 0;
    const struct wml_io *io = wml_session_outputs(r->session, &n);
    bool ok = true;
    for (size_t i = 0; i < n; i++) wml_map_put(&by_name, wml_str(io[i].name), (void *)(uintptr_t)(i + 1));
    for (size_t i = 0; ok && i < r->n; i++) {
        r->output[i] = (size_t)(uintptr_t)wml_map_get(&by_name, r->c[i].value->name) - 1;
        if (r->output[i] >= n) ok = wml_fail(err, WML_E_INTERNAL, "ONNX Runtime does not show value '%.*s'", WML_ARG(r->c[i].value->name));
    }
    wml_map_release(&by_name);
    return ok;
}

static bool run_samples(struct run *r, struct wml_err *err)
{
    size_t n = wml_samples_count(r->samples);
    for (size_t i = 0; i < n; i++) {
        wml_note_progress(r->cx, "Measuring", "channels", i, n, "samples");
        if (!wml_check_cancel(r->cx, err)) return false;
        if (!one_sample(r, i, err)) return wml_wrap(err, "sample %zu", i + 1);
    }
    return true;
}

bool wml_channels_measure(struct wml_ctx *cx, struct wml_model *m, struct wml_channels *c, size_t n, const struct wml_samples_spec *samples,
                          struct wml_err *err)
{
    struct wml_arena arena = {0};
    struct run r = {.cx = cx, .c = c, .n = n, .output = WML_NEW_ARRAY(&arena, size_t, n + 1)};
    struct wml_samples_spec spec = *samples;
    struct wml_session_opts opts = {0};
    struct wml_value **show = WML_NEW_ARRAY(&arena, struct wml_value *, n + 1);
    size_t n_inputs = 0;
    wml_channels_start(m, c, n);
    for (size_t i = 0; i < n; i++) show[i] = c[i].value;
    struct wml_skeleton_opts part = {.also = show, .n_also = n};
    wml_model_ranges(m, &arena, &spec.feed);
    bool ok = wml_flow_session(cx, m, &part, &opts, &r.session, err) && find_outputs(&r, err);
    const struct wml_io *input = ok ? wml_session_inputs(r.session, &n_inputs) : NULL;
    ok = ok && wml_samples_open(&spec, input, n_inputs, &r.samples, err) && run_samples(&r, err);
    wml_samples_close(r.samples);
    wml_session_close(r.session);
    wml_arena_release(&arena);
    return ok;
}
