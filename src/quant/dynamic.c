/* Dynamic quantisation: weights are integers in the file, activations become integers while the model runs, scaled by what
 * they hold just then. No data is needed to calibrate with.
 *
 *     MatMul(x, W) -> DynamicQuantizeLinear(x) -> MatMulInteger -> Cast -> Mul by both scales
 *     Conv         -> ConvInteger likewise, the bias added afterwards
 *     Gemm         -> MatMul and Add first (alpha and beta 1, A not transposed)
 *     Gather       -> of a table of uint8, then DequantizeLinear; MatMul, Conv and Transpose read the integers
 *     LSTM, com.microsoft Attention -> DynamicQuantizeLSTM, QAttention
 * The numbers are those of ONNX Runtime's quantize_dynamic. Left alone: weights that are no constants of float32. */
#include <inttypes.h>

#include "graph/graph.h"
#include "quant/dynamic_internal.h"
#include "quant/select.h"

static struct wml_str name_of(const struct wml_node *n, const char *suffix)
{
    return wml_model_unique(n->graph->model, wml_arena_fmt(&n->graph->model->arena, "%.*s%s", WML_ARG(n->name), suffix));
}

static struct wml_value *op(struct wml_node *before, const char *type, const char *suffix, struct wml_value *a, struct wml_value *b)
{
    struct wml_node *n = wml_node_new(before, "", type);
    n->name = name_of(before, suffix);
    wml_node_add_input(n, a);
    if (b) wml_node_add_input(n, b);
    return wml_node_add_output(n, wml_arena_fmt(&n->graph->model->arena, "%.*s%s", WML_ARG(before->out[0]->name), suffix));
}

/* The product of integers as floats: cast, then multiplied by both scales. It takes the place of n's output, or is returned
 * for a bias to be added. */
static struct wml_value *scaled(struct wml_node *n, struct wml_value *product, const struct wml_dynq *x, const struct wml_dynq *w)
{
    struct wml_value *f = op(n, "Cast", "_cast", product, NULL);
    wml_attr_set_int(f->def, "to", WML_F32);
    struct wml_value *scales = op(n, "Mul", "_scales_mul", x->scale, w->scale);
    return op(n, "Mul", "_output_scale_mul", f, scales);
}

static void replace(struct wml_node *n, struct wml_value *by)
{
    struct wml_node *last = by->def;
    struct wml_value *old = n->out[0];
    wml_value_replace_uses(by, old);
    wml_node_drop_output(last, 0);
    wml_node_take_output(last, 0, old);
    wml_node_remove(n);
}

static struct wml_value *product(struct wml_node *n, const char *type, const struct wml_dynq *x, const struct wml_dynq *w)
{
    struct wml_node *p = wml_node_new(n, "", type);
    p->name = name_of(n, "_quant");
    wml_node_add_input(p, x->q);
    wml_node_add_input(p, w->q);
    wml_node_add_input(p, x->zero);
    wml_node_add_input(p, w->zero);
    wml_attrs_copy(p, n);
    return wml_node_add_output(p, wml_arena_fmt(&n->graph->model->arena, "%.*s_output_quantized", WML_ARG(n->out[0]->name)));
}

static bool matmul(struct wml_dynamic *d, struct wml_node *n)
{
    struct wml_dynq x, w;
    if (n->n_in != 2 || !wml_dynamic_is_weight(n->in[1]) || !n->in[0]) return false;
    /* Vectors have no columns, and for stacks of matrices kernels want scales of another shape. */
    bool channels = d->r->opts->per_channel && wml_value_tensor(n->in[1])->dims.len == 2;
    if (!wml_dynamic_weight(d, n->in[1], wml_dynamic_type(d), channels, &w)) return false;
    x = wml_dynamic_activation(d, n->in[0], n);
    replace(n, scaled(n, product(n, "MatMulInteger", &x, &w), &x, &w));
    return true;
}

