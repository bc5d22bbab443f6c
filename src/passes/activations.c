/* Which activations fused operators know, and their parameters. */
#include "passes/activations.h"

static bool bounds(struct wml_pass_run *r, const struct wml_node *n, float *param)
{
    double low, high;
    if (n->n_in > 1) {
        if (!wml_constant_scalar(r, wml_node_in(n, 1), &low) || !wml_constant_scalar(r, wml_node_in(n, 2), &high)) return false;
        param[0] = (float)low;
        param[1] = (float)high;
        return true;
    }
    if (!wml_attr_find(n, "min") || !wml_attr_find(n, "max")) return false;
    param[0] = wml_attr_float(n, "min", 0);
    param[1] = wml_attr_float(n, "max", 0);
    return true;
}

bool wml_activation_of(struct wml_pass_run *r, const struct wml_node *n, struct wml_activation *out)
{
    *out = (struct wml_activation){.name = n->op_type};
    if (wml_node_is(n, "Relu") || wml_node_is(n, "Sigmoid") || wml_node_is(n, "Tanh")) return true;
    if (wml_node_is(n, "LeakyRelu")) {
        out->param[0] = wml_attr_float(n, "alpha", 0.01f);
        out->n_params = 1;
        return true;
    }
    out->n_params = 2;
    if (wml_node_is(n, "HardSigmoid")) {
        out->param[0] = wml_attr_float(n, "alpha", 0.2f);
        out->param[1] = wml_attr_float(n, "beta", 0.5f);
        return true;
    }
    return wml_node_is(n, "Clip") && bounds(r, n, out->param);
}

bool wml_activation_absorb(struct wml_node *n, struct wml_node *next)
{
    struct wml_value *inner = n->out[0];
    if (wml_value_only_user(inner) != next || inner->pinned || next->graph != n->graph || !wml_node_out(next, 0)) return false;
    return wml_bypass(next, inner);
}
