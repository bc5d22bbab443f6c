/* An Expand to the shape that is there already goes. */
#include "passes/match.h"

static bool visit(void *arg, struct wml_node *n)
{
    struct wml_pass_run *r = arg;
    if (!wml_node_is(n, "Expand") || !wml_node_in(n, 0) || !wml_node_out(n, 0)) return true;
    if (wml_same_type(n->in[0], n->out[0]) && wml_bypass(n, n->in[0])) wml_pass_applied(r, n->op_type, n->name);
    return true;
}

static bool run(struct wml_pass_run *r, struct wml_err *err)
{
    (void)err;
    return wml_pass_each(r, visit);
}

const struct wml_pass wml_pass_expand_elimination = {
    .name = "expand-elimination", .category = "elimination", .pipe = "ort_graph", .ort_name = "ExpandElimination", .level = 1,
    .on = true, .run = run, .summary = "Remove an Expand to the shape that is there already",
};
