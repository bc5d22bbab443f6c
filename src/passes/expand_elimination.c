/* An Expand to the shape that is there already goes. */
#include "passes/match.h"

static bool visit(struct wml_pass_run *r, struct wml_node *n)
{
    if (!wml_node_is(n, "Expand") || !wml_node_in(n, 0) || !wml_node_out(n, 0)) return true;
    if (wml_same_type(n->in[0], n->out[0]) && wml_bypass(n, n->in[0])) wml_pass_applied(r, n->op_type, n->name);
    return true;
}

const struct wml_pass wml_pass_expand_elimination = {
    .name = "expand-elimination", .category = "elimination", .pipe = "ort_graph", .ort_name = "ExpandElimination", .level = 1,
    .on = true, .visit = visit, .summary = "Remove an Expand to the shape that is there already",
};
