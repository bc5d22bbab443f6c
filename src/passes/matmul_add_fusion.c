/* MatMul of two matrices, Add of a constant row -> Gemm. Only for rank 2: higher ranks need Reshapes, see
 * linear_rows.c. */
#include "passes/matmul_gemm.h"

/* The constant is one row of n numbers, of a rank that does not raise the result's. */
static bool is_row(const struct wml_value *v, int64_t n, const struct wml_value *a)
{
    const struct wml_tensor *t = wml_constant_of(v);
    if (!t || t->dtype != (int)wml_value_elem(a) || t->dims.len < 1 || (int64_t)t->dims.len > wml_value_rank(a)) return false;
    for (size_t i = 0; i + 1 < t->dims.len; i++)
        if (t->dims.at[i] != 1) return false;
    return t->dims.at[t->dims.len - 1] == n;
}

struct wml_node *wml_matmul_before_bias(const struct wml_node *add, struct wml_value **bias)
{
    if (!wml_node_is(add, "Add") || !wml_node_out(add, 0)) return NULL;
    for (size_t slot = 0; slot < 2; slot++) {
        struct wml_node *mm = wml_node_producer(add, slot);
        *bias = wml_node_in(add, 1 - slot);
        if (!mm || !*bias || !wml_node_is(mm, "MatMul") || mm->graph != add->graph) continue;
        if (wml_value_only_user(mm->out[0]) != add || mm->out[0]->pinned) continue;
        struct wml_value *a = wml_node_in(mm, 0), *b = wml_node_in(mm, 1);
        if (wml_value_rank(b) != 2 || !wml_dtype_is_float((int)wml_value_elem(a))) continue;
        int64_t width = wml_value_axis(b, 1).size;
        if (width >= 0 && is_row(*bias, width, a)) return mm;
    }
    return NULL;
}

void wml_bias_to_gemm(struct wml_node *add, const struct wml_node *mm, struct wml_value *bias)
{
    wml_node_set_op(add, "", "Gemm");
    wml_node_set_input(add, 0, mm->in[0]);
    wml_node_set_input(add, 1, mm->in[1]);
    wml_node_add_input(add, bias);
}

static bool visit(struct wml_pass_run *r, struct wml_node *n)
{
    struct wml_value *bias;
    const struct wml_node *mm = wml_matmul_before_bias(n, &bias);
    if (!mm || wml_value_rank(mm->in[0]) != 2) return true;
    wml_bias_to_gemm(n, mm, bias);
    wml_pass_applied(r, n->op_type, n->name);
    return true;
}

const struct wml_pass wml_pass_matmul_add_fusion = {
    .name = "matmul-add-fusion", .category = "matmul", .pipe = "ort_graph", .ort_name = "MatMulAddFusion", .level = 1, .on = true, .visit = visit,
    .summary = "Turn MatMul and Add of a row into Gemm (rank 2)",
};
