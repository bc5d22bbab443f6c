/* LayerNormalization of a sum becomes com.microsoft::SkipLayerNormalization. Where others read the sum too, it
 * comes out as the operator's fourth output. */
#include "passes/pattern.h"

static bool is_known(const struct wml_value *a, const struct wml_value *b)
{
    return wml_value_rank(a) == 3 && wml_same_type(a, b) && (wml_value_elem(a) == WML_F32 || wml_value_elem(a) == WML_F16);
}

/* A vector as long as the last axis of x. */
static bool is_vector(const struct wml_value *v, const struct wml_value *x)
{
    const struct wml_tensor *t = wml_constant_of(v);
    return t && t->dims.len == 1 && t->dims.at[0] == wml_value_axis(x, 2).size;
}

static bool visit(struct wml_pass_run *r, struct wml_node *n)
{
    struct wml_node *add = wml_node_is(n, "LayerNormalization") ? wml_node_producer(n, 0) : NULL;
    if (!add || !wml_node_is(add, "Add") || add->graph != n->graph || n->n_out != 1) return true;
    struct wml_value *x = wml_node_in(add, 0), *skip = wml_node_in(add, 1), *sum = add->out[0];
    int64_t axis = wml_attr_int(n, "axis", -1);
    if (!is_known(x, skip) || (axis != -1 && axis != 2)) {
        wml_pass_refuse(r, n, "not two operands of the same type and rank 3, or not over the last axis");
        return true;
    }
    if (!is_vector(wml_node_in(n, 1), x) || (wml_node_in(n, 2) && !is_vector(n->in[2], x))) return true;
    if (sum->n_outputs || sum->pinned) return true;
    struct wml_node *s = wml_node_new(n, "com.microsoft", "SkipLayerNormalization");
    s->name = n->name;
    n->name = WML_STR("");
    s->metadata = n->metadata;
    wml_attr_set_float(s, "epsilon", wml_attr_float(n, "epsilon", 1e-5f));
    wml_node_set_input(s, 0, x);
    wml_node_set_input(s, 1, skip);
    wml_node_set_input(s, 2, n->in[1]);
    if (wml_node_in(n, 2)) wml_node_set_input(s, 3, n->in[2]);
    wml_node_take_output(s, 0, n->out[0]);
    wml_pass_applied(r, n->op_type, s->name);
    wml_node_remove(n);
    if (sum->n_uses) {
        /* Its other readers may stand before the new node; the engine sorts. */
        wml_node_take_output(s, 3, sum);
    }
    wml_node_remove(add);
    wml_pass_use_contrib(r);
    return true;
}

static bool run(struct wml_pass_run *r, struct wml_err *err)
{
    (void)err;
    return wml_pass_each(r, visit) && wml_graph_sort(r->model->graph, err);
}

const struct wml_pass wml_pass_skip_layer_norm_fusion = {
    .name = "skip-layer-norm-fusion", .category = "layer_norm", .pipe = "ort_graph", .ort_name = "SkipLayerNormFusion", .level = 2,
    .makes = WML_MAKES_CONTRIB, .needs = "layer-norm-fusion", .run = run,
    .summary = "Turn Add and LayerNormalization into SkipLayerNormalization of com.microsoft",
};
