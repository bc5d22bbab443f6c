/* The arithmetic of BatchNormalization, in one place (Ioffe, Szegedy: Batch Normalization, 2015). */
#include "passes/batch_norm.h"

#include <math.h>

static const double *channel(struct wml_pass_run *r, const struct wml_value *v, int dtype, size_t channels)
{
    struct wml_tensor *t = wml_constant_of(v);
    double *at;
    size_t n;
    bool fits = t && t->dtype == dtype && wml_tensor_doubles(r->model, t, &at, &n, NULL) && n == channels;
    return fits ? at : NULL;
}

bool wml_batch_norm_affine(struct wml_pass_run *r, const struct wml_node *n, int dtype, size_t channels, double **a,
                           double **b)
{
    if (!wml_node_is(n, "BatchNormalization") || wml_attr_int(n, "training_mode", 0) != 0) return false;
    for (size_t i = 1; i < n->n_out; i++)
        if (n->out[i] && !wml_value_is_unused(n->out[i])) return false;
    if (wml_model_opset(r->model, "") < 7 && wml_attr_int(n, "is_test", 0) == 0) return false;
    const double *gamma = channel(r, wml_node_in(n, 1), dtype, channels), *beta = channel(r, wml_node_in(n, 2), dtype, channels);
    const double *mean = channel(r, wml_node_in(n, 3), dtype, channels), *var = channel(r, wml_node_in(n, 4), dtype, channels);
    double eps = (double)wml_attr_float(n, "epsilon", 1e-5f);
    if (!gamma || !beta || !mean || !var) return false;
    *a = WML_NEW_ARRAY(r->scratch, double, channels);
    *b = WML_NEW_ARRAY(r->scratch, double, channels);
    for (size_t i = 0; i < channels; i++) {
        (*a)[i] = gamma[i] / sqrt(var[i] + eps);
        (*b)[i] = beta[i] - mean[i] * (*a)[i];
        if (!isfinite((*a)[i]) || !isfinite((*b)[i])) return false;
    }
    return true;
}
