/* Conv or ConvTranspose, Add of a constant per output channel -> the same with a new bias. Not when somebody else
 * reads the Conv's result, or when the constant would widen it. */
#include "passes/conv_affine.h"

static bool visit(struct wml_pass_run *r, struct wml_node *n)
{
    struct wml_conv c;
    if (!wml_node_is(n, "Add")) return true;
    for (size_t slot = 0; slot < 2; slot++) {
        if (!wml_conv_before(r, n, slot, &c)) continue;
        const double *v = wml_conv_channel_values(r, &c, wml_node_in(n, 1 - slot));
        if (v && wml_conv_absorb(r, &c, NULL, v)) break;
    }
    return true;
}

const struct wml_pass wml_pass_conv_add_fusion = {
    .name = "conv-add-fusion", .category = "convolution", .pipe = "ort_graph", .ort_name = "ConvAddFusion", .level = 1, .on = true, .visit = visit,
    .summary = "Add the per-channel constant after a Conv or ConvTranspose to its bias",
};
