/* A Transpose of the last two axes before MatMul goes into com.microsoft::FusedMatMul, whose operands may be read
 * transposed. Float32 only: the operator's kernels know no other type. */
#include "passes/matmul_fused.h"

/* The permutation swaps the last two axes and nothing else. */
static bool swaps_last(const struct wml_node *n)
{
    size_t rank;
    const int64_t *perm = wml_attr_ints(n, "perm", &rank);
    if (!perm) return wml_value_rank(n->in[0]) == 2;
    if (rank < 2 || perm[rank - 1] != (int64_t)rank - 2 || perm[rank - 2] != (int64_t)rank - 1) return false;
    for (size_t i = 0; i + 2 < rank; i++)
        if (perm[i] != (int64_t)i) return false;
    return true;
}

static bool visit(struct wml_pass_run *r, struct wml_node *n)
{
    static const char *const flag[] = {"transA", "transB"};
    if (!wml_fused_matmul_is(n)) return true;
    for (size_t slot = 0; slot < 2; slot++) {
        struct wml_node *t = wml_node_producer(n, slot);
        if (!t || !wml_node_is(t, "Transpose") || t->graph != n->graph || !swaps_last(t)) continue;
        if (wml_value_only_user(t->out[0]) != n || t->out[0]->pinned) {
            wml_pass_refuse(r, n, "its Transpose has other readers");
            continue;
        }
        wml_fused_matmul_make(r, n);
        wml_attr_set_int(n, flag[slot], !wml_attr_int(n, flag[slot], 0));
        wml_node_set_input(n, slot, t->in[0]);
        wml_pass_applied(r, t->op_type, t->name);
        wml_node_remove(t);
    }
    return true;
}

const struct wml_pass wml_pass_matmul_transpose_fusion = {
    .name = "matmul-transpose-fusion", .category = "matmul", .pipe = "ort_graph", .ort_name = "MatmulTransposeFusion", .level = 2,
    .makes = WML_MAKES_CONTRIB, .visit = visit,
    .summary = "Put Transposes before MatMul into FusedMatMul of com.microsoft",
};
