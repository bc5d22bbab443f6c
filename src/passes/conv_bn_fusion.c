/* Conv or ConvTranspose, BatchNormalization (inference) -> the same with scaled weights and a new bias. Not when
 * somebody else reads the Conv's result. */
#include "passes/batch_norm.h"
#include "passes/conv_affine.h"

static bool visit(struct wml_pass_run *r, struct wml_node *n)
{
    struct wml_conv c;
    double *a, *b;
    if (!wml_node_is(n, "BatchNormalization") || !wml_conv_before(r, n, 0, &c)) return true;
    if (wml_batch_norm_affine(r, n, c.w->dtype, c.channels, &a, &b)) wml_conv_absorb(r, &c, a, b);
    return true;
}

const struct wml_pass wml_pass_conv_bn_fusion = {
    .name = "conv-bn-fusion", .category = "convolution", .pipe = "ort_graph", .ort_name = "ConvBNFusion", .level = 1, .on = true,
    .visit = visit, .summary = "Fold BatchNormalization into the Conv or ConvTranspose before it",
};
