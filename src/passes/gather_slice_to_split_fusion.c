/* Sibling Slices that tile one axis of a value -> one Split, which names the sizes in an input of its own (opset
 * 13). Sibling Gathers of single indices that tile it -> Split and Squeezes, where asked for. */
#include "passes/slice_info.h"

enum { MAX_PARTS = 64 };

struct tile {
    struct wml_node *node[MAX_PARTS];
    int64_t start[MAX_PARTS], count[MAX_PARTS];
    size_t n, axis;
    int64_t size;
};

static bool add(struct tile *t, struct wml_node *n, size_t axis, int64_t size, int64_t start, int64_t count)
{
    if (t->n == MAX_PARTS || count <= 0 || (t->n && t->axis != axis) || n->out[0]->pinned) return false;
    size_t at = t->n++;
    t->axis = axis;
    t->size = size;
    for (; at && t->start[at - 1] > start; at--) {
        t->node[at] = t->node[at - 1];
        t->start[at] = t->start[at - 1];
        t->count[at] = t->count[at - 1];
    }
    t->node[at] = n;
    t->start[at] = start;
    t->count[at] = count;
    return true;
}

static bool tiles(const struct tile *t)
{
    int64_t at = 0;
    for (size_t i = 0; i < t->n; i++) {
        if (t->start[i] != at) return false;
        at += t->count[i];
    }
    return t->n >= 2 && at == t->size;
}

/* All Slices of v along the axis of `first`; false: one of them does not fit a tiling. */
static bool collect_slices(struct wml_pass_run *r, struct wml_node *first, struct tile *t)
{
    struct wml_slice s, f;
    if (!wml_slice_of(r, first, &f) || f.n != 1 || f.step[0] != 1) return false;
    for (struct wml_use *u = first->in[0]->uses; u; u = u->next) {
        if (u->node->graph != first->graph || u->slot || !wml_node_is(u->node, "Slice") || !wml_node_out(u->node, 0)) continue;
        if (!wml_slice_of(r, u->node, &s) || s.n != 1 || s.step[0] != 1 || s.axis[0] != f.axis[0]) continue;
        if (!add(t, u->node, s.axis[0], s.size[0], s.start[0], s.count[0])) return false;
    }
    return tiles(t);
}

static bool gather_at(struct wml_pass_run *r, const struct wml_node *n, int64_t *at, int64_t *axis)
{
    double v;
    int64_t rank = wml_node_in(n, 0) ? wml_value_rank(n->in[0]) : -1;
    const struct wml_tensor *t = wml_constant_of(wml_node_in(n, 1));
    *axis = wml_attr_int(n, "axis", 0);
    if (*axis < 0) *axis += rank;
    if (!t || t->dims.len || *axis < 0 || *axis >= rank || !wml_constant_scalar(r, n->in[1], &v)) return false;
    int64_t size = wml_value_axis(n->in[0], (size_t)*axis).size;
    *at = v < 0 ? (int64_t)v + size : (int64_t)v;
    return size > 0;
}

static bool collect_gathers(struct wml_pass_run *r, struct wml_node *first, struct tile *t)
{
    int64_t at, axis, wanted;
    if (!gather_at(r, first, &at, &wanted)) return false;
    for (struct wml_use *u = first->in[0]->uses; u; u = u->next) {
        if (u->node->graph != first->graph || u->slot || !wml_node_is(u->node, "Gather") || !wml_node_out(u->node, 0)) continue;
        if (!gather_at(r, u->node, &at, &axis) || axis != wanted) continue;
        if (!add(t, u->node, (size_t)axis, wml_value_axis(first->in[0], (size_t)axis).size, at, 1)) return false;
    }
    return tiles(t);
}

/* The Split stands before every reader of any part: at the first of the siblings. */
static void split(struct wml_pass_run *r, const struct tile *t, struct wml_node *first)
{
    struct wml_value *x = first->in[0], *axes = NULL;
    struct wml_node *s = wml_node_new(first, "", "Split");
    int64_t axis = (int64_t)t->axis;
    bool gather = wml_node_is(first, "Gather");
    s->name = wml_model_unique(r->model, WML_STR("algebraic_slice_split"));
    wml_attr_set_int(s, "axis", axis);
    wml_node_set_input(s, 0, x);
    wml_node_set_input(s, 1, wml_graph_add_init(s->graph, WML_STR("algebraic_slice_splits"), wml_tensor_i64s(r->model, t->n, t->count)));
    if (gather) axes = wml_graph_add_init(s->graph, WML_STR("algebraic_squeeze_axes"), wml_tensor_i64s(r->model, 1, &axis));
    for (size_t i = 0; i < t->n; i++) {
        struct wml_node *n = t->node[i];
        wml_pass_applied(r, n->op_type, n->name);
        if (gather) {
            struct wml_value *part = wml_node_add_output(s, WML_STR("algebraic_split_part"));
            wml_node_set_input(n, 0, part);
            wml_node_set_input(n, 1, axes);
            wml_attr_remove(n, "axis");
            wml_node_set_op(n, "", "Squeeze");
        } else {
            wml_node_take_output(s, i, n->out[0]);
            wml_node_remove(n);
        }
    }
}

static bool each_graph(void *arg, struct wml_graph *g)
{
    struct wml_pass_run *r = arg;
    for (struct wml_node *n = g->first, *next; n; n = next) {
        struct tile t = {.n = 0};
        bool slice = wml_node_is(n, "Slice"), gather = r->asked && wml_node_is(n, "Gather");
        next = n->next;
        if ((!slice && !gather) || !wml_node_in(n, 0) || n->in[0]->n_uses < 2 || !wml_node_out(n, 0)) continue;
        if (!(slice ? collect_slices(r, n, &t) : collect_gathers(r, n, &t))) continue;
        /* n comes first in execution order: its siblings are behind it. */
        while (next) {
            bool sibling = false;
            for (size_t i = 0; i < t.n; i++) sibling = sibling || t.node[i] == next;
            if (!sibling) break;
            next = next->next;
        }
        split(r, &t, n);
    }
    return true;
}

static bool run(struct wml_pass_run *r, struct wml_err *err)
{
    (void)err;
    if (wml_model_opset(r->model, "") < 13) return wml_pass_skip(r, "Split takes its sizes from an input from opset 13");
    return wml_model_each_graph(r->model, each_graph, r);
}

const struct wml_pass wml_pass_gather_slice_to_split_fusion = {
    .name = "gather-slice-to-split-fusion", .category = "misc", .pipe = "ort_graph+algebraic_rewrite",
    .ort_name = "GatherSliceToSplitFusion", .level = 2, .on = true, .wider = true, .run = run,
    .summary = "Turn Slices that tile an axis into one Split (Gathers of single indices too, when asked for)",
};
