/* Round to nearest: weights become integers of 4 or 8 bits in blocks, each with its own scale, and are widened while the
 * model runs. Activations stay what they are, no data is needed.
 *
 *     MatMul(x, W) -> com.microsoft::MatMulNBits(x, W_Q4, W_scales[, W_zero_points])
 *     Gather(W, i) -> com.microsoft::GatherBlockQuantized(W_Q4, i, W_scales[, W_zero_points])     when asked
 * in every graph. W is a constant matrix (sizes of 1 may stand before it), or a table whose rows are gathered. The numbers are
 * those of ONNX Runtime's quantizer. Left alone: Gemm, stacks of matrices, weights with NaN or infinities. */
#include <inttypes.h>

#include "graph/graph.h"
#include "quant/rtn_internal.h"
#include "quant/select.h"

enum { DEFAULT_BITS = 4, DEFAULT_BLOCK = 128, IR_INT4 = 10, UNSQUEEZE_BY_INPUT = 13 };

static bool is_weight(const struct wml_value *v, size_t least_rank)
{
    const struct wml_tensor *t = v ? wml_value_tensor(v) : NULL;
    if (!t || (!v->def && !wml_value_is_constant(v)) || t->dims.len < least_rank) return false;
    for (size_t i = 0; i < t->dims.len; i++)
        if (t->dims.at[i] < 1) return false;
    return t->dtype == WML_F32 || t->dtype == WML_F16 || t->dtype == WML_BF16;
}

static bool stays(struct wml_rtn *t, const struct wml_node *n, const char *why)
{
    wml_quant_note(t->r, wml_str(wml_node_label(n)), "stays float: %s", why);
    return false;
}

/* Sizes of 1 that MatMul puts before its result because its weight has more axes than x; -1: not known. */
static int64_t leading(const struct wml_value *x, size_t weight_rank)
{
    int64_t rank = wml_value_rank(x), have = WML_MAX(rank, 2);
    if (weight_rank == 2) return 0;
    return rank < 0 ? -1 : WML_MAX((int64_t)weight_rank - have, 0);
}

static struct wml_node *instead(struct wml_rtn *t, struct wml_node *n, const char *op_type)
{
    struct wml_model *m = t->r->model;
    struct wml_node *by = wml_node_new(n, "com.microsoft", op_type);
    if (!wml_model_opset(m, "com.microsoft")) wml_model_set_opset(m, "com.microsoft", 1);
    by->name = wml_model_unique(m, wml_arena_fmt(&m->arena, "%.*s_Q%u", WML_ARG(n->name), t->bits));
    return by;
}

static void add_weight(struct wml_node *n, const struct wml_rtn_weight *w)
{
    wml_node_add_input(n, w->scale);
    if (w->zero) wml_node_add_input(n, w->zero);
}

/* A node whose output is y with `count` axes of size 1 before its own. */
static void unsqueeze(struct wml_node *before, struct wml_value *narrow, size_t count, struct wml_value *y)
{
    struct wml_model *m = before->graph->model;
    struct wml_node *n = wml_node_new(before, "", "Unsqueeze");
    int64_t *axis = WML_NEW_ARRAY(&m->arena, int64_t, count);
    for (size_t i = 0; i < count; i++) axis[i] = (int64_t)i;
    n->name = wml_model_unique(m, wml_arena_fmt(&m->arena, "%.*s_unsqueeze", WML_ARG(y->name)));
    wml_node_add_input(n, narrow);
    if (wml_model_opset(m, "") < UNSQUEEZE_BY_INPUT) wml_attr_set_ints(n, "axes", count, axis);
    else wml_node_add_input(n, wml_graph_add_init(before->graph, wml_arena_fmt(&m->arena, "%.*s_axes", WML_ARG(y->name)),
                                                  wml_tensor_i64s(m, count, axis)));
    wml_node_take_output(n, 0, y);
}

