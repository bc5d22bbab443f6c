/* Reshapes to the shape that is there already go; of two in a row only the last counts: it is a Reshape to what is known
 * of its result, where it says less by itself. */
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

/* The result's sizes as a target shape, at most one of them open; NULL: not known. */
static struct wml_tensor *known_shape(struct wml_pass_run *r, const struct wml_value *v)
{
    const int64_t rank = wml_value_rank(v);
    size_t open = 0;
    if (rank < 0) return NULL;
    int64_t *dims = WML_NEW_ARRAY(r->scratch, int64_t, (size_t)rank + 1);
    for (size_t i = 0; i < (size_t)rank; i++) {
        dims[i] = wml_value_axis(v, i).size;
        if (dims[i] == 0) return NULL; /* "as before" */
        if (dims[i] < 0) dims[i] = -1, open++;
    }
    return open > 1 ? NULL : wml_tensor_i64s(r->model, (size_t)rank, dims);
}

/* Alone it may stay what it is: transposes move through Squeeze and Unsqueeze. */
static bool make_absolute(struct wml_pass_run *r, struct wml_node *n)
{
    if (wml_model_opset(r->model, "") < 5) return false; /* the shape is an attribute */
    struct wml_tensor *shape = known_shape(r, n->out[0]);
    if (!shape) return false;
    while (n->attr.len) wml_attr_remove(n, wml_arena_cstr(r->scratch, n->attr.at[0]->name));
    wml_node_set_op(n, "", "Reshape");
    wml_node_set_input(n, 1, wml_graph_add_init(n->graph, WML_STR("shape"), shape));
    return true;
}

static bool visit(struct wml_pass_run *r, struct wml_node *n)
{
    if (!is_reshape(n) || !wml_node_in(n, 0) || !wml_node_out(n, 0)) return true;
    if (wml_same_type(n->in[0], n->out[0])) {
        if (wml_bypass(n, n->in[0])) wml_pass_applied(r, n->op_type, n->name);
        return true;
    }
    struct wml_node *before = wml_node_producer(n, 0);
    if (!before || !is_reshape(before) || before->graph != n->graph) return true;
    bool alone = wml_value_only_user(n->in[0]) == n;
    if (!is_absolute(r, n) && !(alone && make_absolute(r, n))) return true;
    wml_node_set_input(n, 0, before->in[0]);
    wml_prune(before);
    wml_pass_applied(r, n->op_type, n->name);
    return true;
}

const struct wml_pass wml_pass_reshape_elimination = {
    .name = "reshape-elimination", .category = "elimination", .on = true, .reference_on = true, .visit = visit,
    .summary = "Remove Reshape, Flatten, Squeeze, Unsqueeze that change nothing, join two in a row",
};
