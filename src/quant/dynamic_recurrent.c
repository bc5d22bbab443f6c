/* LSTM to DynamicQuantizeLSTM: both weights as int8, transposed as that operator wants them. And Attention to QAttention. */
#include "quant/dynamic_internal.h"
#include "quant/kernel.h"

/* [dirs, rows, columns] as int8 [dirs, columns, rows]. One scale for each direction, or for each of its rows. */
static bool recurrent_weight(struct wml_dynamic *d, struct wml_value *v, struct wml_dynq *out)
{
    struct wml_model *m = d->r->model;
    struct wml_tensor *t = wml_value_tensor(v);
    struct wml_span bytes;
    if (!wml_tensor_bytes(m, t, &bytes, d->err)) return false;
    bool channels = d->r->opts->per_channel;
    size_t dirs = (size_t)t->dims.at[0], rows = (size_t)t->dims.at[1], columns = (size_t)t->dims.at[2], all = dirs * rows * columns;
    size_t n = channels ? dirs * rows : dirs, inner = n ? all / n : 0;
    int64_t dims[3] = {t->dims.at[0], t->dims.at[2], t->dims.at[1]};
    struct wml_qform form = wml_dynamic_form(d, WML_I8);
    struct wml_weight_range *range = WML_NEW_ARRAY(&m->arena, struct wml_weight_range, n + 1);
    float *scale = WML_NEW_ARRAY(&m->arena, float, n + 1);
    int32_t *zero = WML_NEW_ARRAY(&m->arena, int32_t, n + 1);
    int8_t *point = WML_NEW_ARRAY(&m->arena, int8_t, n + 1);
    wml_weight_ranges(WML_F32, bytes.ptr, 1, n, inner, range);
    for (size_t i = 0; i < n; i++) {
        if (range[i].has_nan || range[i].has_inf) return wml_dynamic_leave(d, v);
        struct wml_qparams p = wml_qparams_of(&form, WML_F32, range[i].low, range[i].high, d->r->opts->min_real_range);
        scale[i] = (float)p.scale;
        zero[i] = p.zero;
        point[i] = (int8_t)p.zero;
    }
    int8_t *q = wml_big_alloc(all + 1, d->err), *turned = q ? wml_big_alloc(all + 1, d->err) : NULL;
    if (!turned) {
        free(q);
        return false;
    }
    struct wml_linear linear = {.type = WML_I8, .n = n, .inner = inner, .scale = scale, .zero = zero};
    wml_kernel_linear(&linear, WML_F32, bytes.ptr, 0, all, q);
    for (size_t k = 0; k < dirs; k++)
        for (size_t i = 0; i < rows; i++)
            for (size_t j = 0; j < columns; j++) turned[(k * columns + j) * rows + i] = q[(k * rows + i) * columns + j];
    free(q);
    struct wml_tensor *made[3] = {wml_tensor_own(m, WML_I8, 3, dims, turned, all, d->err)};
    int64_t of[2] = {t->dims.at[0], t->dims.at[1]};
    made[1] = made[0] ? wml_tensor_copy(m, WML_F32, channels ? 2 : 1, of, scale, n * sizeof *scale, d->err) : NULL;
    made[2] = made[1] ? wml_tensor_copy(m, WML_I8, channels ? 2 : 1, of, point, n, d->err) : NULL;
    if (!made[2]) return false;
    struct wml_value *added[3];
    static const char *const suffix[] = {"_quantized", "_scale", "_zero_point"};
    for (size_t i = 0; i < 3; i++)
        added[i] = wml_graph_add_init(v->graph, wml_arena_fmt(&m->arena, "%.*s%s", WML_ARG(v->name), suffix[i]), made[i]);
    *out = (struct wml_dynq){.q = added[0], .scale = added[1], .zero = added[2]};
    d->r->result->weights++;
    return true;
}

static bool is_matrix_stack(const struct wml_value *v)
{
    return wml_dynamic_is_weight(v) && wml_value_tensor(v)->dims.len == 3;
}

/* The same outputs of another operator. */
static struct wml_node *become(struct wml_node *n, const char *op_type)
{
    struct wml_node *by = wml_node_new(n, "com.microsoft", op_type);
    by->name = wml_model_unique(n->graph->model, wml_arena_fmt(&n->graph->model->arena, "%.*s_quant", WML_ARG(n->name)));
    wml_attrs_copy(by, n);
    for (size_t i = 0; i < n->n_out; i++)
        if (n->out[i]) wml_node_take_output(by, i, n->out[i]);
    if (!wml_model_opset(n->graph->model, "com.microsoft")) wml_model_set_opset(n->graph->model, "com.microsoft", 1);
    return by;
}

bool wml_dynamic_lstm(struct wml_dynamic *d, struct wml_node *n)
{
    enum { W_SCALE = 8 };
    struct wml_dynq w, r;
    struct wml_value *x = wml_node_in(n, 0);
    if (!is_matrix_stack(wml_node_in(n, 1)) || !is_matrix_stack(wml_node_in(n, 2)) || !x) return false;
    if (wml_attr_int(n, "layout", 0)) {
        wml_quant_note(d->r, n->name, "stays float: DynamicQuantizeLSTM knows no layout 1");
        return false;
    }
    if (!recurrent_weight(d, n->in[1], &w) || !recurrent_weight(d, n->in[2], &r)) return false;
    struct wml_node *by = become(n, "DynamicQuantizeLSTM");
    for (size_t i = 0; i < W_SCALE; i++)
        if (wml_node_in(n, i)) wml_node_set_input(by, i, i == 1 ? w.q : i == 2 ? r.q : n->in[i]);
    struct wml_value *const form[] = {w.scale, w.zero, r.scale, r.zero};
    for (size_t i = 0; i < WML_COUNT(form); i++) wml_node_set_input(by, W_SCALE + i, form[i]);
    wml_node_remove(n);
    return true;
}

/* Inputs of Attention: x, weights, bias, mask, past. Of QAttention: those, and after the bias both scales, after the mask both
 * zero points. */
bool wml_dynamic_attention(struct wml_dynamic *d, struct wml_node *n)
{
    struct wml_dynq x, w;
    if (!wml_dynamic_is_weight(wml_node_in(n, 1)) || wml_attr_find(n, "qkv_hidden_sizes") || !wml_node_in(n, 2) || wml_node_in(n, 5)) return false;
    if (!wml_dynamic_weight(d, n->in[1], wml_dynamic_type(d), d->r->opts->per_channel, &w)) return false;
    x = wml_dynamic_activation(d, n->in[0], n);
    struct wml_node *by = become(n, "QAttention");
    struct wml_value *const in[] = {x.q, w.q, n->in[2], x.scale, w.scale, wml_node_in(n, 3), x.zero, w.zero, wml_node_in(n, 4)};
    for (size_t i = 0; i < WML_COUNT(in); i++)
        if (in[i]) wml_node_set_input(by, i, in[i]);
    wml_node_remove(n);
    return true;
}
