/* Conv and the activation behind it become com.microsoft::FusedConv. */
#include "passes/activations.h"

static bool visit(struct wml_pass_run *r, struct wml_node *n)
{
    struct wml_activation act;
    struct wml_node *conv = wml_node_producer(n, 0);
    if (!conv || !wml_node_is(conv, "Conv") || !wml_activation_of(r, n, &act)) return true;
    if (wml_value_elem(conv->in[0]) != WML_F32) {
        wml_pass_refuse(r, n, "FusedConv is for float32");
        return true;
    }
    struct wml_str op = n->op_type, name = n->name;
    if (!wml_activation_absorb(conv, n)) return true;
    wml_node_set_op(conv, "com.microsoft", "FusedConv");
    wml_attr_set_str(conv, "activation", act.name);
    if (act.n_params) wml_attr_set_floats(conv, "activation_params", act.n_params, act.param);
    wml_pass_use_contrib(r);
    wml_pass_applied(r, op, name);
    return true;
}

const struct wml_pass wml_pass_conv_activation_fusion = {
    .name = "conv-activation-fusion", .category = "convolution", .pipe = "ort_graph", .ort_name = "ConvActivationFusion",
    .level = 2, .makes = WML_MAKES_CONTRIB, .visit = visit,
    .summary = "Turn Conv and an activation into FusedConv of com.microsoft",
};
