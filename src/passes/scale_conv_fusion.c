/* Mul or Div by one constant number, then Conv or ConvTranspose -> the same with scaled weights: a product passes
 * through the convolution, and through its zero padding. Not when somebody else reads the scaled value. */
#include "passes/conv_affine.h"

#include <math.h>

/* The factor by which n scales its operand; 0: it does not. *slot: of the operand. */
static double factor_of(struct wml_pass_run *r, const struct wml_node *n, int dtype, size_t *slot)
{
    bool div = wml_node_is(n, "Div");
    if (!div && !wml_node_is(n, "Mul")) return 0;
    for (*slot = 0; *slot < (div ? 1u : 2u); ++*slot) {
        struct wml_tensor *t = wml_constant_of(wml_node_in(n, 1 - *slot));
        double *x;
        size_t count;
        uint64_t size = 0;
        if (!t || t->dtype != dtype || !wml_tensor_count(t, &size, NULL) || size != 1) continue;
        /* A constant of more dimensions than the operand would widen the result. */
        const struct wml_value *in = wml_node_in(n, *slot);
        if (!in || wml_value_rank(in) < (int64_t)t->dims.len || !wml_tensor_doubles(r->model, t, &x, &count, NULL)) continue;
        double f = div ? 1 / x[0] : x[0];
        if (isfinite(f) && f != 0) return f;
    }
    return 0;
}

static bool visit(struct wml_pass_run *r, struct wml_node *n)
{
    struct wml_conv c;
    size_t slot;
    if (!wml_conv_is(n, &c)) return true;
    struct wml_node *scale = wml_node_producer(n, 0);
    if (!scale || scale->graph != n->graph || wml_value_only_user(n->in[0]) != n || n->in[0]->pinned) return true;
    double f = factor_of(r, scale, c.w->dtype, &slot);
    if (f == 0 || !wml_conv_scale(r, &c, f)) return true;
    wml_node_set_input(n, 0, wml_node_in(scale, slot));
    wml_pass_applied(r, n->op_type, n->name);
    return true;
}

const struct wml_pass wml_pass_scale_conv_fusion = {
    .name = "scale-conv-fusion", .category = "convolution", .on = true, .visit = visit,
    .summary = "Fold a product with one number into the Conv or ConvTranspose after it",
};
