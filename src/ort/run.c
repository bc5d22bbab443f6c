/* ort/run.c - inference over values made once. Outputs whose shape the model fixes get their memory before
 * the first run; the others are made by ORT in each run and released before the next. When all are fixed,
 * values are bound to names once, which saves ORT the lookup in each run. */
#include "ort/internal.h"

#include <inttypes.h>

#include "base/num.h"

struct wml_run {
    struct wml_session *s;
    OrtValue **input; /* the fed ones, as many as input_name */
    const char **input_name;
    size_t n_fed;
    OrtValue **output; /* n_outputs */
    bool *kept;        /* output i keeps its memory between runs */
    size_t *fresh;     /* the others */
    size_t n_fresh;
    OrtIoBinding *binding; /* when no output is fresh */
    OrtRunOptions *options; /* of a watched run, else NULL */
    bool ran;
    struct wml_arena arena; /* of this object */
    struct wml_arena views; /* of wml_run_output; until the next run */
};

static bool fill_strings(const struct wml_ort *o, const struct wml_tensor_view *v, OrtValue *value, struct wml_err *err)
{
    uint64_t n;
    wml_dims_count(v->dim, v->rank, &n);
    const char *const *text = v->data;
    return !n || wml_ort_ok(o, o->api->FillStringTensor(value, text, (size_t)n), WML_E_RUN, err);
}

static bool make_input(const struct wml_ort *o, const struct wml_io *io, const struct wml_tensor_view *v,
                       OrtValue **out, struct wml_err *err)
{
    ONNXTensorElementDataType type = (ONNXTensorElementDataType)v->dtype;
    if (io->kind != WML_IO_TENSOR) return wml_fail(err, WML_E_UNSUPPORTED, "input \"%s\" is no dense tensor", io->name);
    uint64_t count, bytes = 0;
    for (size_t i = 0; i < v->rank; i++)
        if (v->dim[i] < 0) return wml_fail(err, WML_E_USAGE, "input \"%s\" has a negative dimension", io->name);
    if (!wml_dims_count(v->dim, v->rank, &count)) return wml_fail(err, WML_E_USAGE, "input \"%s\" is too large", io->name);
    if (v->dtype == WML_STRING)
        return wml_ort_ok(o, o->api->CreateTensorAsOrtValue(o->alloc, v->dim, v->rank, type, out), WML_E_RUN, err) &&
               fill_strings(o, v, *out, err);
    if (!wml_dtype_bytes(v->dtype, count, &bytes) || bytes > v->bytes)
        return wml_fail(err, WML_E_INTERNAL, "input \"%s\": %zu bytes given, %" PRIu64 " needed", io->name, v->bytes,
                        bytes);
    /* ORT's signature lacks const; inputs are never written. */
    void *data;
    memcpy(&data, &v->data, sizeof data);
    return wml_ort_ok(o, o->api->CreateTensorWithDataAsOrtValue(o->cpu, data, v->bytes, v->dim, v->rank, type, out),
                      WML_E_RUN, err);
}

/* ORT hands such an output on, and leaves memory that was made for it as it was. */
static bool is_input(const struct wml_session *s, const struct wml_io *io)
{
    for (size_t i = 0; i < s->n_inputs + s->n_optional; i++)
        if (!strcmp(s->input[i].name, io->name)) return true;
    return false;
}

/* NULL when the shape is not fixed, or ORT cannot make such a tensor: then each run makes it. */
static OrtValue *make_output(const struct wml_session *s, const struct wml_io *io)
{
    const struct wml_ort *o = s->o;
    if (is_input(s, io)) return NULL;
    if (io->kind != WML_IO_TENSOR || !io->has_shape || !wml_dtype_info(io->dtype)->bits) return NULL;
    for (size_t i = 0; i < io->rank; i++)
        if (io->dim[i] < 0) return NULL;
    OrtValue *value = NULL;
    if (!wml_ort_ok(
            o,
            o->api->CreateTensorAsOrtValue(o->alloc, io->dim, io->rank, (ONNXTensorElementDataType)io->dtype, &value),
            WML_E_RUN, NULL))
        return NULL;
    return value;
}

