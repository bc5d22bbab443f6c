/* passes/matmul_fused.h - MatMul as com.microsoft::FusedMatMul: alpha * (A or A^T) x (B or B^T). */
#ifndef WML_PASSES_MATMUL_FUSED_H
#define WML_PASSES_MATMUL_FUSED_H

#include "passes/match.h"

/* n is a MatMul of float32, or already FusedMatMul. */
bool wml_fused_matmul_is(const struct wml_node *n);
/* Makes it one; imports the domain. */
void wml_fused_matmul_make(struct wml_pass_run *r, struct wml_node *n);

#endif
