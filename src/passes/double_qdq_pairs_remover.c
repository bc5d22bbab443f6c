/* Q, DQ, Q, DQ with one type: the inner DQ and Q go when both pairs have the same scale and zero point. Other
 * pairs stay: merging them would change scales. */
#include "passes/match.h"

static bool same_constant(struct wml_pass_run *r, struct wml_value *a, struct wml_value *b)
{
    struct wml_tensor *x = wml_constant_of(a), *y = wml_constant_of(b);
    return a == b || (x && y && wml_tensor_eq(r->model, x, y));
}

/* Per axis or in blocks, both nodes must mean the same one. */
static bool same_axis(const struct wml_node *a, const struct wml_node *b)
{
    return wml_attr_int(a, "axis", 1) == wml_attr_int(b, "axis", 1) &&
           wml_attr_int(a, "block_size", 0) == wml_attr_int(b, "block_size", 0);
}

/* Q(DQ(q)) = q: half floats cannot hold every 16-bit integer. */
static bool is_exact(const struct wml_node *q)
{
    int scale = (int)wml_value_elem(q->in[1]), to = (int)wml_value_elem(q->out[0]);
    return scale == WML_F32 || (scale != WML_UNDEFINED && to != WML_UNDEFINED && wml_dtype_info(to)->bits <= 8);
}

static bool visit(void *arg, struct wml_node *n)
{
    struct wml_pass_run *r = arg;
    struct wml_node *dq, *q;
    if (!wml_node_is(n, "QuantizeLinear") || !wml_node_out(n, 0)) return true;
    dq = wml_node_producer(n, 0);
    q = dq && wml_node_is(dq, "DequantizeLinear") ? wml_node_producer(dq, 0) : NULL;
    if (!q || !wml_node_is(q, "QuantizeLinear") || q->graph != n->graph || dq->graph != n->graph) return true;
    if (!wml_attrs_eq(r->model, q, n) || wml_value_elem(q->out[0]) != wml_value_elem(n->out[0])) return true;
    if (!same_axis(q, dq) || !is_exact(q)) {
        wml_pass_refuse(r, n, "the pairs differ in their axis, or the scale is too coarse to be exact");
        return true;
    }
    for (size_t i = 1; i < 3; i++) {
        struct wml_value *a = wml_node_in(q, i), *b = wml_node_in(n, i), *c = wml_node_in(dq, i);
        if ((!a != !b) || (!a != !c) || (a && (!same_constant(r, a, b) || !same_constant(r, a, c)))) {
            wml_pass_refuse(r, n, "the two pairs have different scales or zero points");
            return true;
        }
    }
    struct wml_str op = n->op_type, name = n->name;
    if (wml_bypass(n, q->out[0])) wml_pass_applied(r, op, name);
    return true;
}

static bool run(struct wml_pass_run *r, struct wml_err *err)
{
    (void)err;
    return wml_pass_each(r, visit);
}

const struct wml_pass wml_pass_double_qdq_pairs_remover = {
    .name = "double-qdq-pairs-remover", .category = "graph", .pipe = "ort_graph", .ort_name = "DoubleQDQPairsRemover", .level = 1,
    .run = run, .summary = "Remove a DequantizeLinear and QuantizeLinear between equal pairs",
};
