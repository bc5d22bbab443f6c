/* Calibration: one session that shows the wanted values while it runs, samples side by side on all cores, each run on one.
 * What is gathered does not depend on the order of the samples' ends, so neither do the ranges. */
#include "flow/quantize/calibrate.h"

#include "flow/ranges.h"
#include "flow/watch.h"
#include "graph/edit.h"
#include "os/crew.h"
#include "os/file.h"
#include "os/path.h"
#include "os/thread.h"

enum { STRIPES = 64 };

struct run {
    struct wml_ctx *cx;
    const struct wml_range_method *method;
    struct wml_session *session;
    struct wml_samples *samples;
    struct wml_calib *calib;
    enum wml_dtype *dtype;   /* by wanted value */
    struct wml_range *range; /* the results, the same */
    size_t n;
    unsigned workers;
    bool shared; /* the workers have one state together: theirs would be too much memory */
    struct wml_mutex *stripe[STRIPES]; /* of the state, by wanted value */
    struct wml_mutex *lock; /* of progress */
    size_t begun;           /* samples, in all passes */
};

/* The observer: tag is {sample, worker}. */
static void see(void *arg, int64_t slot, const int64_t *tag, const struct wml_tensor_view *v)
{
    struct run *r = arg;
    size_t i = (size_t)slot;
    if (!v->is_tensor || v->dtype != r->dtype[i] || !wml_calib_wants(r->calib, i)) return;
    struct wml_mutex *lock = r->shared ? r->stripe[i % STRIPES] : NULL;
    size_t n = v->bytes / (wml_dtype_info((int)v->dtype)->bits / 8);
    if (lock) wml_mutex_lock(lock);
    wml_calib_observe(r->calib, r->shared ? 0 : (unsigned)tag[1], i, (size_t)tag[0], v->data, n);
    if (lock) wml_mutex_unlock(lock);
}

static bool one_sample(struct run *r, size_t i, unsigned worker, struct wml_err *err)
{
    static const int64_t size[] = {WML_WATCH_TAG};
    const int64_t tag[WML_WATCH_TAG] = {(int64_t)i, worker};
    struct wml_tensor_view view = {.dtype = WML_I64, .rank = 1, .dim = size, .data = tag, .bytes = sizeof tag, .is_tensor = true};
    struct wml_feed feed = {0};
    struct wml_run *run = NULL;
    bool ok = wml_samples_make(r->samples, i, &feed, err);
    if (ok) WML_PUSH(&feed.view, view);
    ok = ok && wml_run_new(r->session, feed.view.at, feed.view.len, &run, err) && wml_run_watched(run, 0, err);
    wml_run_free(run);
    wml_feed_release(&feed);
    return ok;
}

static bool look(void *arg, size_t i, unsigned worker, struct wml_err *err)
{
    struct run *r = arg;
    wml_mutex_lock(r->lock);
    wml_note_progress(r->cx, "Calibrating", r->method->name, r->begun++, wml_samples_count(r->samples) * r->method->passes, "samples");
    wml_mutex_unlock(r->lock);
    if (!wml_check_cancel(r->cx, err)) return false;
    if (one_sample(r, i, worker, err)) return true;
    if (err->code == WML_E_CANCELLED) return false;
    wml_wrap(err, "calibration, sample %zu", i + 1);
    if (err->code == WML_E_UNSUPPORTED)
        wml_hint(err, "--calibration-cache FILE gives ranges without a run of the model; -p dynamic, int4 and fp16 need none");
    return wml_hint(err, wml_samples_are_random(r->samples)
                             ? "--input-shape NAME=... gives open sizes the model can run with; --calibration-data gives real inputs"
                             : "`winml inspect -m MODEL` lists the inputs and their shapes");
}

static bool run_samples(struct run *r, struct wml_err *err)
{
    while (wml_calib_pass(r->calib))
        if (!wml_crew_run(r->workers, wml_samples_count(r->samples), look, r, err)) return false;
    return true;
}

static bool find_range(void *arg, size_t i, unsigned worker, struct wml_err *err)
{
    struct run *r = arg;
    (void)worker, (void)err;
    r->range[i] = wml_calib_range(r->calib, i);
    return true;
}

static void count(size_t *n, char *first, size_t size, struct wml_str name)
{
    if (!(*n)++) snprintf(first, size, "%.*s", WML_ARG(name));
}

static void finish(struct run *r, struct wml_value *const *want, struct wml_arena *arena, struct wml_calibration *out)
{
    r->range = WML_NEW_ARRAY(arena, struct wml_range, r->n + 1);
    (void)wml_crew_run(wml_cpu_count(), r->n, find_range, r, NULL);
    for (size_t i = 0; i < r->n; i++) {
        struct wml_extent e = wml_calib_extent(r->calib, i);
        wml_ranges_put(&out->ranges, want[i]->name, r->range[i]);
        if (!e.finite) count(&out->n_unseen, out->unseen, sizeof out->unseen, want[i]->name);
        else if (e.nan || e.inf) count(&out->n_odd, out->odd, sizeof out->odd, want[i]->name);
    }
}

