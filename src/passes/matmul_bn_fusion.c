/* MatMul of two matrices and BatchNormalization -> Gemm with scaled columns and a bias; the Gemm form of a linear
 * layer before a norm likewise. */
#include "passes/batch_norm.h"
#include "passes/weights_scale.h"

static bool visit(struct wml_pass_run *r, struct wml_node *n)
{
    struct wml_node *mm = wml_node_is(n, "BatchNormalization") ? wml_node_producer(n, 0) : NULL;
    bool gemm = mm && wml_node_is(mm, "Gemm");
    double *a, *b, *old = NULL;
    size_t len = 0;
    if (!mm || (!gemm && !wml_node_is(mm, "MatMul")) || mm->graph != n->graph) return true;
    if (wml_value_only_user(mm->out[0]) != n || mm->out[0]->pinned || wml_value_rank(mm->in[0]) != 2) return true;
    struct wml_tensor *w = wml_constant_of(mm->in[1]);
    struct wml_value *c = wml_node_in(mm, 2);
    if (!w || w->dims.len != 2) return true;
    if (gemm && (wml_attr_float(mm, "alpha", 1) != 1 || wml_attr_float(mm, "beta", 1) != 1)) return true;
    size_t axis = gemm && wml_attr_int(mm, "transB", 0) ? 0 : 1, channels = (size_t)w->dims.at[axis];
    if (!wml_batch_norm_affine(r, n, w->dtype, channels, &a, &b)) return true;
    if (c) {
        struct wml_tensor *t = wml_constant_of(c);
        if (!t || t->dtype != w->dtype || !wml_tensor_doubles(r->model, t, &old, &len, NULL) || (len != 1 && len != channels) ||
            (t->dims.len && t->dims.at[t->dims.len - 1] != (int64_t)len))
            return true;
    }
    for (size_t i = 0; i < channels; i++) b[i] += old ? old[len == 1 ? 0 : i] * a[i] : 0;
    struct wml_tensor *scaled = wml_weights_scaled(r, w, axis, a);
    if (!scaled) return true;
    if (!wml_can_bypass(n, mm->out[0])) return true;
    int64_t dim = (int64_t)channels;
    size_t width = wml_dtype_info(w->dtype)->bits / 8;
    unsigned char *bytes = wml_arena_alloc(r->scratch, channels * width + 1);
    for (size_t i = 0; i < channels; i++) wml_dtype_store(w->dtype, bytes, i, b[i]);
    struct wml_tensor *bias = wml_tensor_copy(r->model, (enum wml_dtype)w->dtype, 1, &dim, bytes, channels * width, NULL);
    wml_node_set_input(mm, 1, wml_graph_add_init(mm->graph, mm->in[1]->name, scaled));
    wml_node_set_input(mm, 2, wml_graph_add_init(mm->graph, WML_STR("bias"), bias));
    wml_node_set_op(mm, "", "Gemm");
    struct wml_str op = n->op_type, name = n->name;
    if (wml_bypass(n, mm->out[0])) wml_pass_applied(r, op, name);
    return true;
}

const struct wml_pass wml_pass_matmul_bn_fusion = {
    .name = "matmul-bn-fusion", .category = "matmul", .pipe = "ort_graph", .ort_name = "MatMul_BatchNormalization_Fusion",
    .level = 1, .on = true, .visit = visit, .summary = "Fold BatchNormalization into the MatMul or Gemm before it",
};
