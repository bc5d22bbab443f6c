/* Q, DQ, Q, DQ with one type: the inner DQ and Q go when both pairs have the same scale and zero point. Other
 * pairs stay: merging them would change scales. */
#include "passes/qdq.h"

static bool visit(struct wml_pass_run *r, struct wml_node *n)
{
    struct wml_node *dq, *q;
    if (!wml_node_is(n, "QuantizeLinear") || !wml_node_out(n, 0)) return true;
    dq = wml_node_producer(n, 0);
    q = dq && wml_node_is(dq, "DequantizeLinear") ? wml_node_producer(dq, 0) : NULL;
    if (!q || !wml_node_is(q, "QuantizeLinear") || q->graph != n->graph || dq->graph != n->graph) return true;
    if (!wml_attrs_eq(r->model, q, n) || wml_value_elem(q->out[0]) != wml_value_elem(n->out[0])) return true;
    if (!wml_qdq_same(r, q, n) || !wml_qdq_same(r, q, dq) || !wml_qdq_is_exact(q)) {
        wml_pass_refuse(r, n, "the pairs differ in scale, zero point or axis, or the scale is too coarse to be exact");
        return true;
    }
    struct wml_str op = n->op_type, name = n->name;
    if (wml_bypass(n, q->out[0])) wml_pass_applied(r, op, name);
    return true;
}

const struct wml_pass wml_pass_double_qdq_pairs_remover = {
    .name = "double-qdq-pairs-remover", .category = "graph", .pipe = "ort_graph", .ort_name = "DoubleQDQPairsRemover", .level = 1,
    .visit = visit, .summary = "Remove a DequantizeLinear and QuantizeLinear between equal pairs",
};
