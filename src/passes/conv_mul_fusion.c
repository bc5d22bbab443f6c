/* Conv or ConvTranspose, Mul by a constant per output channel -> the same with scaled weights. Not when somebody
 * else reads the Conv's result, or when the constant would widen it. */
#include "passes/conv_affine.h"

static bool visit(struct wml_pass_run *r, struct wml_node *n)
{
    struct wml_conv c;
    if (!wml_node_is(n, "Mul")) return true;
    for (size_t slot = 0; slot < 2; slot++) {
        if (!wml_conv_before(r, n, slot, &c)) continue;
        const double *v = wml_conv_channel_values(r, &c, wml_node_in(n, 1 - slot));
        if (v && wml_conv_absorb(r, &c, v, NULL)) break;
    }
    return true;
}

const struct wml_pass wml_pass_conv_mul_fusion = {
    .name = "conv-mul-fusion", .category = "convolution", .pipe = "ort_graph", .ort_name = "ConvMulFusion", .level = 1, .on = true, .visit = visit,
    .summary = "Multiply the weights of a Conv or ConvTranspose by the per-channel constant after it",
};
