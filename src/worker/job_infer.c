/* Job "infer": opens a model on a target, runs it once on a feed, or on several, and leaves the outputs as .npz.
 *
 * request {"model","target","level","feed","outputs": FILE.npz or absent}, or "runs": [{"feed","outputs"}, ...] for these two
 * reply   {"target",...,"run_ms","outputs":[{"name","dtype","shape","nan","inf"}],"notes":[...]}, run_ms that of all runs and
 *         outputs those of the last
 *
 * Floats that numpy does not know (bfloat16, float8) are written as float32. Outputs that are no numeric
 * tensors are listed with "dtype": null and not written. */
#include "worker/job.h"

#include <math.h>
#include "base/num.h"
#include "os/sys.h"
#include "text/npy.h"
#include "worker/feed.h"

struct outputs {
    struct wml_arena arena;
    WML_VEC(struct wml_npy) v;
    WML_VEC(void *) owned;
};

static void count_bad(const struct wml_tensor_view *t, uint64_t n, uint64_t *nan, uint64_t *inf)
{
    *nan = *inf = 0;
    if (!wml_dtype_is_float((int)t->dtype)) return;
    for (uint64_t i = 0; i < n; i++) {
        double v = wml_dtype_load((int)t->dtype, t->data, (size_t)i);
        *nan += isnan(v) ? 1 : 0;
        *inf += isinf(v) ? 1 : 0;
    }
}

static bool keep(struct outputs *o, const char *name, const struct wml_tensor_view *t, uint64_t n,
                 struct wml_err *err)
{
    struct wml_npy a = {.name = wml_str(name), .dtype = t->dtype, .rank = t->rank,
                        .data = {t->data, t->bytes}};
    if (t->rank > WML_NPY_MAX_RANK)
        return wml_fail(err, WML_E_UNSUPPORTED, "output '%s' has %zu dimensions", name, t->rank);
    for (size_t i = 0; i < t->rank; i++) a.dim[i] = t->dim[i];
    if (!wml_dtype_info((int)t->dtype)->npy) {
        float *wide = wml_big_alloc(n * sizeof(float) + 4, err);
        if (!wide) return false;
        WML_PUSH(&o->owned, wide);
        for (uint64_t i = 0; i < n; i++) wide[i] = (float)wml_dtype_load((int)t->dtype, t->data, (size_t)i);
        a.dtype = WML_F32;
        a.data = (struct wml_span){(const unsigned char *)wide, (size_t)(n * sizeof(float))};
    }
    WML_PUSH(&o->v, a);
    return true;
}

static bool put_output(struct wml_json *j, struct outputs *o, const char *name, const struct wml_tensor_view *t,
                       struct wml_err *err)
{
    uint64_t n = 0, nan = 0, inf = 0;
    bool numeric = t->is_tensor && wml_dtype_info((int)t->dtype)->bits;
    wml_json_begin(j, '{');
    wml_json_key(j, "name");
    wml_json_put_cstr(j, name);
    wml_json_key(j, "dtype");
    wml_json_put_cstr(j, numeric ? wml_dtype_name((int)t->dtype) : NULL);
    if (numeric) {
        wml_json_key(j, "shape");
        wml_json_begin(j, '[');
        for (size_t i = 0; i < t->rank; i++) wml_json_put_int(j, t->dim[i]);
        wml_json_end(j, ']');
        wml_dims_count(t->dim, t->rank, &n);
        count_bad(t, n, &nan, &inf);
    }
    wml_json_key(j, "nan");
    wml_json_put_uint(j, nan);
    wml_json_key(j, "inf");
    wml_json_put_uint(j, inf);
    wml_json_end(j, '}');
    return !numeric || keep(o, name, t, n, err);
}

static bool put_outputs(struct wml_json *j, struct outputs *o, struct wml_session *session, struct wml_run *run,
                        struct wml_err *err)
{
    size_t n = 0;
    const struct wml_io *io = wml_session_outputs(session, &n);
    bool ok = true;
    for (size_t i = 0; ok && i < n; i++) {
        struct wml_tensor_view t = {0};
        ok = wml_run_output(run, i, &t, err) && put_output(j, o, io[i].name, &t, err);
    }
    return ok;
}

