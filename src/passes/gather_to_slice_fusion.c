/* Gather of neighbouring indices in order -> Slice. The indices are a constant vector i, i+1, ... or a Range with
 * constant bounds and step 1. */
#include "passes/match.h"

static bool run_of(struct wml_pass_run *r, const struct wml_value *v, int64_t *start, int64_t *end)
{
    int64_t *at;
    size_t n;
    const struct wml_tensor *t = wml_constant_of(v);
    if (t) {
        if (t->dims.len != 1 || !wml_constant_ints(r, v, &at, &n) || !n) return false;
        for (size_t i = 1; i < n; i++)
            if (at[i] != at[0] + (int64_t)i) return false;
        *start = at[0];
        *end = at[0] + (int64_t)n;
    } else {
        double a, b, step;
        const struct wml_node *range = v->def;
        if (!range || !wml_node_is(range, "Range") || !wml_constant_scalar(r, wml_node_in(range, 0), &a) ||
            !wml_constant_scalar(r, wml_node_in(range, 1), &b) || !wml_constant_scalar(r, wml_node_in(range, 2), &step) || step != 1)
            return false;
        *start = (int64_t)a;
        *end = (int64_t)b;
    }
    /* A run through zero from below would wrap round. */
    return *end > *start && (*start >= 0 || *end < 0);
}

static bool visit(struct wml_pass_run *r, struct wml_node *n)
{
    int64_t start, end, axis = wml_attr_int(n, "axis", 0), bounds[3];
    if (!wml_node_is(n, "Gather") || n->n_in != 2 || !n->in[0] || !n->in[1] || !wml_node_out(n, 0)) return true;
    if (wml_value_rank(n->in[1]) != 1 || !run_of(r, n->in[1], &start, &end)) return true;
    /* Beyond the end Gather fails where Slice takes less. */
    int64_t rank = wml_value_rank(n->in[0]), at = axis < 0 ? axis + rank : axis;
    if (at < 0 || at >= rank || wml_value_axis(n->in[0], (size_t)at).size < (start < 0 ? -start : end)) return true;
    bounds[0] = start, bounds[1] = end, bounds[2] = at;
    wml_attr_remove(n, "axis");
    if (wml_model_opset(r->model, "") < 10) {
        static const char *const name[] = {"starts", "ends", "axes"};
        wml_node_remove_input(n, 1);
        for (size_t i = 0; i < 3; i++) wml_attr_set_ints(n, name[i], 1, &bounds[i]);
    } else {
        static const char *const name[] = {"slice_starts", "slice_ends", "slice_axes"};
        for (size_t i = 0; i < 3; i++)
            wml_node_set_input(n, i + 1, wml_graph_add_init(n->graph, wml_str(name[i]), wml_tensor_i64s(r->model, 1, &bounds[i])));
    }
    wml_pass_applied(r, n->op_type, n->name);
    wml_node_set_op(n, "", "Slice");
    return true;
}

const struct wml_pass wml_pass_gather_to_slice_fusion = {
    .name = "gather-to-slice-fusion", .category = "misc", .pipe = "ort_graph", .ort_name = "GatherToSliceFusion", .level = 2,
    .visit = visit, .summary = "Turn a Gather of neighbouring indices into a Slice",
};