/* NULL when ORT cannot: Run does the same, a little slower. */
static OrtIoBinding *bind(const struct wml_run *r)
{
    const struct wml_session *s = r->s;
    const struct wml_ort *o = s->o;
    OrtIoBinding *b = NULL;
    if (r->n_fresh || !s->n_outputs || !wml_ort_ok(o, o->api->CreateIoBinding(s->session, &b), WML_E_RUN, NULL))
        return NULL;
    bool ok = true;
    for (size_t i = 0; i < r->n_fed && ok; i++)
        ok = wml_ort_ok(o, o->api->BindInput(b, r->input_name[i], r->input[i]), WML_E_RUN, NULL);
    for (size_t i = 0; i < s->n_outputs && ok; i++)
        ok = wml_ort_ok(o, o->api->BindOutput(b, s->output_name[i], r->output[i]), WML_E_RUN, NULL);
    if (ok) return b;
    o->api->ReleaseIoBinding(b);
    return NULL;
}

bool wml_run_new(struct wml_session *s, const struct wml_tensor_view *input, size_t n, struct wml_run **out,
                 struct wml_err *err)
{
    *out = NULL;
    if (n < s->n_inputs || n > s->n_inputs + s->n_optional)
        return wml_fail(err, WML_E_USAGE, "%s has %zu inputs, %zu were given", s->label, s->n_inputs, n);
    for (size_t i = 0; i < s->n_inputs; i++)
        if (!input[i].data)
            return wml_fail(err, WML_E_USAGE, "%s: input \"%s\" got no data", s->label, s->input[i].name);
    struct wml_run *r = wml_xcalloc(1, sizeof *r);
    r->s = s;
    r->input = WML_NEW_ARRAY(&r->arena, OrtValue *, n + 1);
    r->input_name = WML_NEW_ARRAY(&r->arena, const char *, n + 1);
    r->output = WML_NEW_ARRAY(&r->arena, OrtValue *, s->n_outputs + 1);
    r->kept = WML_NEW_ARRAY(&r->arena, bool, s->n_outputs + 1);
    r->fresh = WML_NEW_ARRAY(&r->arena, size_t, s->n_outputs + 1);
    for (size_t i = 0; i < n; i++) {
        if (!input[i].data) continue;
        if (!make_input(s->o, &s->input[i], &input[i], &r->input[r->n_fed], err)) {
            wml_run_free(r);
            return wml_wrap(err, "%s", s->label);
        }
        r->input_name[r->n_fed++] = s->input[i].name;
    }
    for (size_t i = 0; i < s->n_outputs; i++) {
        r->output[i] = make_output(s, &s->output[i]);
        r->kept[i] = r->output[i] != NULL;
        if (!r->kept[i]) r->fresh[r->n_fresh++] = i;
    }
    r->binding = bind(r);
    *out = r;
    return true;
}

static void drop_fresh(struct wml_run *r)
{
    for (size_t i = 0; i < r->n_fresh; i++) {
        OrtValue **v = &r->output[r->fresh[i]];
        if (*v) r->s->o->api->ReleaseValue(*v);
        *v = NULL;
    }
}

static OrtStatus *call(struct wml_run *r)
{
    struct wml_session *s = r->s;
    if (r->binding) return s->o->api->RunWithBinding(s->session, r->options, r->binding);
    return s->o->api->Run(s->session, r->options, r->input_name, (const OrtValue *const *)r->input, r->n_fed,
                          s->output_name, s->n_outputs, r->output);
}

