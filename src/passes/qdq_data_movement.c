/* DequantizeLinear, an operator that only moves elements, QuantizeLinear with the same scale: the operator moves the
 * integers. Not by default: some EPs know the operator on integers only between such a pair. */
#include "passes/qdq.h"

enum { ANY_INTEGER_OPSET = 13 };

/* One source of elements, input 0, and one result. */
static bool moves_one(const struct wml_node *n)
{
    static const char *const op[] = {"Reshape", "Transpose", "Squeeze", "Unsqueeze", "Flatten", "Slice", "Gather", "Expand",
                                     "Tile",    "DepthToSpace", "SpaceToDepth"};
    for (size_t i = 0; i < WML_COUNT(op); i++)
        if (wml_node_is(n, op[i])) return n->n_out == 1 && n->in[0];
    return false;
}

static bool visit(struct wml_pass_run *r, struct wml_node *q)
{
    if (!wml_node_is(q, "QuantizeLinear") || !wml_node_out(q, 0) || q->n_in < 2 || !q->in[1]) return true;
    struct wml_node *n = wml_node_producer(q, 0);
    struct wml_node *dq = n && moves_one(n) && n->graph == q->graph ? wml_node_producer(n, 0) : NULL;
    if (!dq || !wml_node_is(dq, "DequantizeLinear") || dq->graph != q->graph || !wml_node_in(dq, 1)) return true;
    if (wml_value_only_user(n->out[0]) != q || n->out[0]->pinned) return true;
    const struct wml_tensor *scale = wml_constant_of(q->in[1]);
    uint64_t count = 0;
    if (!scale || !wml_tensor_count(scale, &count, NULL) || count != 1 || scale->dims.len > 1) {
        wml_pass_refuse(r, q, "its scale is not one constant");
        return true;
    }
    if (!wml_qdq_same(r, dq, q) || wml_value_elem(dq->in[0]) != wml_value_elem(q->out[0]) || !wml_qdq_is_exact(q)) {
        wml_pass_refuse(r, q, "its scale, zero point or type is another one than that of the DequantizeLinear before");
        return true;
    }
    struct wml_value *result = q->out[0];
    struct wml_str op = q->op_type, name = q->name;
    wml_node_set_input(n, 0, dq->in[0]);
    wml_node_set_input(q, 0, NULL);
    wml_node_drop_output(n, 0);
    wml_node_take_output(n, 0, result);
    wml_node_remove(q);
    wml_pass_applied(r, op, name);
    return true;
}

static bool run(struct wml_pass_run *r, struct wml_err *err)
{
    (void)err;
    if (wml_model_opset(r->model, "") < ANY_INTEGER_OPSET) return wml_pass_skip(r, "below opset 13 not all of them take integers");
    return wml_pass_each(r, visit);
}

const struct wml_pass wml_pass_qdq_data_movement = {
    .name = "qdq-data-movement", .category = "quantization", .run = run,
    .summary = "Move integers instead of what they stand for, between a DequantizeLinear and QuantizeLinear of one scale",
};
