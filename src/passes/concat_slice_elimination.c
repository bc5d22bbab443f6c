/* A Slice that takes exactly one operand out of the Concat before it reads that operand instead. */
#include "passes/slice_info.h"

static bool visit(struct wml_pass_run *r, struct wml_node *n)
{
    struct wml_node *concat = wml_node_is(n, "Slice") ? wml_node_producer(n, 0) : NULL;
    struct wml_slice s;
    if (!concat || !wml_node_is(concat, "Concat") || concat->graph != n->graph || !wml_node_out(n, 0)) return true;
    if (!wml_slice_of(r, n, &s) || s.n != 1 || s.step[0] != 1) return true;
    int64_t axis = wml_attr_int(concat, "axis", -1), at = 0;
    if (axis < 0) axis += wml_value_rank(n->in[0]);
    if ((int64_t)s.axis[0] != axis) return true;
    for (size_t i = 0; i < concat->n_in; i++) {
        if (!concat->in[i] || wml_value_rank(concat->in[i]) <= axis) return true;
        int64_t size = wml_value_axis(concat->in[i], (size_t)axis).size;
        if (size < 0) return true;
        if (at == s.start[0] && size == s.count[0] && size > 0) {
            if (wml_bypass(n, concat->in[i])) wml_pass_applied(r, n->op_type, n->name);
            return true;
        }
        at += size;
    }
    return true;
}

const struct wml_pass wml_pass_concat_slice_elimination = {
    .name = "concat-slice-elimination", .category = "graph", .pipe = "ort_graph", .ort_name = "ConcatSliceElimination",
    .on = true, .visit = visit, .summary = "Read a Concat's operand itself where a Slice takes it out again",
};
