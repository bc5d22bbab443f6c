/* How much noise every part makes at the outputs: the float model is run once as it is and once for each part, with that
 * part alone in 8 bits. Parts are weighed side by side on all cores; what comes out does not depend on which core had which. */
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "flow/quantize/mixed_noise.h"
#include "flow/watch.h"
#include "os/thread.h"

/* Noise is a mean over all elements of the outputs: few samples tell the order, and of large inputs one. */
enum { SAMPLES = 2 };
static const uint64_t LARGE_INPUT = UINT64_C(1) << 20;

struct weigh {
    struct wml_mixed_search *x;
    struct wml_mixed_noise noise;
    struct wml_samples *samples;
    size_t n_samples, n_parts, n_outputs;
    double *signal, *sum; /* squares: [sample][output]; of the noise [sample][part][output] */
    atomic_size_t *next;  /* part, by sample */
    atomic_bool stop;
    struct wml_mutex *lock; /* of the following, and of progress */
    size_t done;
    struct wml_err *err;
};

struct worker { /* of one sample */
    struct weigh *w;
    size_t sample;
    int64_t tag;
    struct wml_feed feed;
    struct wml_run *run;
    struct wml_tensor_view *kept; /* the outputs of the float model, owned */
};

static bool is_judged(const struct wml_tensor_view *v)
{
    return v->is_tensor && v->data && wml_dtype_is_float((int)v->dtype);
}

static uint64_t count_of(const struct wml_tensor_view *v)
{
    return v->bytes / (wml_dtype_info((int)v->dtype)->bits / 8);
}

static bool run_once(struct worker *k, struct wml_run *run, struct wml_err *err)
{
    struct weigh *w = k->w;
    wml_mutex_lock(w->lock);
    wml_note_progress(w->x->r->cx, "Weighing", NULL, w->done++, w->x->out->runs, "runs");
    wml_mutex_unlock(w->lock);
    return wml_check_cancel(w->x->r->cx, err) && wml_run_watched(run, 0, err);
}

/* The outputs of the float model. */
static bool keep_outputs(struct worker *k, struct wml_err *err)
{
    for (size_t o = 0; o < k->w->n_outputs; o++) {
        struct wml_tensor_view v;
        if (!wml_run_output(k->run, o, &v, err)) return false;
        k->kept[o] = v;
        k->kept[o].data = NULL;
        if (!is_judged(&v)) continue;
        void *copy = wml_big_alloc(v.bytes, err);
        if (!copy) return false;
        k->kept[o].data = memcpy(copy, v.data, v.bytes);
    }
    return true;
}

static void note_signal(struct worker *k)
{
    for (size_t o = 0; o < k->w->n_outputs; o++) {
        const struct wml_tensor_view *v = &k->kept[o];
        struct wml_compare c;
        if (!v->data) continue;
        wml_compare((int)v->dtype, v->data, (int)v->dtype, v->data, count_of(v), &c);
        k->w->signal[k->sample * k->w->n_outputs + o] = c.aa;
    }
}

static bool note_noise(struct worker *k, struct wml_run *run, size_t part, struct wml_err *err)
{
    struct weigh *w = k->w;
    double *sum = &w->sum[(k->sample * w->n_parts + part) * w->n_outputs];
    for (size_t o = 0; o < w->n_outputs; o++) {
        struct wml_tensor_view v;
        struct wml_compare c;
        if (!wml_run_output(run, o, &v, err)) return false;
        if (!k->kept[o].data || !is_judged(&v)) continue;
        if (v.bytes != k->kept[o].bytes) {
            sum[o] = INFINITY; /* even the sizes change */
            continue;
        }
        wml_compare((int)v.dtype, k->kept[o].data, (int)v.dtype, v.data, count_of(&v), &c);
        sum[o] = c.mismatched ? INFINITY : c.dd;
    }
    return true;
}

/* A part with constants is run with those that its integers give. */
static bool weigh_part(struct worker *k, size_t part, struct wml_err *err)
{
    struct wml_mixed_noise *n = &k->w->noise;
    struct wml_tensor_view *fed = &k->feed.view.at[n->n_inputs + 1];
    struct wml_run *run = NULL;
    bool ok = true, changed = false;
    k->tag = (int64_t)part;
    for (size_t i = 0; ok && i < n->fed.len; i++) {
        if (n->fed.at[i].linear.part != part) continue;
        changed = true;
        void *constant = wml_mixed_noise_constant(&n->fed.at[i], err);
        ok = constant != NULL;
        if (ok) fed[i].data = constant;
    }
    ok = ok && (!changed || wml_run_new(n->session, k->feed.view.at, k->feed.view.len, &run, err)) && run_once(k, run ? run : k->run, err) &&
         note_noise(k, run ? run : k->run, part, err);
    wml_run_free(run);
    for (size_t i = 0; i < n->fed.len; i++) {
        const void *as_it_is = n->fed.at[i].view.data;
        if (fed[i].data != as_it_is) free((void *)(uintptr_t)fed[i].data);
        fed[i].data = as_it_is;
    }
    return ok;
}

