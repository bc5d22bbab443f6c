/* MatMul of two matrices, Add of a constant row -> Gemm. Only for rank 2: higher ranks would need Reshapes
 * around it, which is more nodes, not fewer. */
#include "passes/match.h"

/* The constant is one row of n numbers, or one number. */
static bool is_row(const struct wml_value *v, int64_t n, int dtype)
{
    const struct wml_tensor *t = wml_constant_of(v);
    if (!t || t->dtype != dtype || t->dims.len < 1 || t->dims.len > 2) return false;
    if (t->dims.len == 2 && t->dims.at[0] != 1) return false;
    return t->dims.at[t->dims.len - 1] == n;
}

static bool visit(void *arg, struct wml_node *n)
{
    struct wml_pass_run *r = arg;
    if (!wml_node_is(n, "Add") || !wml_node_out(n, 0)) return true;
    for (size_t slot = 0; slot < 2; slot++) {
        struct wml_node *mm = wml_node_producer(n, slot);
        struct wml_value *bias = wml_node_in(n, 1 - slot);
        if (!mm || !bias || !wml_node_is(mm, "MatMul") || mm->graph != n->graph) continue;
        if (wml_value_only_user(mm->out[0]) != n || mm->out[0]->pinned) continue;
        struct wml_value *a = wml_node_in(mm, 0), *b = wml_node_in(mm, 1);
        if (wml_value_rank(a) != 2 || wml_value_rank(b) != 2 || !wml_dtype_is_float((int)wml_value_elem(a))) continue;
        int64_t width = wml_value_axis(b, 1).size;
        if (width < 0 || !is_row(bias, width, (int)wml_value_elem(a))) continue;
        wml_node_set_op(n, "", "Gemm");
        wml_node_set_input(n, 0, a);
        wml_node_set_input(n, 1, b);
        wml_node_add_input(n, bias);
        wml_pass_applied(r, n->op_type, n->name);
        break;
    }
    return true;
}

static bool run(struct wml_pass_run *r, struct wml_err *err)
{
    (void)err;
    return wml_pass_each(r, visit);
}

const struct wml_pass wml_pass_matmul_add_fusion = {
    .name = "matmul-add-fusion", .category = "matmul", .pipe = "ort_graph", .ort_name = "MatMulAddFusion", .level = 1, .on = true, .run = run,
    .summary = "Turn MatMul and Add of a row into Gemm (rank 2)",
};
