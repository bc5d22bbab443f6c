/* passes/weights_scale.h - weights times one factor per slice along an axis, without copying them. */
#ifndef WML_PASSES_WEIGHTS_SCALE_H
#define WML_PASSES_WEIGHTS_SCALE_H

#include "passes/pass.h"

struct wml_tensor;

/* t (float16, float32 or double) times factor[i] in slice i of `axis`; factor has dims[axis] entries. The result is
 * DERIVED: made chunk by chunk when the model is written, in double, rounded once. Scaling what was scaled
 * along the same axis joins the factors. NULL: t cannot be scaled (another type, other DERIVED
 * weights, half floats that would overflow). */
struct wml_tensor *wml_weights_scaled(struct wml_pass_run *r, struct wml_tensor *t, size_t axis, const double *factor);
/* The same for two axes: axis and the one behind it, a factor for each pair of their elements. */
struct wml_tensor *wml_weights_scaled_pairs(struct wml_pass_run *r, struct wml_tensor *t, size_t axis, const double *factor);

#endif