/* The CPU's ConvInteger has kernels for uint8 weights only. */
static bool conv(struct wml_dynamic *d, struct wml_node *n)
{
    struct wml_model *m = d->r->model;
    struct wml_dynq x, w;
    if (!wml_dynamic_is_weight(wml_node_in(n, 1)) || !n->in[0]) return false;
    struct wml_value *bias = wml_node_in(n, 2);
    size_t rank = wml_value_tensor(n->in[1])->dims.len;
    if (!wml_dynamic_weight(d, n->in[1], WML_U8, false, &w)) return false;
    x = wml_dynamic_activation(d, n->in[0], n);
    struct wml_value *y = scaled(n, product(n, "ConvInteger", &x, &w), &x, &w);
    if (bias) {
        int64_t *shape = WML_NEW_ARRAY(&m->arena, int64_t, rank);
        for (size_t i = 0; i < rank; i++) shape[i] = i == 1 ? -1 : 1;
        struct wml_value *dims = wml_graph_add_init(n->graph, wml_arena_fmt(&m->arena, "%.*s_bias_reshape_shape", WML_ARG(n->out[0]->name)),
                                                    wml_tensor_i64s(m, rank, shape));
        y = op(n, "Add", "_bias_add", y, op(n, "Reshape", "_bias_reshape", bias, dims));
    }
    replace(n, y);
    return true;
}

static struct wml_value *transposed(struct wml_dynamic *d, struct wml_value *v)
{
    struct wml_model *m = d->r->model;
    struct wml_tensor *t = wml_value_tensor(v);
    struct wml_span bytes;
    if (t->dims.len != 2 || !wml_tensor_bytes(m, t, &bytes, d->err)) return NULL;
    size_t rows = (size_t)t->dims.at[0], columns = (size_t)t->dims.at[1];
    int64_t dims[2] = {t->dims.at[1], t->dims.at[0]};
    unsigned char *out = wml_big_alloc(bytes.len + 1, d->err);
    if (!out) return NULL;
    for (size_t i = 0; i < rows; i++)
        for (size_t k = 0; k < columns; k++) memcpy(out + 4 * (k * rows + i), bytes.ptr + 4 * (i * columns + k), 4);
    struct wml_tensor *made = wml_tensor_own(m, WML_F32, 2, dims, out, bytes.len, d->err);
    return made ? wml_graph_add_init(v->graph, wml_arena_fmt(&m->arena, "%.*s_Transposed", WML_ARG(v->name)), made) : NULL;
}

/* Gemm to MatMul and Add; the MatMul comes next in the walk. */
static bool open_gemm(struct wml_dynamic *d, struct wml_node *n)
{
    struct wml_value *b = wml_node_in(n, 1), *c = wml_node_in(n, 2);
    bool plain = wml_attr_float(n, "alpha", 1) == 1 && wml_attr_float(n, "beta", 1) == 1 && !wml_attr_int(n, "transA", 0);
    if (!plain || !wml_dynamic_is_weight(b) || !n->in[0] || !wml_dynamic_is_finite(d, b)) return false;
    if (wml_attr_int(n, "transB", 0) && !(b = transposed(d, b))) return false;
    struct wml_value *y = op(n, "MatMul", "_MatMul", n->in[0], b);
    struct wml_node *product_node = y->def;
    if (c) y = op(n, "Add", "_Add", y, c);
    replace(n, y);
    return matmul(d, product_node);
}

/* The integers travel as far as they can: a MatMul that reads them needs no DynamicQuantizeLinear, and nothing is rounded twice. */
static void dequantize_after(struct wml_dynamic *d, struct wml_node *n, const struct wml_dynq *by)
{
    struct wml_model *m = d->r->model;
    struct wml_value *y = n->out[0];
    struct wml_node *dq = n->next ? wml_node_new(n->next, "", "DequantizeLinear") : wml_graph_append(n->graph, "", "DequantizeLinear");
    dq->name = wml_model_unique(m, wml_arena_fmt(&m->arena, "%.*s_DequantizeLinear", WML_ARG(y->name)));
    wml_node_take_output(dq, 0, y);
    struct wml_value *q = wml_node_add_output(n, wml_arena_fmt(&m->arena, "%.*s_quantized", WML_ARG(y->name)));
    wml_node_add_input(dq, q);
    wml_node_add_input(dq, by->scale);
    wml_node_add_input(dq, by->zero);
    WML_PUSH_IN(&m->arena, &d->dq, dq);
    d->r->result->dq++;
    wml_dynamic_know(d, y, &(struct wml_dynq){q, by->scale, by->zero, true});
}

