/* Unsqueeze of a constant is the constant with other dims: no bytes move, so its size does not matter. */
#include "passes/match.h"

enum { MAX_RANK = 16 };

static bool visit(struct wml_pass_run *r, struct wml_node *n)
{
    const struct wml_tensor *t = wml_node_is(n, "Unsqueeze") ? wml_constant_of(wml_node_in(n, 0)) : NULL;
    const int64_t *axes;
    int64_t dims[MAX_RANK];
    size_t len, at = 0;
    uint32_t added = 0;
    if (!t || !wml_node_out(n, 0) || n->out[0]->n_outputs || n->out[0]->pinned || t->dtype == WML_STRING) return true;
    if (!wml_axes_of(r, n, &axes, &len) || t->dims.len + len > MAX_RANK) return true;
    int64_t rank = (int64_t)(t->dims.len + len);
    for (size_t i = 0; i < len; i++) {
        int64_t a = axes[i] < 0 ? axes[i] + rank : axes[i];
        if (a < 0 || a >= rank || (added >> a & 1)) return true;
        added |= 1u << a;
    }
    for (int64_t i = 0; i < rank; i++) dims[i] = added >> i & 1 ? 1 : t->dims.at[at++];
    if (n->in[0]->graph != n->graph) return true;
    struct wml_value *v = wml_reshaped_constant(r, n->in[0], (size_t)rank, dims);
    wml_value_replace_uses(n->out[0], v);
    wml_pass_applied(r, n->op_type, n->name);
    wml_node_remove(n);
    return true;
}

const struct wml_pass wml_pass_unsqueeze_elimination = {
    .name = "unsqueeze-elimination", .category = "elimination", .pipe = "ort_graph", .ort_name = "UnsqueezeElimination",
    .level = 1, .on = true, .visit = visit, .summary = "Turn Unsqueeze of a constant into the constant with other dims",
};
