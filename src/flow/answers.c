/* The float model's answers, kept for several models; and what all comparisons share. Sums run over all samples, so that one
 * of small values counts little. */
#include "flow/accuracy_internal.h"

#include "base/num.h"
#include "ort/ort.h"

static const uint64_t KEEP_BYTES = UINT64_C(256) << 20;

struct wml_answers {
    struct wml_ctx *cx;
    struct wml_arena arena;
    struct wml_session *before;
    struct wml_samples *samples;
    const struct wml_io *output;
    size_t n_outputs, n_samples;
    uint64_t kept_bytes;
    struct wml_tensor_view **kept; /* by sample: its outputs, copies; NULL: not there */
};

bool wml_accuracy_fail(struct wml_accuracy *out, enum wml_accuracy_failed what, struct wml_err *err)
{
    out->failed = what;
    return what == WML_ACCURACY_SAMPLES ? false : wml_wrap(err, what == WML_ACCURACY_RESULT ? "the result" : "the source");
}

void wml_accuracy_start(struct wml_accuracy *out, const struct wml_io *output, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct wml_accuracy_row row = {.name = wml_arena_cstr(&out->arena, wml_str(output[i].name)), .comparable = true, .c = {.equal = true}};
        WML_PUSH(&out->row, row);
    }
}

void wml_accuracy_add(struct wml_accuracy_row *row, const struct wml_tensor_view *a, const struct wml_tensor_view *b)
{
    uint64_t n = 0;
    bool same = a->is_tensor && b->is_tensor && a->data && b->data && a->rank == b->rank && wml_dtype_is_float((int)a->dtype) &&
                wml_dtype_is_float((int)b->dtype);
    for (size_t k = 0; same && k < a->rank; k++) same = a->dim[k] == b->dim[k];
    row->comparable = row->comparable && same && wml_dims_count(a->dim, a->rank, &n);
    if (row->comparable) wml_compare_more((int)a->dtype, a->data, (int)b->dtype, b->data, n, &row->c);
}

bool wml_accuracy_convert(const struct wml_session *session, const struct wml_feed *feed, struct wml_feed *out, struct wml_err *err)
{
    size_t n = 0;
    const struct wml_io *input = wml_session_inputs(session, &n);
    for (size_t i = 0; i < feed->view.len; i++) {
        struct wml_tensor_view v = feed->view.at[i];
        uint64_t count = 0, bytes = 0;
        if (i < n && input[i].dtype != v.dtype && wml_dims_count(v.dim, v.rank, &count) && wml_dtype_bytes((int)input[i].dtype, count, &bytes)) {
            void *data = wml_big_alloc(bytes + 1, err);
            if (!data) return false;
            WML_PUSH(&out->owned, data);
            for (uint64_t k = 0; k < count; k++) wml_dtype_store((int)input[i].dtype, data, (size_t)k, wml_dtype_load((int)v.dtype, v.data, (size_t)k));
            v.dtype = input[i].dtype;
            v.data = data;
            v.bytes = (size_t)bytes;
        }
        WML_PUSH(&out->view, v);
    }
    return true;
}

struct wml_tensor_view wml_view_copy(const struct wml_tensor_view *v)
{
    struct wml_tensor_view copy = *v;
    size_t head = v->rank * sizeof *v->dim;
    char *block = wml_xcalloc(1, head + v->bytes + 1);
    if (head) memcpy(block, v->dim, head);
    if (v->data && v->bytes) memcpy(block + head, v->data, v->bytes);
    copy.dim = (const int64_t *)(const void *)block;
    copy.data = v->data ? block + head : NULL;
    return copy;
}

void wml_view_free(struct wml_tensor_view *v)
{
    free((void *)(uintptr_t)v->dim);
}

static bool open_file(struct wml_ctx *cx, const char *path, struct wml_session **out, struct wml_err *err)
{
    struct wml_ort *ort;
    struct wml_session_opts opts = {0};
    struct wml_model_source source = {.path = path};
    return wml_ort_open(cx, &ort, err) && wml_session_open(ort, &source, &opts, out, err);
}

static bool read_outputs(struct wml_run *run, size_t n, struct wml_tensor_view *out, struct wml_err *err)
{
    bool ok = true;
    for (size_t i = 0; ok && i < n; i++) ok = wml_run_output(run, i, &out[i], err);
    return ok;
}

/* Copies the outputs of sample i, when there is room. */
static void keep(struct wml_answers *a, size_t i, const struct wml_tensor_view *view)
{
    uint64_t bytes = a->kept_bytes;
    for (size_t o = 0; o < a->n_outputs; o++) bytes += view[o].bytes;
    if (bytes > KEEP_BYTES) return;
    a->kept[i] = WML_NEW_ARRAY(&a->arena, struct wml_tensor_view, a->n_outputs + 1);
    for (size_t o = 0; o < a->n_outputs; o++) a->kept[i][o] = wml_view_copy(&view[o]);
    a->kept_bytes = bytes;
}

