/* RMS normalisation of a sum, written out or as RMSNormalization, becomes SkipSimplifiedLayerNormalization of
 * com.microsoft. Where others read the sum too (the residual stream), it comes out as the fourth output. */
#include "passes/rms_norm_rules.h"

static bool has_other_readers(const struct wml_match *m, const struct wml_value *sum)
{
    for (const struct wml_use *u = sum->uses; u; u = u->next) {
        bool inside = false;
        for (size_t i = 0; i < m->n_nodes; i++) inside = inside || m->node[i] == u->node;
        if (!inside) return true;
    }
    return false;
}

static bool make(struct wml_match *m, const struct wml_rms_norm *n)
{
    struct wml_value *sum = n->x, *in[3] = {NULL, NULL, n->scale};
    struct wml_node *add = sum->def;
    if (!add || !wml_node_is(add, "Add") || add->graph != m->root->graph) return wml_match_refuse(m, "not of a sum");
    in[0] = add->in[0], in[1] = add->in[1];
    if (n->rank != 3 || n->axis != 2) return wml_match_refuse(m, "not of rank 3, over the last axis");
    if (!wml_same_type(in[0], in[1]) || (wml_value_elem(sum) != WML_F32 && wml_value_elem(sum) != WML_F16))
        return wml_match_refuse(m, "the operands of the sum differ in type, or are neither float nor half float");
    if (sum->n_outputs || sum->pinned) return wml_match_refuse(m, "the sum is an output");
    struct wml_node *skip = wml_match_replace(m, "com.microsoft", "SkipSimplifiedLayerNormalization", 3, in);
    wml_attr_set_float(skip, "epsilon", n->eps);
    if (!has_other_readers(m, sum)) return true; /* the Add is dead with the match */
    wml_node_take_output(skip, 3, sum); /* other readers may stand before it: sorted in the end */
    wml_node_remove(add);
    return true;
}

static bool written_out(struct wml_match *m)
{
    struct wml_rms_norm n;
    return wml_rms_norm_of(m, &n) && make(m, &n);
}

static bool one_node(struct wml_match *m)
{
    struct wml_rms_norm n = {.x = wml_match_value(m, "x"), .scale = wml_match_value(m, "scale")};
    const struct wml_tensor *t = wml_constant_of(n.scale);
    n.rank = wml_value_rank(n.x);
    n.axis = wml_attr_int(m->root, "axis", -1);
    n.eps = wml_attr_float(m->root, "epsilon", 1e-5f);
    if (n.axis < 0) n.axis += n.rank;
    if (wml_attr_int(m->root, "stash_type", WML_F32) != WML_F32) return wml_match_refuse(m, "not computed in float");
    if (n.rank != 3 || t->dims.len != 1 || t->dims.at[0] != wml_value_axis(n.x, 2).size || wml_value_elem(n.scale) != wml_value_elem(n.x))
        return wml_match_refuse(m, "the scale has not the size of the last axis");
    return make(m, &n);
}

static const struct wml_rule rule = {"RMSNormalization(x, $scale)", one_node, 0, 23};

static bool run(struct wml_pass_run *r, struct wml_err *err)
{
    return wml_rules_run(r, &rule, 1, err) && wml_rms_norm_run(r, true, written_out, err) && wml_graph_sort(r->model->graph, err);
}

const struct wml_pass wml_pass_skip_simplified_layer_norm_fusion = {
    .name = "skip-simplified-layer-norm-fusion", .category = "layer_norm", .makes = WML_MAKES_CONTRIB, .run = run,
    .summary = "Turn Add and RMS normalisation into SkipSimplifiedLayerNormalization of com.microsoft",
};
