/* MatMul + Add as a 1x1 Conv, one switch for each rank of the input. */
#include "passes/matmul_linear.h"

#define RANK(id, text, rank, what)                                                                                     \
    static bool to_conv_##id(struct wml_match *m)                                                                      \
    {                                                                                                                  \
        return wml_linear_to_conv(m, rank);                                                                            \
    }                                                                                                                  \
    static bool run_##id(struct wml_pass_run *r, struct wml_err *err)                                                  \
    {                                                                                                                  \
        static const struct wml_rule rule = {WML_LINEAR_PATTERN, to_conv_##id, 0, 5};                                  \
        return wml_rules_run(r, &rule, 1, err);                                                                        \
    }                                                                                                                  \
    const struct wml_pass wml_pass_##id = {.name = text, .category = "rewrite", .pipe = "rewrite", .run = run_##id,    \
                                           .summary = "Turn MatMul and Add with an input of rank " #rank               \
                                                      " into a 1x1 Conv between " what};

RANK(matmuladd_conv2d4d, "matmuladd-conv2d4d", 4, "Transposes")
RANK(matmuladd_conv2d3d, "matmuladd-conv2d3d", 3, "Transposes and Unsqueeze, Squeeze")
RANK(matmuladd_conv2d2d, "matmuladd-conv2d2d", 2, "Reshapes")
