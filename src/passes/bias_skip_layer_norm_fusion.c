/* The bias on one operand of com.microsoft::SkipLayerNormalization becomes its fifth input. */
#include "passes/match.h"

static bool visit(struct wml_pass_run *r, struct wml_node *n)
{
    if (!wml_node_is_in(n, "com.microsoft", "SkipLayerNormalization") || wml_node_in(n, 4)) return true;
    for (size_t slot = 0; slot < 2; slot++) {
        struct wml_node *add = wml_node_producer(n, slot);
        if (!add || !wml_node_is(add, "Add") || add->graph != n->graph || add->out[0]->pinned) continue;
        if (wml_value_only_user(add->out[0]) != n) continue;
        for (size_t k = 0; k < 2; k++) {
            struct wml_value *x = wml_node_in(add, k), *b = wml_node_in(add, 1 - k);
            const struct wml_tensor *t = wml_constant_of(b);
            if (!t || t->dims.len != 1 || wml_value_rank(x) != 3 || wml_value_axis(x, 2).size != t->dims.at[0]) continue;
            /* The fourth output is the sum with the bias in it, as it was before. */
            wml_node_set_input(n, slot, x);
            wml_node_set_input(n, 4, b);
            wml_pass_applied(r, add->op_type, add->name);
            wml_node_remove(add);
            return true;
        }
    }
    return true;
}

const struct wml_pass wml_pass_bias_skip_layer_norm_fusion = {
    .name = "bias-skip-layer-norm-fusion", .category = "layer_norm", .pipe = "ort_fusion",
    .ort_name = "BiasSkipLayerNormFusion", .makes = WML_MAKES_CONTRIB, .needs = "skip-layer-norm-fusion", .visit = visit,
    .summary = "Put a bias before SkipLayerNormalization into it",
};
