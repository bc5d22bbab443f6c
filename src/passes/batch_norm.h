/* passes/batch_norm.h - BatchNormalization at inference as y = a[c] x + b[c]. */
#ifndef WML_PASSES_BATCH_NORM_H
#define WML_PASSES_BATCH_NORM_H

#include "passes/match.h"

/* n is a BatchNormalization at inference with constant parameters of this type, one number per channel each: a
 * = scale / sqrt(var + eps), b = bias - mean a, in double, all finite, in scratch memory. */
bool wml_batch_norm_affine(struct wml_pass_run *r, const struct wml_node *n, int dtype, size_t channels, double **a,
                           double **b);

#endif
