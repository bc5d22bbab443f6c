/* Shape of a value whose sizes are known is a constant; so is a single size picked out of it. */
#include "passes/folding.h"

static void replace_by_ints(struct wml_pass_run *r, struct wml_node *n, struct wml_tensor *t)
{
    struct wml_value *out = n->out[0];
    struct wml_value *v = wml_graph_add_init(n->graph, out->name, t);
    wml_value_replace_uses(out, v);
    wml_node_remove(n);
    wml_pass_applied(r, n->op_type, n->name);
}

static int64_t clamp(int64_t at, int64_t rank)
{
    if (at < 0) at += rank;
    return at < 0 ? 0 : at > rank ? rank : at;
}

static bool fold_shape(struct wml_pass_run *r, struct wml_node *n)
{
    const struct wml_value *x = wml_node_in(n, 0);
    int64_t rank = x ? wml_value_rank(x) : -1, *sizes;
    if (rank < 0) return true;
    int64_t from = clamp(wml_attr_int(n, "start", 0), rank), to = clamp(wml_attr_int(n, "end", rank), rank);
    sizes = WML_NEW_ARRAY(r->scratch, int64_t, (size_t)rank + 1);
    size_t count = 0;
    for (int64_t i = from; i < to; i++) {
        struct wml_axis a = wml_value_axis(x, (size_t)i);
        if (a.size < 0) return true;
        sizes[count++] = a.size;
    }
    replace_by_ints(r, n, wml_tensor_i64s(r->model, count, sizes));
    return true;
}

/* Gather(Shape(x), i): one size, or some, although others are unknown. */
static bool fold_gather(struct wml_pass_run *r, struct wml_node *n)
{
    const struct wml_node *shape = wml_node_producer(n, 0);
    const struct wml_value *index = wml_node_in(n, 1);
    int64_t *at, *sizes, one;
    size_t count;
    if (!shape || !wml_node_is(shape, "Shape") || wml_attr_int(n, "axis", 0) != 0) return true;
    const struct wml_value *x = wml_node_in(shape, 0);
    int64_t rank = x ? wml_value_rank(x) : -1, from, to;
    struct wml_tensor *t = wml_constant_of(index);
    if (rank < 0 || !t || t->dims.len > 1 || !wml_constant_ints(r, index, &at, &count)) return true;
    from = clamp(wml_attr_int(shape, "start", 0), rank), to = clamp(wml_attr_int(shape, "end", rank), rank);
    sizes = WML_NEW_ARRAY(r->scratch, int64_t, count + 1);
    for (size_t i = 0; i < count; i++) {
        int64_t axis = at[i] < 0 ? at[i] + to : at[i] + from;
        if (axis < from || axis >= to) return true;
        sizes[i] = wml_value_axis(x, (size_t)axis).size;
        if (sizes[i] < 0) return true;
    }
    one = count ? sizes[0] : 0;
    replace_by_ints(r, n, t->dims.len ? wml_tensor_i64s(r->model, count, sizes)
                                      : wml_tensor_copy(r->model, WML_I64, 0, NULL, &one, sizeof one, NULL));
    return true;
}

static bool visit(struct wml_pass_run *r, struct wml_node *n)
{
    if (n->n_out != 1 || !n->out[0] || n->out[0]->n_outputs || n->out[0]->pinned) return true;
    if (wml_node_is(n, "Shape")) return fold_shape(r, n);
    if (wml_node_is(n, "Gather")) return fold_gather(r, n);
    return true;
}

bool wml_fold_shapes(struct wml_pass_run *r)
{
    return wml_pass_each(r, visit);
}

static bool run(struct wml_pass_run *r, struct wml_err *err)
{
    (void)err;
    return wml_fold_shapes(r);
}

const struct wml_pass wml_pass_shape_folding = {
    .name = "shape-folding", .category = "graph", .on = true, .run = run,
    .summary = "Replace Shape of known sizes by constants",
};
