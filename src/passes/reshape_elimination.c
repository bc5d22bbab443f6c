/* Reshapes to the shape that is there already go; of two in a row only the last counts. */
#include "passes/match.h"

static bool is_reshape(const struct wml_node *n)
{
    return wml_node_is(n, "Reshape") || wml_node_is(n, "Flatten") || wml_node_is(n, "Squeeze") ||
           wml_node_is(n, "Unsqueeze");
}

/* The target shape says every size by itself: no 0, which means "as before". */
static bool is_absolute(struct wml_pass_run *r, const struct wml_node *n)
{
    int64_t *dim;
    size_t rank;
    if (!wml_node_is(n, "Reshape") || !wml_constant_ints(r, wml_node_in(n, 1), &dim, &rank)) return false;
    for (size_t i = 0; i < rank; i++)
        if (dim[i] == 0) return false;
    return true;
}

static bool visit(void *arg, struct wml_node *n)
{
    struct wml_pass_run *r = arg;
    if (!is_reshape(n) || !wml_node_in(n, 0) || !wml_node_out(n, 0)) return true;
    int64_t count;
    if (wml_same_type(n->in[0], n->out[0]) && wml_value_count(n->in[0], &count)) {
        if (wml_bypass(n, n->in[0])) wml_pass_applied(r, n->op_type, n->name);
        return true;
    }
    struct wml_node *before = wml_node_producer(n, 0);
    if (!before || !is_reshape(before) || before->graph != n->graph || !is_absolute(r, n)) return true;
    wml_node_set_input(n, 0, before->in[0]);
    wml_prune(before);
    wml_pass_applied(r, n->op_type, n->name);
    return true;
}

static bool run(struct wml_pass_run *r, struct wml_err *err)
{
    (void)err;
    return wml_pass_each(r, visit);
}

const struct wml_pass wml_pass_reshape_elimination = {
    .name = "reshape-elimination", .category = "elimination", .on = true, .reference_on = true, .run = run,
    .summary = "Remove Reshape, Flatten, Squeeze, Unsqueeze that change nothing, join two in a row",
};
