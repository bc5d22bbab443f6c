/* Products with one number around a MatMul become the alpha of com.microsoft::FusedMatMul. */
#include "passes/matmul_fused.h"

#include <math.h>

/* n multiplies or divides one operand by a constant number: the operand's slot and the factor. */
static bool scales(struct wml_pass_run *r, const struct wml_node *n, size_t *slot, double *factor)
{
    bool div = wml_node_is(n, "Div");
    if (!div && !wml_node_is(n, "Mul")) return false;
    for (size_t k = 0; k < (div ? 1u : 2u); k++) {
        const struct wml_value *x = wml_node_in(n, k), *c = wml_node_in(n, 1 - k);
        double v;
        if (!x || !wml_constant_scalar(r, c, &v) || !isfinite(v) || (div && v == 0)) continue;
        if (wml_value_rank(x) < (int64_t)wml_constant_of(c)->dims.len) continue;
        *slot = k;
        *factor = div ? 1 / v : v;
        return true;
    }
    return false;
}

static bool take(struct wml_pass_run *r, struct wml_node *mm, double factor)
{
    double alpha = (double)wml_attr_float(mm, "alpha", 1) * factor;
    if (!isfinite((float)alpha)) return false;
    wml_fused_matmul_make(r, mm);
    wml_attr_set_float(mm, "alpha", (float)alpha);
    return true;
}

static bool visit(struct wml_pass_run *r, struct wml_node *n)
{
    size_t slot;
    double factor;
    if (scales(r, n, &slot, &factor)) { /* after */
        struct wml_node *mm = wml_node_producer(n, slot);
        if (!mm || mm->graph != n->graph || !wml_fused_matmul_is(mm)) return true;
        if (wml_value_only_user(mm->out[0]) != n || mm->out[0]->pinned || !wml_can_bypass(n, mm->out[0])) return true;
        if (!take(r, mm, factor)) return true;
        if (wml_bypass(n, mm->out[0])) wml_pass_applied(r, n->op_type, n->name);
        return true;
    }
    if (!wml_fused_matmul_is(n)) return true;
    for (size_t k = 0; k < 2; k++) { /* before */
        struct wml_node *s = wml_node_producer(n, k);
        if (!s || s->graph != n->graph || !scales(r, s, &slot, &factor)) continue;
        if (wml_value_only_user(s->out[0]) != n || s->out[0]->pinned || !take(r, n, factor)) continue;
        wml_node_set_input(n, k, s->in[slot]);
        wml_pass_applied(r, s->op_type, s->name);
        wml_node_remove(s);
    }
    return true;
}

const struct wml_pass wml_pass_matmul_scale_fusion = {
    .name = "matmul-scale-fusion", .category = "matmul", .pipe = "ort_graph", .ort_name = "MatMulScaleFusion", .level = 2,
    .makes = WML_MAKES_CONTRIB, .visit = visit,
    .summary = "Put numbers multiplied around MatMul into FusedMatMul of com.microsoft",
};
