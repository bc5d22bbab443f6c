/* Layers with constant weights, and constants times factors per channel, as DERIVED tensors. */
#include "quant/layer.h"

#include <math.h>
#include <string.h>

#include "base/num.h"
#include "quant/derive.h"

bool wml_constant_is_own(const struct wml_value *v)
{
    return v && v->init && wml_value_is_constant(v) && v->n_uses == 1 && !v->n_inputs && !v->n_outputs && !v->pinned;
}

static bool is_weight(const struct wml_node *n)
{
    const struct wml_value *w = wml_node_in(n, 1);
    if (!w || w->graph != n->graph || !w->init || w->sparse || !wml_value_is_constant(w) || w->init->dtype != WML_F32) return false;
    for (size_t i = 0; i < w->init->dims.len; i++)
        if (w->init->dims.at[i] <= 0) return false;
    return true;
}

static bool is_convolution(const struct wml_node *n, struct wml_layer *l)
{
    const struct wml_tensor *t = l->weight->init;
    int64_t groups = wml_attr_int(n, "group", 1);
    l->out_first = wml_node_is(n, "Conv");
    if ((!l->out_first && !wml_node_is(n, "ConvTranspose")) || t->dims.len < 3 || groups < 1 || t->dims.at[0] % groups) return false;
    l->groups = (size_t)groups;
    l->spatial = true;
    for (size_t i = 2; i < t->dims.len; i++) l->inner *= (size_t)t->dims.at[i];
    return true;
}

static bool is_matrix(const struct wml_node *n, struct wml_layer *l)
{
    bool gemm = wml_node_is(n, "Gemm");
    if ((!gemm && !wml_node_is(n, "MatMul")) || l->weight->init->dims.len != 2 || wml_attr_int(n, "transA", 0)) return false;
    l->out_first = gemm && wml_attr_int(n, "transB", 0);
    return true;
}

bool wml_layer_of(struct wml_node *n, struct wml_layer *out)
{
    *out = (struct wml_layer){.node = n, .inner = 1, .groups = 1};
    if (!n || n->n_out != 1 || !is_weight(n)) return false;
    out->weight = n->in[1];
    if (out->weight == n->in[0] || (!is_convolution(n, out) && !is_matrix(n, out))) return false;
    out->first = (size_t)out->weight->init->dims.at[0];
    out->second = (size_t)out->weight->init->dims.at[1];
    size_t others = out->second * out->groups;
    out->n_out = out->out_first ? out->first : others;
    out->n_in = out->out_first ? others : out->first;
    return true;
}

float *wml_layer_peaks(struct wml_model *m, const struct wml_layer *l, struct wml_err *err)
{
    struct wml_span bytes;
    size_t n = l->first * l->second;
    if (!wml_tensor_bytes(m, l->weight->init, &bytes, err)) return NULL;
    float *peak = wml_big_alloc((uint64_t)n * sizeof *peak, err);
    for (size_t i = 0; peak && i < n; i++) {
        float most = 0, v;
        for (size_t k = 0; k < l->inner; k++) {
            memcpy(&v, bytes.ptr + (i * l->inner + k) * sizeof v, sizeof v);
            v = fabsf(v);
            most = v > most ? v : most;
        }
        peak[i] = most;
    }
    return peak;
}

bool wml_constant_put(struct wml_node *n, size_t slot, struct wml_tensor *t)
{
    struct wml_value *v = wml_node_in(n, slot);
    if (!t) return false;
    if (wml_constant_is_own(v)) wml_value_set_init(v, t);
    else wml_node_set_input(n, slot, wml_graph_add_init(n->graph, v ? v->name : wml_arena_fmt(&n->graph->model->arena, "%.*s_bias", WML_ARG(n->name)), t));
    return true;
}

bool wml_layer_scale(struct wml_model *m, const struct wml_layer *l, const double *out, const double *in, struct wml_err *err)
{
    struct wml_scaling s = {.first = l->first, .second = l->second, .inner = l->inner, .groups = l->groups,
                            .by_first = l->out_first ? out : in, .by_second = l->out_first ? in : out};
    return wml_constant_put(l->node, 1, wml_quant_derive_scaled(m, l->weight->init, &s, err));
}

bool wml_constant_scale(struct wml_node *n, size_t slot, int64_t axis, size_t n_factors, const double *factor, struct wml_err *err)
{
    struct wml_tensor *t = n->in[slot]->init;
    struct wml_scaling s = {.first = 1, .second = n_factors, .inner = 1, .groups = 1, .by_second = factor};
    if (axis < 0) axis += (int64_t)t->dims.len;
    for (size_t i = 0; i < t->dims.len; i++) *((int64_t)i < axis ? &s.first : &s.inner) *= (int64_t)i == axis ? 1 : (size_t)t->dims.at[i];
    return wml_constant_put(n, slot, wml_quant_derive_scaled(n->graph->model, t, &s, err));
}