static bool weigh_some(struct worker *k, struct wml_err *err)
{
    static const int64_t size[] = {1};
    struct weigh *w = k->w;
    struct wml_tensor_view tag = {.dtype = WML_I64, .rank = 1, .dim = size, .data = &k->tag, .bytes = sizeof k->tag, .is_tensor = true};
    if (!wml_samples_make(w->samples, k->sample, &k->feed, err)) return false;
    WML_PUSH(&k->feed.view, tag);
    for (size_t i = 0; i < w->noise.fed.len; i++) WML_PUSH(&k->feed.view, w->noise.fed.at[i].view);
    k->tag = WML_MIXED_NO_PART;
    if (!wml_run_new(w->noise.session, k->feed.view.at, k->feed.view.len, &k->run, err) || !run_once(k, k->run, err) || !keep_outputs(k, err)) return false;
    for (size_t part; !atomic_load(&w->stop) && (part = atomic_fetch_add(&w->next[k->sample], 1)) < w->n_parts;) {
        if (part == 0) note_signal(k);
        if (!weigh_part(k, part, err)) return false;
    }
    return true;
}

/* Sample after sample; whoever comes when its parts are all taken goes on with the next. */
static void work(void *arg)
{
    struct weigh *w = arg;
    struct wml_arena arena = {0};
    for (size_t i = 0; i < w->n_samples && !atomic_load(&w->stop); i++) {
        if (atomic_load(&w->next[i]) >= w->n_parts) continue;
        struct worker k = {.w = w, .sample = i, .kept = WML_NEW_ARRAY(&arena, struct wml_tensor_view, w->n_outputs + 1)};
        struct wml_err err = {0};
        if (!weigh_some(&k, &err)) {
            wml_mutex_lock(w->lock);
            if (!w->err->msg[0]) *w->err = err;
            wml_mutex_unlock(w->lock);
            atomic_store(&w->stop, true);
        }
        wml_run_free(k.run);
        wml_feed_release(&k.feed);
        for (size_t o = 0; o < w->n_outputs; o++) free((void *)(uintptr_t)k.kept[o].data);
    }
    wml_arena_release(&arena);
}

static void on_cores(struct weigh *w, unsigned n)
{
    struct wml_thread **thread = WML_NEW_ARRAY(w->x->arena, struct wml_thread *, n);
    for (unsigned i = 1; i < n; i++) (void)wml_thread_start(&thread[i], work, w, NULL); /* the first does its work then */
    work(w);
    for (unsigned i = 1; i < n; i++) wml_thread_join(thread[i]);
}

/* Noise over signal, by part and output; outputs without a signal are not judged. */
static void sum_up(struct weigh *w)
{
    struct wml_mixed_search *x = w->x;
    for (size_t k = 0; k < w->n_parts; k++) x->part.at[k].noise = WML_NEW_ARRAY(x->arena, double, w->n_outputs + 1);
    for (size_t o = 0; o < w->n_outputs; o++) {
        double signal = 0;
        for (size_t i = 0; i < w->n_samples; i++) signal += w->signal[i * w->n_outputs + o];
        for (size_t k = 0; k < w->n_parts; k++) {
            double noise = 0;
            for (size_t i = 0; i < w->n_samples; i++) noise += w->sum[(i * w->n_parts + k) * w->n_outputs + o];
            x->part.at[k].noise[o] = signal > 0 ? noise / signal : 0;
        }
    }
    x->n_outputs = w->n_outputs;
}

static bool count_samples(struct weigh *w, struct wml_err *err)
{
    struct wml_feed feed = {0};
    uint64_t bytes = 0;
    bool ok = wml_samples_make(w->samples, 0, &feed, err);
    for (size_t i = 0; i < feed.view.len; i++) bytes += feed.view.at[i].bytes;
    wml_feed_release(&feed);
    w->n_samples = bytes > LARGE_INPUT ? 1 : WML_MIN(wml_samples_count(w->samples), (size_t)SAMPLES);
    return ok;
}

bool wml_mixed_weigh(struct wml_mixed_search *x, struct wml_err *err)
{
    struct wml_err failed = {0};
    struct weigh w = {.x = x, .n_parts = x->part.len, .lock = wml_mutex_new(), .err = &failed};
    unsigned workers = wml_flow_workers(x->base, x->part.len);
    size_t n_in;
    bool ok = wml_mixed_noise_open(x, wml_cpu_count() - workers + 1, &w.noise, err);
    ok = ok && wml_samples_open(&x->samples, wml_session_inputs(w.noise.session, &n_in), w.noise.n_inputs, &w.samples, err) && count_samples(&w, err);
    if (ok) {
        w.n_outputs = w.noise.n_outputs;
        w.signal = WML_NEW_ARRAY(x->arena, double, w.n_samples * w.n_outputs + 1);
        w.sum = wml_arena_zalloc(x->arena, wml_array_size(w.n_samples * w.n_outputs + 1, w.n_parts * sizeof(double)));
        w.next = WML_NEW_ARRAY(x->arena, atomic_size_t, w.n_samples + 1);
        x->out->runs = w.n_samples * (w.n_parts + workers);
        on_cores(&w, workers);
        ok = !failed.msg[0];
        if (ok) sum_up(&w);
        else *err = failed;
    }
    wml_samples_close(w.samples);
    wml_mixed_noise_close(&w.noise);
    wml_mutex_free(w.lock);
    return ok || wml_wrap(err, "weighing the tensors");
}
