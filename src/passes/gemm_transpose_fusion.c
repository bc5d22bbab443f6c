/* Transposes around Gemm go into transA and transB; one behind it swaps the operands: (A B)^T = B^T A^T. */
#include "passes/match.h"

static bool is_transpose(const struct wml_node *n)
{
    size_t rank;
    const int64_t *perm = n && wml_node_is(n, "Transpose") ? wml_attr_ints(n, "perm", &rank) : NULL;
    if (!n || !wml_node_is(n, "Transpose")) return false;
    return perm ? rank == 2 && perm[0] == 1 && perm[1] == 0 : wml_value_rank(n->in[0]) == 2;
}

static void flip(struct wml_node *n, const char *name)
{
    wml_attr_set_int(n, name, !wml_attr_int(n, name, 0));
}

static void before(struct wml_pass_run *r, struct wml_node *gemm)
{
    static const char *const flag[] = {"transA", "transB"};
    for (size_t slot = 0; slot < 2; slot++) {
        struct wml_node *t = wml_node_producer(gemm, slot);
        if (!is_transpose(t) || t->graph != gemm->graph) continue;
        flip(gemm, flag[slot]);
        wml_node_set_input(gemm, slot, t->in[0]);
        wml_pass_applied(r, t->op_type, t->name); /* with other readers it stays, for them */
        if (wml_value_is_unused(t->out[0])) wml_node_remove(t);
    }
}

static void behind(struct wml_pass_run *r, struct wml_node *t)
{
    struct wml_node *gemm = wml_node_producer(t, 0);
    double c;
    if (!gemm || !wml_node_is(gemm, "Gemm") || gemm->graph != t->graph || !wml_node_out(t, 0)) return;
    if (wml_value_only_user(gemm->out[0]) != t || gemm->out[0]->pinned) return;
    if (wml_node_in(gemm, 2) && !wml_constant_scalar(r, gemm->in[2], &c)) {
        wml_pass_refuse(r, t, "the Gemm has a C that is no single number");
        return;
    }
    struct wml_str op = t->op_type, name = t->name;
    struct wml_type *type = t->out[0]->type;
    if (!wml_bypass(t, gemm->out[0])) return;
    struct wml_value *a = gemm->in[0], *b = gemm->in[1];
    int64_t ta = wml_attr_int(gemm, "transA", 0), tb = wml_attr_int(gemm, "transB", 0);
    wml_node_set_input(gemm, 0, b);
    wml_node_set_input(gemm, 1, a);
    wml_attr_set_int(gemm, "transA", !tb);
    wml_attr_set_int(gemm, "transB", !ta);
    if (wml_node_out(gemm, 0)) wml_value_set_type(gemm->out[0], type);
    wml_pass_applied(r, op, name);
}

static bool visit(struct wml_pass_run *r, struct wml_node *n)
{
    if (wml_node_is(n, "Gemm")) before(r, n);
    else if (is_transpose(n)) behind(r, n);
    return true;
}

const struct wml_pass wml_pass_gemm_transpose_fusion = {
    .name = "gemm-transpose-fusion", .category = "gemm", .pipe = "ort_graph", .ort_name = "GemmTransposeFusion", .level = 1,
    .on = true, .visit = visit, .summary = "Put Transposes around Gemm into its flags",
};
