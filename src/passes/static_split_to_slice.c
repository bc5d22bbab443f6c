/* Split with known sizes -> one Slice for each output, for targets without Split. The constants are shared. */
#include "passes/match.h"

enum { MAX_PARTS = 256 };

static bool sizes_of(struct wml_pass_run *r, const struct wml_node *n, int64_t axis, int64_t *size)
{
    const int64_t *v;
    int64_t *in, total = wml_value_axis(n->in[0], (size_t)axis).size, sum = 0;
    size_t len = 0;
    if (total <= 0 || n->n_out > MAX_PARTS) return false;
    v = wml_attr_ints(n, "split", &len);
    if (wml_node_in(n, 1)) {
        if (v || !wml_constant_of(n->in[1]) || !wml_constant_ints(r, n->in[1], &in, &len)) return false;
        v = in;
    }
    if (v && len != n->n_out) return false;
    int64_t part = (total + (int64_t)n->n_out - 1) / (int64_t)n->n_out; /* the last one is smaller */
    if (!v && total % (int64_t)n->n_out && wml_model_opset(r->model, "") < 18) return false;
    for (size_t i = 0; i < n->n_out; i++) {
        size[i] = v ? v[i] : WML_MIN(part, total - sum);
        sum += size[i];
        if (size[i] <= 0 || !n->out[i]) return false;
    }
    return sum == total;
}

static struct wml_value *number(struct wml_pass_run *r, struct wml_node *n, const char *name, int64_t v)
{
    return wml_graph_add_init(n->graph, wml_str(name), wml_tensor_i64s(r->model, 1, &v));
}

static bool visit(struct wml_pass_run *r, struct wml_node *n)
{
    int64_t size[MAX_PARTS], at = 0, rank, axis;
    if (!wml_node_is(n, "Split") || !wml_node_in(n, 0) || (rank = wml_value_rank(n->in[0])) < 1) return true;
    axis = wml_attr_int(n, "axis", 0);
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank || !sizes_of(r, n, axis, size)) {
        wml_pass_refuse(r, n, "axis or sizes are not known");
        return true;
    }
    struct wml_value *axes = number(r, n, "algebraic_slice_axes", axis), *steps = number(r, n, "algebraic_slice_steps", 1);
    struct wml_value *bound = number(r, n, "algebraic_slice_bound", 0);
    size_t n_out = n->n_out;
    struct wml_value **out = WML_NEW_ARRAY(r->scratch, struct wml_value *, n_out);
    memcpy(out, n->out, n_out * sizeof *out);
    wml_pass_applied(r, n->op_type, n->name);
    for (size_t i = 0; i < n_out; i++) {
        struct wml_node *s = wml_node_new(n, "", "Slice");
        s->name = wml_model_unique(r->model, WML_STR("algebraic_split_slice"));
        wml_node_set_input(s, 0, n->in[0]);
        wml_node_set_input(s, 1, bound);
        at += size[i];
        bound = number(r, n, "algebraic_slice_bound", at);
        wml_node_set_input(s, 2, bound);
        wml_node_set_input(s, 3, axes);
        wml_node_set_input(s, 4, steps);
        wml_node_take_output(s, 0, out[i]);
    }
    wml_node_remove(n);
    return true;
}

static bool run(struct wml_pass_run *r, struct wml_err *err)
{
    (void)err;
    if (wml_model_opset(r->model, "") < 10) return wml_pass_skip(r, "Slice takes inputs from opset 10");
    return wml_pass_each(r, visit);
}

const struct wml_pass wml_pass_static_split_to_slice = {
    .name = "static-split-to-slice", .category = "rewrite", .pipe = "algebraic_rewrite", .run = run,
    .summary = "Turn a Split of known sizes into Slices",
};
