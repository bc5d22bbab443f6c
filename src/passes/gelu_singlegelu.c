/* The four written-out forms of Gelu, each under a switch of its own, and all of them under one. */
#include "passes/gelu_rules.h"

#define FORM(id, text, forms, what)                                                                                    \
    static bool run_##id(struct wml_pass_run *r, struct wml_err *err)                                                  \
    {                                                                                                                  \
        return wml_gelu_run(r, forms, true, err);                                                                      \
    }                                                                                                                  \
    const struct wml_pass wml_pass_##id = {                                                                            \
        .name = text, .category = "rewrite", .pipe = "rewrite", .makes = WML_MAKES_CONTRIB, .run = run_##id,           \
        .summary = "Turn Gelu written as " what " into one node"};

FORM(gelu_singlegelu, "gelu-singlegelu", WML_GELU_1 | WML_GELU_2 | WML_GELU_3 | WML_GELU_4, "any of the four forms")
FORM(gelu1_singlegelu, "gelu1-singlegelu", WML_GELU_1, "(x * 0.5) * (1 + erf(x / sqrt(2)))")
FORM(gelu2_singlegelu, "gelu2-singlegelu", WML_GELU_2, "(x * (1 + erf(x / sqrt(2)))) * 0.5")
FORM(gelu3_singlegelu, "gelu3-singlegelu", WML_GELU_3, "x * ((1 + erf(x / sqrt(2))) * 0.5)")
FORM(gelu4_singlegelu, "gelu4-singlegelu", WML_GELU_4, "x * ((1 + erf(x * sqrt(0.5))) * 0.5)")
