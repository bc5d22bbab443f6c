/* passes/layer_norm_rules.h - the written-out forms of layer normalisation and what they become. */
#ifndef WML_PASSES_LAYER_NORM_RULES_H
#define WML_PASSES_LAYER_NORM_RULES_H

#include "passes/pattern.h"

enum wml_layer_norm_forms { WML_LAYER_NORM_POW = 1, WML_LAYER_NORM_MUL = 2, WML_LAYER_NORM_ANY_AXIS = 4 };

/* (x - mean) / sqrt(mean((x - mean)^2) + eps) * scale + bias over the last axes becomes LayerNormalization (from
 * opset 17). ANY_AXIS: over one axis anywhere, with Transposes around it. */
bool wml_layer_norm_run(struct wml_pass_run *r, unsigned forms, struct wml_err *err);

#endif
