/* passes/matmul_gemm.h - MatMul and Add of a row, as one Gemm. */
#ifndef WML_PASSES_MATMUL_GEMM_H
#define WML_PASSES_MATMUL_GEMM_H

#include "passes/match.h"

/* The MatMul of floats by a matrix that only this Add reads, in the same graph; the Add's other operand is a constant
 * row as wide as the result. NULL: it is none. */
struct wml_node *wml_matmul_before_bias(const struct wml_node *add, struct wml_value **bias);
/* The Add becomes a Gemm of the MatMul's inputs, which must be matrices; the MatMul is left without readers. */
void wml_bias_to_gemm(struct wml_node *add, const struct wml_node *mm, struct wml_value *bias);

#endif
