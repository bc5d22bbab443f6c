/* The float model and the quantised one, sample by sample, output by output. Sums run over all samples, so that one of
 * small values counts little. */
#include "flow/accuracy.h"

#include "base/num.h"
#include "os/sys.h"
#include "ort/ort.h"

struct pair {
    struct wml_session *before, *after;
    struct wml_samples *samples;
    const struct wml_io *output;
    size_t n_outputs;
};

static bool failed(struct wml_accuracy *out, enum wml_accuracy_failed what, struct wml_err *err)
{
    out->failed = what;
    return what == WML_ACCURACY_SAMPLES ? false : wml_wrap(err, what == WML_ACCURACY_RESULT ? "the result" : "the source");
}

static bool open_file(struct wml_ctx *cx, const char *path, struct wml_session **out, struct wml_err *err)
{
    struct wml_ort *ort;
    struct wml_session_opts opts = {0};
    struct wml_model_source source = {.path = path};
    return wml_ort_open(cx, &ort, err) && wml_session_open(ort, &source, &opts, out, err);
}

static bool compare(struct pair *p, struct wml_run *before, struct wml_run *after, struct wml_accuracy *out, struct wml_err *err)
{
    for (size_t i = 0; i < p->n_outputs; i++) {
        struct wml_tensor_view a = {0}, b = {0};
        struct wml_accuracy_row *row = &out->row.at[i];
        uint64_t n = 0;
        if (!wml_run_output(before, i, &a, err) || !wml_run_output(after, i, &b, err)) return false;
        bool same = a.is_tensor && b.is_tensor && a.data && b.data && a.rank == b.rank && wml_dtype_is_float((int)a.dtype) &&
                    wml_dtype_is_float((int)b.dtype);
        for (size_t k = 0; same && k < a.rank; k++) same = a.dim[k] == b.dim[k];
        same = same && wml_dims_count(a.dim, a.rank, &n);
        row->comparable = row->comparable && same;
        if (row->comparable) wml_compare_more((int)a.dtype, a.data, (int)b.dtype, b.data, n, &row->c);
    }
    return true;
}

static bool one_sample(struct pair *p, size_t i, uint64_t budget_ms, struct wml_accuracy *out, struct wml_err *err)
{
    struct wml_feed feed = {0};
    struct wml_run *before = NULL, *after = NULL;
    bool ok = wml_samples_make(p->samples, i, &feed, err) || failed(out, WML_ACCURACY_SAMPLES, err);
    ok = ok && ((wml_run_new(p->before, feed.view.at, feed.view.len, &before, err) && wml_run_watched(before, i ? 0 : budget_ms, err)) ||
                failed(out, WML_ACCURACY_SOURCE_RUN, err));
    ok = ok && ((wml_run_new(p->after, feed.view.at, feed.view.len, &after, err) && wml_run_watched(after, 0, err)) ||
                failed(out, WML_ACCURACY_RESULT, err));
    ok = ok && compare(p, before, after, out, err);
    wml_run_free(before);
    wml_run_free(after);
    wml_feed_release(&feed);
    return ok;
}

static bool open_pair(struct wml_ctx *cx, const char *before, const char *after, const struct wml_samples_spec *samples, struct pair *p,
                      struct wml_accuracy *out, struct wml_err *err)
{
    size_t n_inputs = 0, n_after = 0;
    if (!open_file(cx, before, &p->before, err)) return failed(out, WML_ACCURACY_SOURCE_LOAD, err);
    if (!open_file(cx, after, &p->after, err)) return failed(out, WML_ACCURACY_RESULT, err);
    const struct wml_io *input = wml_session_inputs(p->before, &n_inputs);
    p->output = wml_session_outputs(p->before, &p->n_outputs);
    wml_session_outputs(p->after, &n_after);
    if (n_after != p->n_outputs) return wml_fail(err, WML_E_VERIFY, "the result has %zu outputs, the source %zu", n_after, p->n_outputs);
    for (size_t i = 0; i < p->n_outputs; i++) {
        struct wml_accuracy_row row = {.name = wml_arena_cstr(&out->arena, wml_str(p->output[i].name)), .comparable = true, .c = {.equal = true}};
        WML_PUSH(&out->row, row);
    }
    return wml_samples_open(samples, input, n_inputs, &p->samples, err) || failed(out, WML_ACCURACY_SAMPLES, err);
}

bool wml_accuracy_measure(struct wml_ctx *cx, const char *before, const char *after, const struct wml_samples_spec *samples,
                          uint64_t budget_ms, struct wml_accuracy *out, struct wml_err *err)
{
    struct pair p = {0};
    uint64_t start = wml_now_ns();
    *out = (struct wml_accuracy){0};
    bool ok = open_pair(cx, before, after, samples, &p, out, err);
    size_t n = ok ? wml_samples_count(p.samples) : 0;
    for (size_t i = 0; ok && i < n; i++) {
        if (i && budget_ms && wml_now_ns() - start > budget_ms * 1000000) break;
        wml_note_progress(cx, "Comparing", NULL, i, n, "samples");
        ok = wml_check_cancel(cx, err) && one_sample(&p, i, budget_ms, out, err);
        if (ok) out->samples++;
    }
    wml_samples_close(p.samples);
    wml_session_close(p.after);
    wml_session_close(p.before);
    if (ok) return true;
    enum wml_accuracy_failed what = out->failed;
    wml_accuracy_release(out);
    out->failed = what;
    return false;
}

void wml_accuracy_release(struct wml_accuracy *a)
{
    WML_VEC_RELEASE(&a->row);
    wml_arena_release(&a->arena);
    *a = (struct wml_accuracy){0};
}
