/* Bias correction: Nagel, van Baalen, Blankevoort, Welling, "Data-Free Quantization Through Weight Equalization and Bias
 * Correction", 2019, section 4.2, with means that are measured, not derived.
 *
 * Rounded weights do not only add noise to a layer's outputs, they shift them: E[W~ x] - E[W x] is not 0, for few inputs by a
 * channel (depthwise) it is large. The mean difference of each output channel over the samples goes into the bias. */
#include "quant/fit.h"

#include <math.h>

#include "quant/layer.h"
#include "quant/select.h"

static bool is_float_constant(const struct wml_value *v)
{
    return v && v->init && !v->sparse && wml_value_is_constant(v) && v->init->dtype == WML_F32;
}

/* n elements, in whatever rank. */
static bool is_bias(const struct wml_value *v, size_t n)
{
    uint64_t count;
    return is_float_constant(v) && wml_tensor_count(v->init, &count, NULL) && count == n && v->init->dims.len &&
           v->init->dims.at[v->init->dims.len - 1] == (int64_t)n;
}

/* The Add of a constant per channel that follows a MatMul, and the constant's slot. */
static struct wml_node *bias_behind(const struct wml_layer *l, size_t *slot)
{
    struct wml_node *n = wml_value_only_user(l->node->out[0]);
    if (!n || n->graph != l->node->graph || !wml_node_is(n, "Add")) return NULL;
    *slot = n->in[0] == l->node->out[0] ? 1 : 0;
    return is_bias(n->in[*slot], l->n_out) ? n : NULL;
}

/* The node that adds the bias of layer n, and where; NULL: there is none that could be changed. */
static struct wml_node *find_bias(struct wml_node *n, struct wml_layer *l, size_t *slot)
{
    if (!wml_layer_of(n, l)) return NULL;
    if (wml_node_is(n, "MatMul")) return bias_behind(l, slot);
    *slot = 2;
    if (wml_attr_float(n, "beta", 1) == 0) return NULL;
    return !wml_node_in(n, 2) || is_bias(n->in[2], l->n_out) ? n : NULL;
}

static bool wanted(struct wml_quant_run *r, struct wml_fit_values *out, struct wml_err *err)
{
    (void)err;
    for (struct wml_node *n = r->model->graph->first; n; n = n->next) {
        struct wml_layer l;
        size_t slot;
        struct wml_node *adds = wml_quant_selects(r->opts, n) ? find_bias(n, &l, &slot) : NULL;
        if (!adds || adds->out[0]->pinned) continue;
        struct wml_channels c = {.value = adds->out[0], .axis = l.spatial ? 1 : -1, .n = l.n_out};
        WML_PUSH_IN(&r->model->arena, &out->v, c);
    }
    return true;
}

/* c->value is an Add's output, or a layer's. */
static bool correct(struct wml_quant_run *r, const struct wml_channels *c, bool *done, struct wml_err *err)
{
    struct wml_node *n = c->value->def;
    size_t slot = wml_node_is(n, "Add") ? (is_bias(n->in[1], c->n) ? 1 : 0) : 2;
    double beta = wml_node_is(n, "Gemm") ? (double)wml_attr_float(n, "beta", 1) : 1, *old = NULL;
    struct wml_value *v = wml_node_in(n, slot);
    int64_t dim = (int64_t)c->n;
    size_t n_old;
    float *now = WML_NEW_ARRAY(&r->model->arena, float, c->n);
    if (v && !wml_tensor_doubles(r->model, v->init, &old, &n_old, err)) return false;
    for (size_t i = 0; i < c->n; i++) {
        double error = c->sum[i] / c->count;
        if (!isfinite(error)) return true;
        now[i] = (float)((old ? old[i] : 0) + error / beta);
    }
    struct wml_tensor *t = v ? wml_tensor_copy(r->model, WML_F32, v->init->dims.len, v->init->dims.at, now, c->n * sizeof *now, err)
                             : wml_tensor_copy(r->model, WML_F32, 1, &dim, now, c->n * sizeof *now, err);
    *done = t && wml_constant_put(n, slot, t);
    return *done;
}

static bool apply(struct wml_quant_run *r, const struct wml_channels *c, size_t n, size_t *count, struct wml_err *err)
{
    for (size_t i = 0; i < n; i++) {
        bool done = false;
        if (c[i].count > 0 && !correct(r, &c[i], &done, err)) return false;
        *count += done;
    }
    return true;
}

static bool asked(const struct wml_quant_opts *o)
{
    return o->bias_correction;
}

const struct wml_fit wml_fit_bias_correction = {.name = "bias_correction", .option = "--bias-correction", .doing = "Correcting biases",
                                                .what = "Biases corrected", .needs = WML_FIT_ERRORS, .asked = asked, .wanted = wanted, .apply = apply};