/* A model may promise shapes that it does not keep. Then no output is made in advance, and we try again. */
static bool run_again(struct wml_run *r, OrtStatus *st, struct wml_err *err)
{
    struct wml_session *s = r->s;
    struct wml_str why = wml_str(s->o->api->GetErrorMessage(st));
    bool shape = wml_str_has(why, "computed output shape") || wml_str_has(why, "shape verification failed");
    if (shape && r->n_fresh < s->n_outputs) {
        s->o->api->ReleaseStatus(st);
        if (r->binding) s->o->api->ReleaseIoBinding(r->binding);
        r->binding = NULL;
        r->n_fresh = 0;
        for (size_t i = 0; i < s->n_outputs; i++) {
            r->kept[i] = false;
            r->fresh[r->n_fresh++] = i;
        }
        drop_fresh(r);
        st = call(r);
    }
    return wml_ort_ok(s->o, st, WML_E_RUN, err) || wml_wrap(err, "cannot run %s", s->label);
}

bool wml_run_once(struct wml_run *r, struct wml_err *err)
{
    if (r->n_fresh && r->ran) drop_fresh(r);
    if (r->views.used) wml_arena_reset(&r->views);
    r->ran = true;
    OrtStatus *st = call(r);
    return WML_LIKELY(!st) ? true : run_again(r, st, err);
}

struct watch {
    struct wml_run *r;
    uint64_t limit_ms;
    struct wml_mutex *lock;
    struct wml_cond *wake;
    bool done, late;
};

static void watch(void *arg)
{
    enum { LOOK_MS = 50 };
    struct watch *w = arg;
    const struct wml_ort *o = w->r->s->o;
    uint64_t begin = wml_now_ns();
    wml_mutex_lock(w->lock);
    while (!w->done) {
        wml_cond_wait(w->wake, w->lock, LOOK_MS);
        w->late = w->limit_ms && (wml_now_ns() - begin) / 1000000 >= w->limit_ms;
        if (w->done || (!w->late && wml_check_cancel(o->cx, NULL))) continue;
        wml_ort_ok(o, o->api->RunOptionsSetTerminate(w->r->options), WML_E_RUNTIME, NULL);
        break;
    }
    wml_mutex_unlock(w->lock);
}

bool wml_run_watched(struct wml_run *r, uint64_t limit_ms, struct wml_err *err)
{
    const struct wml_ort *o = r->s->o;
    struct watch w = {.r = r, .limit_ms = limit_ms};
    struct wml_thread *thread = NULL;
    if (!wml_ort_ok(o, o->api->CreateRunOptions(&r->options), WML_E_RUNTIME, err)) return false;
    w.lock = wml_mutex_new();
    w.wake = wml_cond_new();
    bool ok = wml_thread_start(&thread, watch, &w, err) && wml_run_once(r, err);
    wml_mutex_lock(w.lock);
    w.done = true;
    wml_cond_signal(w.wake);
    wml_mutex_unlock(w.lock);
    wml_thread_join(thread);
    wml_mutex_free(w.lock);
    wml_cond_free(w.wake);
    o->api->ReleaseRunOptions(r->options);
    r->options = NULL;
    if (ok) return true;
    if (w.late) wml_fail(err, WML_E_TIMEOUT, "one run takes more than %" PRIu64 " s", limit_ms / 1000);
    else wml_check_cancel(o->cx, err);
    return false;
}

bool wml_run_output(struct wml_run *r, size_t i, struct wml_tensor_view *out, struct wml_err *err)
{
    if (i >= r->s->n_outputs) return wml_fail(err, WML_E_INTERNAL, "%s has no output %zu", r->s->label, i);
    if (!r->ran) return wml_fail(err, WML_E_INTERNAL, "%s has not run yet", r->s->label);
    return wml_ort_view(r->s->o, r->output[i], &r->views, out, err) ||
           wml_wrap(err, "output \"%s\"", r->s->output[i].name);
}

void wml_run_free(struct wml_run *r)
{
    if (!r) return;
    const OrtApi *api = r->s->o->api;
    if (r->binding) api->ReleaseIoBinding(r->binding);
    for (size_t i = 0; r->input[i]; i++) /* a NULL ends it, also when one could not be made */
        api->ReleaseValue(r->input[i]);
    for (size_t i = 0; i < r->s->n_outputs; i++)
        if (r->output[i]) api->ReleaseValue(r->output[i]);
    wml_arena_release(&r->views);
    wml_arena_release(&r->arena);
    free(r);
}
