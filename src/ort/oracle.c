/* ort/oracle.c - questions about a model that ORT answers on the CPU: types, values of constant parts, what
 * its optimiser makes of it. Only the last one runs optimisations, and only it saves. */
#include "ort/oracle.h"

#include "ort/internal.h"

/* Prepared copies of weights speed up the second run, and there is none: weights stay in their file's map. */
static const struct wml_pair no_prepacking[] = {{"session.disable_prepacking", "1"}};

bool wml_oracle_types(struct wml_ort *o, const struct wml_model_source *m, struct wml_arena *arena,
                      struct wml_oracle_type **out, size_t *n, struct wml_err *err)
{
    /* One thread: a pool costs more than the question. */
    const struct wml_session_opts opts = {.threads = 1, .look_only = true};
    struct wml_session *s = NULL;
    *out = NULL;
    *n = 0;
    if (!wml_session_open(o, m, &opts, &s, err)) return false;
    struct wml_oracle_type *t = WML_NEW_ARRAY(arena, struct wml_oracle_type, s->n_outputs + 1);
    for (size_t i = 0; i < s->n_outputs; i++) {
        struct wml_io io = s->output[i];
        io.name = wml_arena_cstr(arena, wml_str(io.name));
        int64_t *dim = WML_NEW_ARRAY(arena, int64_t, io.rank + 1);
        const char **symbol = WML_NEW_ARRAY(arena, const char *, io.rank + 1);
        for (size_t k = 0; k < io.rank; k++) {
            dim[k] = io.dim[k];
            symbol[k] = io.symbol[k][0] ? wml_arena_cstr(arena, wml_str(io.symbol[k])) : "";
        }
        io.dim = dim;
        io.symbol = symbol;
        t[i].io = io;
    }
    *out = t;
    *n = s->n_outputs;
    wml_session_close(s);
    return true;
}

enum { EVAL_LIMIT_MS = 20000 }; /* what takes longer is not worth having beforehand */

struct owner { /* what the values of an evaluation live on */
    struct wml_session *s;
    struct wml_run *r;
};

bool wml_oracle_eval(struct wml_ort *o, const struct wml_model_source *m, struct wml_oracle_values *out,
                     struct wml_err *err)
{
    const struct wml_session_opts opts = {.threads = 1, .config = no_prepacking, .n_config = 1};
    memset(out, 0, sizeof *out);
    struct owner *w = wml_xcalloc(1, sizeof *w);
    out->owner = w;
    if (!wml_session_open(o, m, &opts, &w->s, err)) goto fail;
    if (w->s->n_inputs) {
        wml_fail(err, WML_E_INTERNAL, "evaluate: the model has the input \"%s\"", w->s->input[0].name);
        goto fail;
    }
    if (!wml_run_new(w->s, NULL, 0, &w->r, err) || !wml_run_watched(w->r, EVAL_LIMIT_MS, err)) goto fail;
    for (size_t i = 0; i < w->s->n_outputs; i++) {
        struct wml_tensor_view v;
        if (!wml_run_output(w->r, i, &v, err)) goto fail;
        struct wml_oracle_value value = {v.dtype, v.rank, v.dim, v.data, v.bytes, v.is_tensor && v.dtype != WML_STRING};
        WML_PUSH(&out->v, value);
    }
    return true;
fail:
    wml_oracle_values_release(out);
    return false;
}

void wml_oracle_values_release(struct wml_oracle_values *v)
{
    if (!v) return;
    struct owner *w = v->owner;
    if (w) {
        wml_run_free(w->r);
        wml_session_close(w->s);
        free(w);
    }
    WML_VEC_RELEASE(&v->v);
    v->owner = NULL;
}

bool wml_oracle_optimise(struct wml_ort *o, const struct wml_model_source *m, enum wml_opt_level level,
                         const char *disable, const char *output, struct wml_err *err)
{
    bool ok = false;
    OrtSessionOptions *so = NULL;
    OrtSession *session = NULL;
    struct wml_ort_path path = {0};
    const struct wml_session_opts opts = {.level = level, .threads = 1, .config = no_prepacking, .n_config = 1};
    if (!wml_ort_options(o, m, &opts, &so, err)) goto done;
    if (disable && disable[0] && !wml_ort_config(o, so, "optimization.disable_specified_optimizers", disable, err))
        goto done;
    if (!wml_ort_path_init(&path, output, err) ||
        !wml_ort_ok(o, o->api->SetOptimizedModelFilePath(so, path.ptr), WML_E_RUNTIME, err))
        goto done;
    ok = wml_ort_create(o, m, so, &session, err);
done:
    if (session) o->api->ReleaseSession(session);
    if (so) o->api->ReleaseSessionOptions(so);
    wml_ort_path_release(&path);
    return ok ? true : wml_wrap(err, "optimise with ONNX Runtime at level %s", wml_opt_level_name(level));
}
