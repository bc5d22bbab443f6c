/* Folding for a compiler that wants shapes as constants and leaves all other arithmetic to itself: shapes of known
 * sizes, and integer and boolean arithmetic on constants. Only in models that compute with shapes at all. */
#include "passes/folding.h"

static bool run(struct wml_pass_run *r, struct wml_err *err)
{
    bool found = false;
    (void)err;
    for (const struct wml_node *n = r->model->graph->first; n && !found; n = n->next) found = wml_node_is(n, "Shape");
    if (!found) return r->round || wml_pass_skip(r, "the graph has no Shape");
    return wml_fold_shapes(r) && wml_fold_constants(r, true);
}

const struct wml_pass wml_pass_cgc_constant_folding = {
    .name = "cgc-constant-folding", .category = "rewrite", .pipe = "cgir_rewrite", .cgc = true, .run = run,
    .summary = "Compute shapes and integer arithmetic on constants, nothing else",
};
