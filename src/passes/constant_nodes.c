/* Constant nodes become initializers: the same bytes, not copied. Strings and sparse values stay nodes. */
#include "passes/match.h"

/* The tensor that a Constant node stands for, or NULL. */
static struct wml_tensor *value_of(struct wml_pass_run *r, const struct wml_node *n)
{
    struct wml_model *m = r->model;
    struct wml_tensor *t = wml_attr_tensor(n, "value");
    const struct wml_attr *a;
    size_t len;
    if (t) return t->dtype == WML_STRING ? NULL : wml_tensor_share(m, t);
    if ((a = wml_attr_find(n, "value_float")) && !a->ref.len) return wml_tensor_f32(m, a->f);
    if ((a = wml_attr_find(n, "value_int")) && !a->ref.len)
        return wml_tensor_copy(m, WML_I64, 0, NULL, &a->i, sizeof a->i, NULL);
    if ((a = wml_attr_find(n, "value_ints")) && !a->ref.len) {
        const int64_t *v = wml_attr_ints(n, "value_ints", &len);
        return wml_tensor_i64s(m, len, v);
    }
    if ((a = wml_attr_find(n, "value_floats")) && !a->ref.len) {
        const float *v = wml_attr_floats(n, "value_floats", &len);
        int64_t dim = (int64_t)len;
        return wml_tensor_copy(m, WML_F32, 1, &dim, v, len * sizeof *v, NULL);
    }
    return NULL;
}

static bool visit(struct wml_pass_run *r, struct wml_node *n)
{
    if (!wml_node_is(n, "Constant") || n->n_out != 1 || !n->out[0] || n->out[0]->n_outputs || n->out[0]->pinned)
        return true;
    struct wml_tensor *t = value_of(r, n);
    if (!t) return true;
    struct wml_graph *g = n->graph;
    struct wml_value *old = n->out[0];
    struct wml_str name = old->name;
    struct wml_value *v = wml_graph_add_init(g, name, t);
    wml_value_replace_uses(old, v);
    wml_node_remove(n);
    wml_value_rename(v, name);
    wml_pass_applied(r, n->op_type, n->name);
    return true;
}

const struct wml_pass wml_pass_constant_nodes = {
    .name = "constant-nodes", .category = "graph", .on = true, .visit = visit,
    .summary = "Turn Constant nodes into initializers",
};