static void release(struct run *r)
{
    wml_samples_close(r->samples);
    wml_session_close(r->session);
    wml_calib_free(r->calib);
    wml_mutex_free(r->lock);
    for (size_t i = 0; i < STRIPES; i++) wml_mutex_free(r->stripe[i]);
}

static bool measure(struct wml_ctx *cx, struct wml_model *m, struct wml_value *const *want, size_t n_wanted,
                    const struct wml_range_method *method, const struct wml_calibration_spec *spec, struct wml_calibration *out,
                    struct wml_err *err)
{
    struct wml_arena arena = {0};
    struct run r = {.cx = cx, .method = method, .n = n_wanted, .shared = !method->extremes, .lock = wml_mutex_new()};
    const struct wml_observer observer = {.arg = &r, .see = see};
    struct wml_samples_spec samples = spec->samples;
    size_t n_inputs = 0;
    for (size_t i = 0; i < STRIPES; i++) r.stripe[i] = wml_mutex_new();
    wml_model_ranges(m, &arena, &samples.feed);
    samples.cx = cx;
    r.workers = wml_flow_workers(m, samples.count);
    r.calib = wml_calib_new(method, &spec->range, r.shared ? 1 : r.workers, err);
    r.dtype = WML_NEW_ARRAY(&arena, enum wml_dtype, n_wanted + 1);
    for (size_t i = 0; r.calib && i < n_wanted; i++) {
        r.dtype[i] = wml_value_elem(want[i]) == WML_F16 ? WML_F16 : WML_F32;
        wml_calib_add(r.calib, want[i]->name, r.dtype[i]);
    }
    bool ok = r.calib && wml_flow_watch(cx, m, want, n_wanted, &observer, wml_cpu_count() - r.workers + 1, &r.session, err);
    const struct wml_io *input = ok ? wml_session_inputs(r.session, &n_inputs) : NULL;
    ok = ok && wml_samples_open(&samples, input, n_inputs - 1, &r.samples, err) && run_samples(&r, err);
    if (ok) {
        finish(&r, want, &arena, out);
        out->samples = wml_samples_count(r.samples);
        out->random = wml_samples_are_random(r.samples);
        snprintf(out->data, sizeof out->data, "%s", wml_samples_text(r.samples));
    }
    release(&r);
    wml_arena_release(&arena);
    return ok;
}

/* Names the first few. */
static bool find_missing(const struct wml_ranges *r, struct wml_value *const *want, size_t n, struct wml_err *err)
{
    enum { NAMED = 3 };
    struct wml_buf names = {0};
    size_t missing = 0;
    for (size_t i = 0; i < n; i++)
        if (!wml_ranges_find(r, want[i]->name) && ++missing <= NAMED)
            wml_buf_fmt(&names, "%s'%.*s'", missing > 1 ? ", " : "", WML_ARG(want[i]->name));
    if (missing) {
        wml_fail(err, WML_E_NOT_FOUND, "it lacks the ranges of %zu of %zu values: %s%s", missing, n, wml_buf_text(&names), missing > NAMED ? ", ..." : "");
        wml_hint(err, "it is that of another model, or of other options (--op-type, --exclude, --ep): remove it to calibrate again");
    }
    wml_buf_release(&names);
    return !missing;
}

static bool load_cache(const struct wml_calibration_spec *spec, const struct wml_range_method *method, struct wml_value *const *want, size_t n,
                       struct wml_calibration *out, struct wml_err *err)
{
    if (!wml_ranges_load(spec->cache, method, &spec->facts, &out->ranges, err)) return wml_hint(err, "without this file the ranges are measured, and written to it");
    out->from_cache = true;
    snprintf(out->data, sizeof out->data, "ranges in %.*s", WML_ARG(wml_path_name(wml_str(spec->cache))));
    return find_missing(&out->ranges, want, n, err) || wml_wrap(err, "calibration cache %s", spec->cache);
}

bool wml_flow_calibrate(struct wml_ctx *cx, struct wml_model *m, struct wml_value *const *want, size_t n_wanted,
                        const struct wml_calibration_spec *spec, struct wml_calibration *out, struct wml_err *err)
{
    const struct wml_range_method *method = wml_range_method_find(spec->method);
    *out = (struct wml_calibration){0};
    if (!method) return wml_fail(err, WML_E_USAGE, "no calibration method is called '%s'", spec->method);
    bool ok = spec->cache && wml_file_exists(spec->cache)
                  ? load_cache(spec, method, want, n_wanted, out, err)
                  : measure(cx, m, want, n_wanted, method, spec, out, err) &&
                        (!spec->cache || wml_ranges_save(&out->ranges, method, &spec->facts, spec->cache, err));
    if (!ok) wml_calibration_release(out);
    return ok;
}

void wml_calibration_release(struct wml_calibration *c)
{
    wml_ranges_release(&c->ranges);
    *c = (struct wml_calibration){0};
}