static bool one_sample(struct wml_answers *a, struct wml_session *other, size_t i, struct wml_accuracy *out, struct wml_err *err)
{
    struct wml_feed feed = {0}, fits = {0};
    struct wml_arena arena = {0};
    struct wml_run *before = NULL, *after = NULL;
    struct wml_tensor_view *x = a->kept[i], *y = WML_NEW_ARRAY(&arena, struct wml_tensor_view, a->n_outputs + 1);
    bool ok = wml_samples_make(a->samples, i, &feed, err) || wml_accuracy_fail(out, WML_ACCURACY_SAMPLES, err);
    if (ok && !x) {
        x = WML_NEW_ARRAY(&arena, struct wml_tensor_view, a->n_outputs + 1);
        ok = (wml_run_new(a->before, feed.view.at, feed.view.len, &before, err) && wml_run_watched(before, 0, err)) ||
             wml_accuracy_fail(out, WML_ACCURACY_SOURCE_RUN, err);
        ok = ok && read_outputs(before, a->n_outputs, x, err);
        if (ok) keep(a, i, x);
    }
    ok = ok && wml_accuracy_convert(other, &feed, &fits, err);
    ok = ok && ((wml_run_new(other, fits.view.at, fits.view.len, &after, err) && wml_run_watched(after, 0, err)) ||
                wml_accuracy_fail(out, WML_ACCURACY_RESULT, err)) &&
         read_outputs(after, a->n_outputs, y, err);
    for (size_t k = 0; ok && k < out->row.len; k++) wml_accuracy_add(&out->row.at[k], &x[k], &y[k]);
    wml_run_free(before);
    wml_run_free(after);
    wml_feed_release(&fits);
    wml_feed_release(&feed);
    wml_arena_release(&arena);
    return ok;
}

static bool open_answers(struct wml_ctx *cx, const char *before, const struct wml_samples_spec *samples, struct wml_answers *a,
                         struct wml_accuracy *out, struct wml_err *err)
{
    size_t n_inputs;
    a->cx = cx;
    if (!open_file(cx, before, &a->before, err)) return wml_accuracy_fail(out, WML_ACCURACY_SOURCE_LOAD, err);
    const struct wml_io *input = wml_session_inputs(a->before, &n_inputs);
    a->output = wml_session_outputs(a->before, &a->n_outputs);
    if (!wml_samples_open(samples, input, n_inputs, &a->samples, err)) return wml_accuracy_fail(out, WML_ACCURACY_SAMPLES, err);
    a->n_samples = wml_samples_count(a->samples);
    a->kept = WML_NEW_ARRAY(&a->arena, struct wml_tensor_view *, a->n_samples);
    return true;
}

void wml_accuracy_give_up(struct wml_accuracy *out)
{
    enum wml_accuracy_failed why = out->failed;
    wml_accuracy_release(out);
    out->failed = why;
}

bool wml_answers_open(struct wml_ctx *cx, const char *before, const struct wml_samples_spec *samples, struct wml_answers **out, struct wml_err *err)
{
    struct wml_answers *a = wml_xcalloc(1, sizeof *a);
    struct wml_accuracy none = {0};
    bool ok = open_answers(cx, before, samples, a, &none, err);
    if (!ok) wml_answers_close(a);
    *out = ok ? a : NULL;
    return ok;
}

bool wml_answers_compare(struct wml_answers *a, struct wml_session *after, struct wml_accuracy *out, struct wml_err *err)
{
    size_t n_after;
    bool ok = true;
    *out = (struct wml_accuracy){0};
    wml_session_outputs(after, &n_after);
    if (n_after != a->n_outputs) return wml_fail(err, WML_E_VERIFY, "the result has %zu outputs, the source %zu", n_after, a->n_outputs);
    wml_accuracy_start(out, a->output, a->n_outputs);
    for (size_t i = 0; ok && i < a->n_samples; i++) {
        wml_note_progress(a->cx, "Comparing", NULL, i, a->n_samples, "samples");
        ok = wml_check_cancel(a->cx, err) && one_sample(a, after, i, out, err);
        if (ok) out->samples++;
    }
    if (!ok) wml_accuracy_give_up(out);
    return ok;
}

void wml_answers_close(struct wml_answers *a)
{
    if (!a) return;
    for (size_t i = 0; i < a->n_samples; i++)
        for (size_t o = 0; a->kept[i] && o < a->n_outputs; o++) wml_view_free(&a->kept[i][o]);
    wml_samples_close(a->samples);
    wml_session_close(a->before);
    wml_arena_release(&a->arena);
    free(a);
}

void wml_accuracy_release(struct wml_accuracy *a)
{
    WML_VEC_RELEASE(&a->row);
    wml_arena_release(&a->arena);
    *a = (struct wml_accuracy){0};
}
