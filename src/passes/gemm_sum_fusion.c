/* Gemm without C, then Sum or Add of two: the other operand becomes C, where it fits the result's shape. */
#include "passes/match.h"

/* c broadcasts to y = [M, N] without changing it. */
static bool fits(const struct wml_value *c, const struct wml_value *y)
{
    int64_t rank = wml_value_rank(c);
    if (rank < 0 || rank > 2 || wml_value_rank(y) != 2 || wml_value_elem(c) != wml_value_elem(y)) return false;
    for (int64_t i = 0; i < rank; i++) {
        struct wml_axis a = wml_value_axis(c, (size_t)i), b = wml_value_axis(y, (size_t)(2 - rank + i));
        if (a.size == 1 || (a.size >= 0 && a.size == b.size)) continue;
        if (a.size < 0 && b.size < 0 && a.symbol.len && wml_str_eq(a.symbol, b.symbol)) continue;
        return false;
    }
    return true;
}

static bool visit(struct wml_pass_run *r, struct wml_node *n)
{
    if ((!wml_node_is(n, "Sum") && !wml_node_is(n, "Add")) || n->n_in != 2 || !wml_node_out(n, 0)) return true;
    for (size_t slot = 0; slot < 2; slot++) {
        struct wml_node *gemm = wml_node_producer(n, slot);
        struct wml_value *c = wml_node_in(n, 1 - slot);
        if (!gemm || !wml_node_is(gemm, "Gemm") || gemm->graph != n->graph || wml_node_in(gemm, 2) || !c) continue;
        if (wml_value_only_user(gemm->out[0]) != n || gemm->out[0]->pinned) continue;
        if (!fits(c, gemm->out[0]) || !wml_can_bypass(n, gemm->out[0])) {
            wml_pass_refuse(r, n, "the other operand does not fit the Gemm's result");
            continue;
        }
        /* c may be made between the two: the Gemm moves to the Sum's place. */
        wml_node_move(gemm, n);
        wml_node_set_input(gemm, 2, c);
        wml_attr_set_float(gemm, "beta", 1);
        if (wml_bypass(n, gemm->out[0])) wml_pass_applied(r, n->op_type, n->name);
        break;
    }
    return true;
}

const struct wml_pass wml_pass_gemm_sum_fusion = {
    .name = "gemm-sum-fusion", .category = "gemm", .pipe = "ort_graph", .ort_name = "GemmSumFusion", .level = 1, .on = true,
    .visit = visit, .summary = "Make the other operand of a Sum or Add the C of the Gemm before it",
};
