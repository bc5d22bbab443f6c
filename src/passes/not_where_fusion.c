/* Where(Not(c), a, b) -> Where(c, b, a). A Not with other readers stays, for them. */
#include "passes/match.h"

static bool visit(struct wml_pass_run *r, struct wml_node *n)
{
    struct wml_node *not = wml_node_is(n, "Where") && n->n_in == 3 ? wml_node_producer(n, 0) : NULL;
    if (!not || !wml_node_is(not, "Not") || !wml_node_in(not, 0)) return true;
    struct wml_value *a = n->in[1], *b = n->in[2];
    wml_node_set_input(n, 0, not->in[0]);
    wml_node_set_input(n, 1, b);
    wml_node_set_input(n, 2, a);
    wml_pass_applied(r, n->op_type, n->name);
    return true;
}

const struct wml_pass wml_pass_not_where_fusion = {
    .name = "not-where-fusion", .category = "misc", .pipe = "ort_graph", .ort_name = "NotWhereFusion", .level = 1, .on = true,
    .visit = visit, .summary = "Swap the branches of a Where instead of negating its condition",
};
