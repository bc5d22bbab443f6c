/* Layer normalisation over one axis anywhere, with Transposes where it is not the last: one switch for both
 * ways to square, one for each. */
#include "passes/layer_norm_rules.h"

#define FORM(id, text, forms, what)                                                                                    \
    static bool run_##id(struct wml_pass_run *r, struct wml_err *err)                                                  \
    {                                                                                                                  \
        return wml_layer_norm_run(r, (forms) | WML_LAYER_NORM_ANY_AXIS, err);                                          \
    }                                                                                                                  \
    const struct wml_pass wml_pass_##id = {.name = text, .category = "rewrite", .pipe = "rewrite", .run = run_##id,    \
                                           .summary = "Turn layer normalisation over any axis, squared by " what       \
                                                      ", into LayerNormalization"};

FORM(layernormalization_singlelayernorm, "layernormalization-singlelayernorm", WML_LAYER_NORM_POW | WML_LAYER_NORM_MUL,
     "Pow or Mul")
FORM(layernormpow_singlelayernorm, "layernormpow-singlelayernorm", WML_LAYER_NORM_POW, "Pow")
FORM(layernormmul_singlelayernorm, "layernormmul-singlelayernorm", WML_LAYER_NORM_MUL, "Mul")
