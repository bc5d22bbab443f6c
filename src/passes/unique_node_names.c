/* Equal node names: the checker passes them, ORT refuses them. Names are labels, so later ones change. */
#include "passes/match.h"

static bool run(struct wml_pass_run *r, struct wml_err *err)
{
    (void)err;
    r->applied = wml_model_unique_node_names(r->model);
    return true;
}

const struct wml_pass wml_pass_unique_node_names = {
    .name = "unique-node-names", .category = "graph", .on = true, .run = run,
    .summary = "Give every node a name of its own: ORT refuses equal ones",
};