static bool matmul(struct wml_rtn *t, struct wml_node *n)
{
    struct wml_value *b = wml_node_in(n, 1), *y = n->out[0];
    struct wml_rtn_weight w;
    if (!is_weight(b, 2)) return false;
    const struct wml_tensor *weight = wml_value_tensor(b);
    const size_t rank = weight->dims.len;
    for (size_t i = 0; i + 2 < rank; i++)
        if (weight->dims.at[i] != 1) return stays(t, n, "its weight is a stack of matrices");
    const int64_t ones = leading(n->in[0], rank);
    if (ones < 0) return stays(t, n, "its weight has more than two axes and the rank of its input is not known");
    if (!wml_rtn_matrix(t, b, &w) || !w.q) return false;
    struct wml_node *by = instead(t, n, "MatMulNBits");
    wml_node_add_input(by, n->in[0]);
    wml_node_add_input(by, w.q);
    add_weight(by, &w);
    wml_attr_set_int(by, "K", weight->dims.at[rank - 2]);
    wml_attr_set_int(by, "N", weight->dims.at[rank - 1]);
    wml_attr_set_int(by, "bits", t->bits);
    wml_attr_set_int(by, "block_size", (int64_t)t->block_size);
    if (t->r->opts->accuracy_level) wml_attr_set_int(by, "accuracy_level", t->r->opts->accuracy_level);
    if (ones) unsqueeze(n, wml_node_add_output(by, wml_arena_fmt(&t->r->model->arena, "%.*s_flat", WML_ARG(y->name))), (size_t)ones, y);
    else wml_node_take_output(by, 0, y);
    wml_node_remove(n);
    return true;
}

/* Rows of a table; others would need blocks along the gathered axis. */
static bool gather(struct wml_rtn *t, struct wml_node *n)
{
    struct wml_value *table = n->in[0];
    struct wml_rtn_weight w;
    if (!t->r->opts->gather || !is_weight(table, 2)) return false;
    const struct wml_tensor *weight = wml_value_tensor(table);
    const int64_t axis = wml_attr_int(n, "axis", 0);
    if (weight->dims.len != 2 || (axis != 0 && axis != -2)) return stays(t, n, "only rows of a table with two axes can be quantized");
    if (weight->dtype == WML_BF16) return stays(t, n, "ONNX Runtime has no quantized tables of bfloat16");
    if (!wml_rtn_table(t, table, &w) || !w.q) return false;
    struct wml_node *by = instead(t, n, "GatherBlockQuantized");
    wml_node_add_input(by, w.q);
    wml_node_add_input(by, n->in[1]);
    add_weight(by, &w);
    wml_attr_set_int(by, "gather_axis", 0);
    wml_attr_set_int(by, "quantize_axis", 1);
    wml_attr_set_int(by, "block_size", (int64_t)t->block_size);
    if (t->bits != DEFAULT_BITS) wml_attr_set_int(by, "bits", t->bits);
    wml_node_take_output(by, 0, n->out[0]);
    wml_node_remove(n);
    return true;
}

static bool convert_graph(void *arg, struct wml_graph *g)
{
    struct wml_rtn *t = arg;
    for (struct wml_node *n = g->first, *next; n; n = next) {
        bool done = false;
        next = n->next;
        if (!wml_quant_selects(t->r->opts, n)) continue;
        if (wml_node_is(n, "MatMul")) done = matmul(t, n);
        else if (wml_node_is(n, "Gather")) done = gather(t, n);
        if (done) t->r->result->nodes++;
        else if (t->err->code) return false;
    }
    return true;
}

static bool apply(struct wml_quant_run *r, struct wml_err *err)
{
    const struct wml_quant_opts *o = r->opts;
    struct wml_err why = {0};
    struct wml_rtn t = {.r = r, .err = &why, .bits = o->bits ? o->bits : DEFAULT_BITS, .block_size = o->block_size ? o->block_size : DEFAULT_BLOCK};
    wml_model_unique_node_names(r->model);
    bool ok = wml_quant_infer(r, &why);
    ok = ok && wml_model_each_graph(r->model, convert_graph, &t);
    if (ok && !r->result->nodes) {
        ok = wml_fail(&why, WML_E_UNSUPPORTED, "no MatMul%s with a constant float weight to quantize", o->gather ? " or Gather" : "");
        wml_quant_hint_nothing(r, "weights of Conv and Gemm become integers with -p int8 or -p dynamic", &why);
    }
    if (ok) wml_quant_drop_constants(r->model);
    if (ok && t.has_int4) wml_model_raise_ir(r->model, IR_INT4);
    if (!ok) *err = why;
    wml_map_release(&t.made);
    return ok;
}

const struct wml_quant_method wml_quant_rtn = {.name = "rtn", .label = "RTN quantization", .apply = apply};
