/* passes/matmul_linear.h - MatMul and Add of a bias, as the linear layer it is. */
#ifndef WML_PASSES_MATMUL_LINEAR_H
#define WML_PASSES_MATMUL_LINEAR_H

#include "passes/pattern.h"

struct wml_linear {
    struct wml_value *a, *b, *c; /* a [.., K]; b [K, N] (constant); c [N] (constant) */
    int64_t rank, k, n;
};

/* From a match with names a, b, c; false, with the reason, when it is none. */
bool wml_linear_of(struct wml_match *m, struct wml_linear *out);
/* A MatMul + Add as 1x1 Conv, for a of this rank. */
bool wml_linear_to_conv(struct wml_match *m, int64_t rank);

#define WML_LINEAR_PATTERN "Add(MatMul(a, $b), $c)"

#endif
