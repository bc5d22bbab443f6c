/* What the fusions into FusedMatMul share. */
#include "passes/matmul_fused.h"

bool wml_fused_matmul_is(const struct wml_node *n)
{
    if (wml_node_is_in(n, "com.microsoft", "FusedMatMul")) return true;
    return wml_node_is(n, "MatMul") && n->n_in == 2 && wml_node_out(n, 0) && wml_value_elem(n->in[0]) == WML_F32 &&
           wml_value_rank(n->in[0]) >= 2 && wml_value_rank(n->in[1]) >= 2;
}

void wml_fused_matmul_make(struct wml_pass_run *r, struct wml_node *n)
{
    if (!wml_node_is(n, "MatMul")) return;
    wml_node_set_op(n, "com.microsoft", "FusedMatMul");
    wml_pass_use_contrib(r);
}
