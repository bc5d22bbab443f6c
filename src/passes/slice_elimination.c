/* A Slice that keeps every element goes: by its bounds, or because its result has its input's shape. */
#include "passes/slice_info.h"

static bool keeps_all(struct wml_pass_run *r, const struct wml_node *n)
{
    struct wml_slice s;
    int64_t *step;
    size_t len;
    if (wml_slice_of(r, n, &s)) return wml_slice_is_whole(&s);
    if (!wml_same_type(n->in[0], n->out[0])) return false;
    if (!wml_node_in(n, 4)) return true;
    if (!wml_constant_of(n->in[4]) || !wml_constant_ints(r, n->in[4], &step, &len)) return false;
    for (size_t i = 0; i < len; i++)
        if (step[i] != 1) return false;
    return true;
}

static bool visit(struct wml_pass_run *r, struct wml_node *n)
{
    if (!wml_node_is(n, "Slice") || !wml_node_in(n, 0) || !wml_node_out(n, 0) || !keeps_all(r, n)) return true;
    if (wml_bypass(n, n->in[0])) wml_pass_applied(r, n->op_type, n->name);
    return true;
}

const struct wml_pass wml_pass_slice_elimination = {
    .name = "slice-elimination", .category = "elimination", .pipe = "ort_graph", .ort_name = "EliminateSlice", .level = 1,
    .on = true, .reference_on = true, .visit = visit, .summary = "Remove a Slice that keeps every element",
};
