/* Conv, BatchNormalization (inference) -> Conv: w' = w s / sqrt(var + eps), b' = (b - mean) s / sqrt(var + eps)
 * + beta, per output channel, computed in double. Not when somebody else reads the Conv's result. */
#include "passes/conv_affine.h"

#include <math.h>

/* The four constants of the norm, one number per channel each. */
static double *channel(struct wml_pass_run *r, const struct wml_conv *c, const struct wml_value *v)
{
    struct wml_tensor *t = wml_constant_of(v);
    double *at;
    size_t n;
    bool fits = t && t->dtype == c->w->dtype && wml_tensor_doubles(r->model, t, &at, &n, NULL) && n == c->channels;
    return fits ? at : NULL;
}

static bool visit(void *arg, struct wml_node *n)
{
    struct wml_pass_run *r = arg;
    struct wml_conv c;
    if (!wml_node_is(n, "BatchNormalization") || wml_attr_int(n, "training_mode", 0) != 0) return true;
    for (size_t i = 1; i < n->n_out; i++)
        if (n->out[i] && !wml_value_is_unused(n->out[i])) return true;
    if (wml_model_opset(r->model, "") < 7 && wml_attr_int(n, "is_test", 0) == 0) return true;
    if (!wml_conv_before(r, n, 0, &c)) return true;
    const double *gamma = channel(r, &c, wml_node_in(n, 1)), *beta = channel(r, &c, wml_node_in(n, 2));
    const double *mean = channel(r, &c, wml_node_in(n, 3)), *var = channel(r, &c, wml_node_in(n, 4));
    double eps = (double)wml_attr_float(n, "epsilon", 1e-5f);
    if (!gamma || !beta || !mean || !var) return true;
    double *a = WML_NEW_ARRAY(r->scratch, double, c.channels), *b = WML_NEW_ARRAY(r->scratch, double, c.channels);
    for (size_t i = 0; i < c.channels; i++) {
        a[i] = gamma[i] / sqrt(var[i] + eps);
        b[i] = beta[i] - mean[i] * a[i];
        if (!isfinite(a[i]) || !isfinite(b[i])) return true;
    }
    wml_conv_absorb(r, &c, a, b);
    return true;
}

static bool run(struct wml_pass_run *r, struct wml_err *err)
{
    (void)err;
    return wml_pass_each(r, visit);
}

const struct wml_pass wml_pass_conv_bn_fusion = {
    .name = "conv-bn-fusion", .category = "convolution", .on = true, .run = run,
    .summary = "Fold BatchNormalization into the Conv before it",
};
