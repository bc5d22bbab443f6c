/* Before and after, output by output. */
#include "flow/verify.h"

#include <math.h>

#include "base/num.h"
#include "flow/oracle.h"
#include "os/sys.h"

struct side {
    struct wml_session *session;
    struct wml_feed feed;
    struct wml_run *run;
};

static bool open_side(struct wml_ctx *cx, struct wml_model *m, struct side *s, struct wml_err *err)
{
    struct wml_session_opts opts = {0};
    return wml_flow_session(cx, m, NULL, &opts, &s->session, err);
}

static bool run_side(const struct wml_feed_spec *spec, struct side *s, uint64_t limit_ms, struct wml_err *err)
{
    size_t n = 0;
    const struct wml_io *inputs = wml_session_inputs(s->session, &n);
    wml_run_free(s->run);
    wml_feed_release(&s->feed);
    s->run = NULL;
    return wml_feed_make(inputs, n, spec, &s->feed, err) &&
           wml_run_new(s->session, s->feed.view.at, s->feed.view.len, &s->run, err) &&
           wml_run_watched(s->run, limit_ms, err);
}

static void release_side(struct side *s)
{
    wml_run_free(s->run);
    wml_feed_release(&s->feed);
    wml_session_close(s->session);
}

static uint64_t count_of(const struct wml_tensor_view *t)
{
    uint64_t n;
    wml_dims_count(t->dim, t->rank, &n);
    return n;
}

static bool is_close(const struct wml_tensor_view *a, const struct wml_compare *c, uint64_t n)
{
    if (c->equal) return true;
    if (c->mismatched || !wml_dtype_is_float((int)a->dtype)) return false;
    bool half = wml_dtype_info((int)a->dtype)->bits <= 16;
    if (!half && c->max_abs <= 3e-7) return true;
    return c->cosine >= 1 - (half ? 1e-3 : 1e-6) && c->max_abs <= (half ? 2e-2 : 1e-3) * fmax(wml_largest((int)a->dtype, a->data, n), 1e-3);
}

static bool compare_output(struct side *x, struct side *y, const struct wml_io *io, size_t i, struct wml_verify *v,
                           struct wml_err *err)
{
    struct wml_tensor_view a = {0}, b = {0};
    if (!wml_run_output(x->run, i, &a, err) || !wml_run_output(y->run, i, &b, err)) return false;
    struct wml_verify_row row = {.name = wml_arena_cstr(&v->arena, wml_str(io[i].name))};
    uint64_t n = a.is_tensor ? count_of(&a) : 0;
    row.comparable = a.is_tensor && b.is_tensor && a.data && b.data && n == count_of(&b) && a.dtype == b.dtype;
    if (row.comparable) {
        wml_compare((int)a.dtype, a.data, (int)b.dtype, b.data, n, &row.c);
        double most = wml_largest((int)a.dtype, a.data, n);
        row.max_rel = row.c.max_abs == 0 ? 0 : row.c.max_abs / fmax(most, 1e-30);
        row.same = is_close(&a, &row.c, n);
    } else {
        /* Sequences, maps, strings: only that both sides have them can be said. */
        row.same = a.is_tensor == b.is_tensor && a.dtype == b.dtype && (!a.is_tensor || n == count_of(&b));
    }
    v->passed = v->passed && row.same;
    if (i == v->row.len) WML_PUSH(&v->row, row);
    else if (row.same < v->row.at[i].same || (row.same == v->row.at[i].same && row.c.max_abs > v->row.at[i].c.max_abs)) v->row.at[i] = row;
    return true;
}

static bool compare_outputs(struct side *x, struct side *y, struct wml_verify *out, struct wml_err *err)
{
    size_t n = 0, n_after = 0;
    const struct wml_io *io = wml_session_outputs(x->session, &n), *after = wml_session_outputs(y->session, &n_after);
    bool same = n == n_after;
    for (size_t i = 0; same && i < n; i++) same = strcmp(io[i].name, after[i].name) == 0;
    if (!same) return wml_fail(err, WML_E_VERIFY, "its outputs are not those of the source");
    for (size_t i = 0; i < n; i++)
        if (!compare_output(x, y, io, i, out, err)) return false;
    return true;
}

/* Every second run has numbers of both signs and other sizes where sizes are open: what is right for one batch of
 * positive numbers only is no equal answer. A source that cannot do that is run as before. */
static bool run_varied(size_t i, struct wml_feed_spec *spec, struct side *s, uint64_t limit_ms, struct wml_err *err)
{
    struct wml_err why = {0};
    spec->wide = i % 2;
    spec->open = i % 2 ? 2 : 0;
    if (run_side(spec, s, limit_ms, &why)) return true;
    if (spec->open && why.code != WML_E_CANCELLED) {
        spec->open = 0;
        return run_side(spec, s, limit_ms, err);
    }
    *err = why;
    return false;
}

static bool failed(struct wml_verify *v, enum wml_verify_failed what, struct wml_err *err)
{
    v->failed = what;
    if (what == WML_VERIFY_RUNTIME) return false;
    return wml_wrap(err, what == WML_VERIFY_RESULT ? "the result" : "the source");
}

/* The source is opened and run once: longer than the limit, and that is all. */
static bool begin(struct wml_ctx *cx, struct wml_model *before, const struct wml_feed_spec *spec, uint64_t limit_ms, struct side *x,
                  struct wml_verify *out, struct wml_err *err)
{
    uint64_t start = wml_now_ns();
    struct wml_ort *ort;
    if (!wml_ort_open(cx, &ort, err)) return failed(out, WML_VERIFY_RUNTIME, err);
    if (!open_side(cx, before, x, err)) return failed(out, WML_VERIFY_SOURCE_LOAD, err);
    bool ok = run_side(spec, x, limit_ms, err);
    uint64_t spent = wml_now_ns() - start;
    if (ok && limit_ms && spent > limit_ms * 1000000) ok = wml_fail(err, WML_E_TIMEOUT, "loading it and one run take %.1f s", (double)spent / 1e9);
    return ok || failed(out, WML_VERIFY_SOURCE_RUN, err);
}

bool wml_verify_models(struct wml_ctx *cx, struct wml_model *before, struct wml_model *after,
                       const struct wml_feed_spec *feed, size_t n_seeds, uint64_t limit_ms, struct wml_verify *out,
                       struct wml_err *err)
{
    enum { SLOWER = 4 }; /* the machine may be busier later, and there is more to do */
    uint64_t later_ms = limit_ms * SLOWER;
    struct side x = {0}, y = {0};
    struct wml_feed_spec spec = *feed;
    *out = (struct wml_verify){.passed = true};
    bool ok = begin(cx, before, &spec, limit_ms, &x, out, err) && (open_side(cx, after, &y, err) || failed(out, WML_VERIFY_RESULT, err));
    for (size_t i = 0; ok && i < n_seeds; i++, spec.seed++) {
        if (i) ok = run_varied(i, &spec, &x, later_ms, err) || failed(out, WML_VERIFY_SOURCE_RUN, err);
        ok = ok && ((run_side(&spec, &y, later_ms, err) && compare_outputs(&x, &y, out, err)) || failed(out, WML_VERIFY_RESULT, err));
    }
    release_side(&x);
    release_side(&y);
    enum wml_verify_failed what = out->failed;
    if (!ok) wml_verify_release(out);
    out->failed = what;
    return ok;
}

void wml_verify_release(struct wml_verify *v)
{
    WML_VEC_RELEASE(&v->row);
    wml_arena_release(&v->arena);
    *v = (struct wml_verify){0};
}