static bool gather(struct wml_dynamic *d, struct wml_node *n)
{
    struct wml_dynq table;
    if (!wml_dynamic_is_weight(n->in[0])) return false;
    if (!wml_dynamic_table(d, n->in[0], &table)) return false;
    wml_node_set_input(n, 0, table.q);
    dequantize_after(d, n, &table);
    return true;
}

static void transpose(struct wml_dynamic *d, struct wml_node *n)
{
    const struct wml_dynq *x = wml_dynamic_known(d, wml_node_in(n, 0));
    if (!x || n->in[0]->graph != n->graph) return;
    wml_node_set_input(n, 0, x->q);
    dequantize_after(d, n, x);
}

/* All readers take the integers. */
static void drop_unread(struct wml_dynamic *d)
{
    for (size_t i = d->dq.len; i-- > 0;) {
        if (!wml_value_is_unused(d->dq.at[i]->out[0])) continue;
        wml_node_remove(d->dq.at[i]);
        d->r->result->dq--;
    }
}

static bool convert(struct wml_dynamic *d, struct wml_node *n)
{
    if (wml_node_is(n, "Transpose")) transpose(d, n);
    if (wml_node_is(n, "MatMul")) return matmul(d, n);
    if (wml_node_is(n, "Conv")) return conv(d, n);
    if (wml_node_is(n, "Gemm")) return open_gemm(d, n);
    if (wml_node_is(n, "Gather")) return gather(d, n);
    if (wml_node_is(n, "LSTM")) return wml_dynamic_lstm(d, n);
    return wml_node_is_in(n, "com.microsoft", "Attention") && wml_dynamic_attention(d, n);
}

static bool convert_graph(void *arg, struct wml_graph *g)
{
    struct wml_dynamic *d = arg;
    for (struct wml_node *n = g->first, *next; n; n = next) {
        next = n->next;
        if (!wml_quant_selects(d->r->opts, n)) continue;
        if (convert(d, n)) d->r->result->nodes++;
        else if (d->err->code) return false;
    }
    return true;
}

/* DynamicQuantizeLinear came with opset 11. */
static bool prepare(struct wml_quant_run *r, struct wml_err *err)
{
    enum { FIRST = 11 };
    if (!wml_quant_infer(r, err)) return false;
    if (wml_model_opset(r->model, "") >= FIRST) return true;
    if (r->env->set_opset && r->env->set_opset(r->env->arg, r->model, FIRST, err)) return true;
    if (!err->code) wml_fail(err, WML_E_UNSUPPORTED, "no conversion is at hand");
    return wml_wrap(err, "dynamic quantization needs opset %d", FIRST);
}

static bool apply(struct wml_quant_run *r, struct wml_err *err)
{
    struct wml_err why = {0};
    struct wml_dynamic d = {.r = r, .err = &why};
    wml_model_unique_node_names(r->model);
    bool ok = prepare(r, &why);
    if (ok && wml_dynamic_type(&d) != r->opts->weight && r->opts->weight)
        wml_quant_note(r, WML_STR("weights"), "%s has no kernels for dynamic quantization: int8 is used", wml_dtype_name((int)r->opts->weight));
    ok = ok && wml_model_each_graph(r->model, convert_graph, &d);
    if (ok && !r->result->nodes) {
        ok = wml_fail(&why, WML_E_UNSUPPORTED, "no MatMul, Gemm, Conv, Gather, LSTM or Attention with a constant float32 weight to quantize");
        wml_quant_hint_nothing(r, "static quantization (-p int8) takes every operator, and -p fp16 every float model", &why);
    }
    if (ok) drop_unread(&d);
    if (ok) wml_quant_drop_constants(r->model);
    if (!ok) *err = why;
    wml_map_release(&d.weights);
    wml_map_release(&d.activations);
    return ok;
}

const struct wml_quant_method wml_quant_dynamic = {.name = "dynamic", .label = "Dynamic quantization", .apply = apply};
