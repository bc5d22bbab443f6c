/* Another operator set: constants are computed and types found first, since both make more possible; then the graph is
 * converted, and the passes see the result. */
#include <inttypes.h>

#include "flow/optimize/internal.h"
#include "graph/edit.h"
#include "opset/opset.h"
#include "os/sys.h"
#include "ort/session.h"

/* The passes that find out what is there, in the words of the model's own opset, and drop what is then unused. */
static bool prepare(struct wml_optimize_run *r, const struct wml_env *env, struct wml_err *err)
{
    static const char *const helps[] = {"shape-inference", "shape-folding", "constant-folding", "dead-code-elimination"};
    enum wml_pass_choice *choice = WML_NEW_ARRAY(&r->arena, enum wml_pass_choice, wml_n_passes);
    struct wml_pass_result *result = WML_NEW_ARRAY(&r->arena, struct wml_pass_result, wml_n_passes);
    struct wml_passes_opts opts = {.env = env, .choice = choice, .cx = r->cx, .now_ns = wml_now_ns};
    for (size_t i = 0; i < wml_n_passes; i++) {
        choice[i] = WML_PASS_OFF;
        for (size_t k = 0; k < WML_COUNT(helps); k++)
            if (strcmp(wml_passes[i]->name, helps[k]) == 0) choice[i] = r->choice[i];
    }
    return wml_passes_run(&r->model, &opts, result, err);
}

static bool loads(struct wml_optimize_run *r, struct wml_model *m, struct wml_err *err)
{
    struct wml_session *s = NULL;
    struct wml_session_opts opts = {0};
    bool ok = wml_flow_session(r->cx, m, NULL, &opts, &s, err);
    wml_session_close(s);
    return ok;
}

/* Where types were not known, ONNX Runtime judges, unless it knows no way with the source either. */
static bool judge(struct wml_optimize_run *r, struct wml_err *err)
{
    struct wml_model *source = NULL;
    struct wml_err why = {0}, ignored = {0};
    if (loads(r, r->model, &why)) return true;
    bool fault = wml_onnx_load(r->args->model, &source, &ignored) && loads(r, source, &ignored);
    wml_model_free(source);
    if (!fault) return true;
    *err = why;
    return wml_wrap(err, "in opset %" PRId64 " the model does not load", r->args->opset);
}

bool wml_optimize_opset(struct wml_optimize_run *r, const struct wml_env *env, struct wml_err *err)
{
    int64_t target = r->args->opset;
    size_t n_unsure;
    r->opset_before = wml_model_opset(r->model, "");
    if (!target || target == r->opset_before) return true;
    if (!prepare(r, env, err)) return false;
    r->oracle.open = r->oracle.nodes = 0;
    if (!wml_opset_convert(r->model, target, &n_unsure, err))
        return wml_wrap(err, "%s (opset %" PRId64 ")", r->args->model, r->opset_before);
    return !n_unsure || target > r->opset_before || judge(r, err);
}
