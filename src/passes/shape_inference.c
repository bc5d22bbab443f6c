/* Types and shapes of every value, from the oracle. They are kept in the saved file. */
#include "passes/match.h"

static bool run(struct wml_pass_run *r, struct wml_err *err)
{
    size_t n_set = 0;
    struct wml_err why = {0};
    (void)err;
    if (!r->env->infer_types) return wml_pass_skip(r, "ONNX Runtime is not at hand");
    if (!r->env->infer_types(r->env->arg, r->model, &n_set, &why))
        return wml_pass_skip(r, "ORT cannot tell: %.220s", why.msg);
    r->applied = n_set;
    return true;
}

const struct wml_pass wml_pass_shape_inference = {
    .name = "shape-inference", .category = "graph", .on = true, .run = run,
    .summary = "Find the type and shape of every value",
};