/* last: its outputs are told. */
static bool run_once(struct wml_job_io *io, const struct wml_json_val *request, struct wml_job_session *s,
                     struct wml_feed *feed, double *run_ms, struct wml_json *last, struct wml_err *err)
{
    bool ok = false;
    size_t n = 0;
    struct wml_run *run = NULL;
    struct outputs o = {0};
    struct wml_feed_spec spec;
    const struct wml_io *inputs = wml_session_inputs(s->session, &n);
    struct wml_str file = wml_json_get_str(request, "outputs");
    if (!wml_feed_spec_get(wml_json_get(request, "feed"), &s->arena, &spec, err)) return false;
    if (!wml_feed_make(inputs, n, &spec, feed, err)) return false;
    if (!wml_run_new(s->session, feed->view.at, feed->view.len, &run, err)) goto done;
    wml_job_phase(io, "run");
    uint64_t start = wml_now_ns();
    if (!wml_run_once(run, err)) goto done;
    *run_ms += (double)(wml_now_ns() - start) / 1e6;
    if (!put_outputs(last, &o, s->session, run, err)) goto done;
    if (file.len && !wml_npz_save(wml_arena_cstr(&s->arena, file), o.v.at, o.v.len, err)) goto done;
    ok = true;
done:
    for (size_t i = 0; i < o.owned.len; i++) free(o.owned.at[i]);
    WML_VEC_RELEASE(&o.owned);
    WML_VEC_RELEASE(&o.v);
    wml_arena_release(&o.arena);
    wml_run_free(run);
    return ok;
}

static bool run_all(struct wml_job_io *io, const struct wml_json_val *request, struct wml_job_session *s, struct wml_feed *feed,
                    struct wml_json *j, struct wml_err *err)
{
    const struct wml_json_val *runs = wml_json_get(request, "runs");
    size_t n = wml_json_is_array(runs) ? wml_json_len(runs) : 1;
    struct wml_buf told = {0};
    double run_ms = 0;
    bool ok = true;
    for (size_t i = 0; ok && i < n; i++) {
        struct wml_json last = {.out = &told};
        wml_feed_release(feed);
        wml_buf_clear(&told);
        wml_json_begin(&last, '[');
        ok = run_once(io, wml_json_is_array(runs) ? wml_json_at(runs, i) : request, s, feed, &run_ms, &last, err);
        wml_json_end(&last, ']');
    }
    if (ok) {
        wml_json_key(j, "run_ms");
        wml_json_put_fixed(j, run_ms, 3);
        wml_json_key(j, "outputs");
        wml_json_put_raw(j, n ? wml_buf_view(&told) : WML_STR("[]"));
    }
    wml_buf_release(&told);
    return ok;
}

static bool infer(struct wml_job_io *io, const struct wml_json_doc *doc, struct wml_err *err)
{
    const struct wml_json_val *request = wml_json_root(doc);
    struct wml_job_session *s;
    struct wml_json j = {.out = &io->reply};
    struct wml_feed feed = {0};
    bool ok = wml_job_target(io, request, &s, err) && wml_job_open(io, request, s, err);
    wml_json_begin(&j, '{');
    if (ok) ok = run_all(io, request, s, &feed, &j, err);
    wml_job_session_put(&j, s);
    wml_json_key(&j, "notes");
    wml_json_begin(&j, '[');
    for (size_t i = 0; i < feed.note.len; i++) wml_json_put_cstr(&j, feed.note.at[i]);
    wml_json_end(&j, ']');
    wml_json_end(&j, '}');
    wml_feed_release(&feed);
    return ok;
}

const struct wml_job wml_job_infer = {
    .name = "infer", .summary = "Run a model once and keep its outputs",
    .run = infer, .teardown = wml_job_session_teardown,
};
