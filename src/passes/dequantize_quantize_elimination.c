/* Integers that are dequantised and quantised back the same way are the integers they were. */
#include "passes/qdq.h"

static bool visit(struct wml_pass_run *r, struct wml_node *n)
{
    if (!wml_node_is(n, "QuantizeLinear") || !wml_node_out(n, 0) || n->n_in < 2 || !n->in[1]) return true;
    const struct wml_node *dq = wml_node_producer(n, 0);
    if (!dq || !wml_node_is(dq, "DequantizeLinear") || dq->graph != n->graph || !wml_node_in(dq, 0) || !wml_node_in(dq, 1)) return true;
    struct wml_value *q = dq->in[0];
    const enum wml_dtype integer = wml_value_elem(q), real = wml_value_elem(n->in[1]);
    if (integer == WML_UNDEFINED || integer != wml_value_elem(n->out[0]) || real != wml_value_elem(dq->out[0])) return true;
    if (!wml_qdq_same(r, dq, n)) {
        wml_pass_refuse(r, n, "its scale or zero point is another one than that of the DequantizeLinear before it");
        return true;
    }
    if (!wml_qdq_is_exact(n)) {
        wml_pass_refuse(r, n, "its scale is too coarse to be exact");
        return true;
    }
    struct wml_str op = n->op_type, name = n->name;
    if (wml_bypass(n, q)) wml_pass_applied(r, op, name);
    return true;
}

const struct wml_pass wml_pass_dequantize_quantize_elimination = {
    .name = "dequantize-quantize-elimination", .category = "quantization", .on = true, .visit = visit,
    .summary = "Remove QuantizeLinear of what was dequantized with the same scale and zero point",
};
