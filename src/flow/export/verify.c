/* flow/export/verify.c - the written model against outputs that somebody else computed: in.<name> and out.<name> of a
 * safetensors file. Where the model takes other integers than the file holds, they are converted. */
#include "flow/export/internal.h"

#include "flow/compare.h"
#include "ort/ort.h"
#include "ort/session.h"

static const struct wml_weight *reference(struct wml_weights *w, const char *kind, const char *name, struct wml_arena *a)
{
    return wml_weights_use(w, wml_arena_fmt(a, "%s.%s", kind, name));
}

/* The elements as the model's type, in aligned memory. */
static bool input_view(const struct wml_weight *w, const struct wml_io *io, struct wml_tensor_view *out, struct wml_arena *a,
                       struct wml_err *err)
{
    uint64_t n = 1, bytes = 0;
    for (size_t i = 0; i < w->rank; i++) n *= (uint64_t)w->dims[i];
    if (!wml_dtype_bytes(io->dtype, n, &bytes) || bytes > 1u << 30)
        return wml_fail(err, WML_E_UNSUPPORTED, "the reference's input '%s' is too large", io->name);
    void *data = wml_arena_alloc(a, (size_t)bytes + 8);
    if (io->dtype == w->dtype) memcpy(data, w->bytes.ptr, (size_t)bytes);
    else
        for (size_t i = 0; i < (size_t)n; i++) wml_dtype_store(io->dtype, data, i, wml_dtype_load(w->dtype, w->bytes.ptr, i));
    *out = (struct wml_tensor_view){.dtype = io->dtype, .rank = w->rank, .dim = w->dims, .data = data, .bytes = (size_t)bytes, .is_tensor = true};
    return true;
}

static bool bind(struct wml_export_part *p, struct wml_session *s, struct wml_weights *w, struct wml_run **out, struct wml_err *err)
{
    size_t n = 0;
    const struct wml_io *io = wml_session_inputs(s, &n);
    struct wml_tensor_view *view = WML_NEW_ARRAY(&p->run->arena, struct wml_tensor_view, n);
    for (size_t i = 0; i < n; i++) {
        const struct wml_weight *t = reference(w, "in", io[i].name, &p->run->arena);
        if (!t) return wml_fail(err, WML_E_USAGE, "%s has no 'in.%s'", p->run->a->verify_against, io[i].name);
        if (!input_view(t, &io[i], &view[i], &p->run->arena, err)) return false;
    }
    return wml_run_new(s, view, n, out, err);
}

static void compare(struct wml_export_part *p, const char *name, const struct wml_weight *w, const struct wml_tensor_view *v)
{
    uint64_t n = 1, have = 1;
    struct wml_export_verified row = {.name = name};
    for (size_t i = 0; i < w->rank; i++) n *= (uint64_t)w->dims[i];
    bool shape = v->rank == w->rank;
    for (size_t i = 0; i < v->rank; i++) have *= (uint64_t)v->dim[i], shape = shape && v->dim[i] == w->dims[i];
    if (v->is_tensor && v->data && shape && n == have) {
        struct wml_compare c;
        wml_compare(w->dtype, w->bytes.ptr, v->dtype, v->data, n, &c);
        row.compared = true;
        row.max_abs = c.max_abs;
        row.cosine = c.cosine;
        row.largest = wml_largest(w->dtype, w->bytes.ptr, n);
        row.same = !c.mismatched && !c.not_finite && c.max_abs <= p->run->a->tolerance * row.largest;
    }
    WML_PUSH_IN(&p->run->arena, &p->verified, row);
}

static bool compare_outputs(struct wml_export_part *p, struct wml_session *s, struct wml_run *run, struct wml_weights *w, struct wml_err *err)
{
    size_t n = 0, compared = 0;
    const struct wml_io *io = wml_session_outputs(s, &n);
    const struct wml_export_verified *bad = NULL;
    for (size_t i = 0; i < n; i++) {
        const char *name = wml_arena_cstr(&p->run->arena, wml_str(io[i].name));
        const struct wml_weight *t = reference(w, "out", name, &p->run->arena);
        struct wml_tensor_view v;
        if (!t) continue;
        if (!wml_run_output(run, i, &v, err)) return false;
        compare(p, name, t, &v);
        compared++;
    }
    if (!compared) return wml_fail(err, WML_E_USAGE, "%s has no out.<name> of any of the model's outputs", p->run->a->verify_against);
    for (size_t i = 0; i < p->verified.len; i++)
        if (!p->verified.at[i].same) bad = &p->verified.at[i];
    if (!bad) return true;
    if (!bad->compared) return wml_fail(err, WML_E_VERIFY, "output '%s' has another shape than the reference", bad->name);
    wml_fail(err, WML_E_VERIFY, "output '%s' differs from the reference by %.3g, of values up to %.3g (allowed: %.3g of that)", bad->name,
             bad->max_abs, bad->largest, p->run->a->tolerance);
    return wml_hint(err, "nothing was written; --tolerance allows more");
}

bool wml_export_verify(struct wml_export_part *p, const char *file, struct wml_err *err)
{
    struct wml_ort *ort = NULL;
    struct wml_session *s = NULL;
    struct wml_run *run = NULL;
    struct wml_weights *w = NULL;
    const struct wml_model_source source = {.path = file};
    const struct wml_session_opts opts = {0};
    wml_note_progress(p->run->cx, "Verifying", p->staged.name, 0, 0, NULL);
    bool ok = wml_weights_open(p->run->a->verify_against, &w, err) && wml_ort_open(p->run->cx, &ort, err) &&
              wml_session_open(ort, &source, &opts, &s, err) && bind(p, s, w, &run, err) && wml_run_watched(run, 0, err) &&
              compare_outputs(p, s, run, w, err);
    wml_run_free(run);
    wml_session_close(s);
    wml_weights_close(w);
    return ok;
}
