/* An operator set imported twice in the same version is imported once. Two versions of one set are an error: nobody
 * can say which one is meant. */
#include "graph/graph.h"
#include "passes/match.h"

static bool is_same(struct wml_str a, struct wml_str b)
{
    bool onnx_a = !a.len || wml_str_is(a, "ai.onnx"), onnx_b = !b.len || wml_str_is(b, "ai.onnx");
    return (onnx_a && onnx_b) || wml_str_eq(a, b);
}

static bool run(struct wml_pass_run *r, struct wml_err *err)
{
    struct wml_opsets *o = &r->model->opset;
    for (size_t i = 0; i < o->len; i++)
        for (size_t k = i + 1; k < o->len; k++)
            if (is_same(o->at[i].domain, o->at[k].domain) && o->at[i].version != o->at[k].version)
                return wml_fail(err, WML_E_FORMAT, "operator set '%.*s' is imported in two versions", WML_ARG(o->at[i].domain));
    r->applied = wml_model_merge_opsets(r->model);
    return true;
}

const struct wml_pass wml_pass_deduplicate_opset_imports = {
    .name = "deduplicate-opset-imports", .category = "rewrite", .pipe = "cgir_rewrite", .cgc = true, .run = run,
    .summary = "Import every operator set once; two versions of one are an error",
};
