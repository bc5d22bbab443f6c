/* DequantizeLinear of an int32 constant loses its zero point where that is zero: some compilers refuse an int32
 * one, and none is the same as zero. */
#include "passes/match.h"

static bool is_single(const struct wml_tensor *t)
{
    return t && (t->dims.len == 0 || (t->dims.len == 1 && t->dims.at[0] == 1));
}

static bool visit(struct wml_pass_run *r, struct wml_node *n)
{
    bool contrib = wml_node_is_in(n, "com.microsoft", "DequantizeLinear");
    if ((!contrib && !wml_node_is(n, "DequantizeLinear")) || n->n_in < 3 || !n->in[2]) return true;
    const struct wml_tensor *x = wml_constant_of(n->in[0]), *scale = wml_constant_of(n->in[1]), *zero = wml_constant_of(n->in[2]);
    if (!x || x->dtype != WML_I32 || !is_single(scale) || !is_single(zero) || zero->dtype != WML_I32) return true;
    for (size_t i = 0; i < n->attr.len; i++)
        if (!wml_str_is(n->attr.at[i]->name, "axis")) return true;
    if (!wml_constant_is(r, n->in[2], 0)) {
        wml_pass_refuse(r, n, "its zero point is not zero");
        return true;
    }
    wml_node_remove_input(n, 2);
    wml_pass_applied(r, n->op_type, n->name);
    return true;
}

const struct wml_pass wml_pass_normalize_int32_dq = {
    .name = "normalize-int32-dq", .category = "rewrite", .pipe = "cgir_rewrite", .cgc = true, .visit = visit,
    .summary = "Drop the zero point 0 of DequantizeLinear of int32 constants",
};
