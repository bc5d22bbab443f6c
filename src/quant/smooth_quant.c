/* SmoothQuant: Xiao, Lin, Seznec, Wu, Demouth, Han, "SmoothQuant: Accurate and Efficient Post-Training Quantization for Large
 * Language Models", 2022, equations 3 and 4.
 *
 * A few channels of a transformer's activations are many times larger than the rest, so one scale leaves the rest few integers;
 * weights have no such channels. Y = X W = (X / s)(s W), s_j = max|X_j|^alpha / max|W_j|^(1 - alpha), moves the difficulty over.
 * All linear layers that read X share s. Where they are all its readers, 1 / s goes into the scale and bias of the normalisation
 * that makes X (or the last Mul and Add of one in parts), at no cost. Where X is read elsewhere too (the residual of BERT), a
 * second copy of those last nodes makes X / s for the linear layers alone; X itself stays what it is. A Mul behind X instead
 * would come after X's own integers, when the harm is done: so what no normalisation makes is left alone. */
#include "quant/fit.h"

#include <math.h>
#include <stdlib.h>

#include "quant/layer.h"
#include "quant/select.h"

static const double LEAST = 1e-5; /* of a maximum, as in the paper's code */

struct norm { /* the nodes at the end of a normalisation: scale, and bias when that is another node */
    struct wml_node *scale, *bias;
    size_t scale_slot, bias_slot;
};

static bool has_vector(const struct wml_node *n, size_t slot, size_t len)
{
    const struct wml_value *v = wml_node_in(n, slot);
    return v && v->init && !v->sparse && wml_value_is_constant(v) && v->init->dtype == WML_F32 && v->init->dims.len &&
           v->init->dims.at[v->init->dims.len - 1] == (int64_t)len && (wml_value_rank(n->out[0]) < 0 || (int64_t)v->init->dims.len <= wml_value_rank(n->out[0]));
}

/* The slot of a constant per channel, the last axis, of n; SIZE_MAX: none. */
static size_t vector_slot(const struct wml_node *n, size_t len)
{
    return n->n_in != 2 ? SIZE_MAX : has_vector(n, 1, len) ? 1 : has_vector(n, 0, len) ? 0 : SIZE_MAX;
}

static bool is_last_axis(const struct wml_node *n, const struct wml_value *v)
{
    int64_t axis = wml_attr_int(n, "axis", -1);
    return axis == -1 || axis + 1 == wml_value_rank(v);
}

static bool is_whole(const struct wml_node *n, struct wml_value *x, size_t len, struct norm *out)
{
    bool skip = wml_node_is_in(n, "com.microsoft", "SkipLayerNormalization"), simple_skip = wml_node_is_in(n, "com.microsoft", "SkipSimplifiedLayerNormalization");
    bool full = wml_node_is(n, "LayerNormalization");
    bool simple = wml_node_is(n, "SimplifiedLayerNormalization") || wml_node_is(n, "RMSNormalization");
    size_t at = skip || simple_skip ? 2 : 1;
    if (!skip && !simple_skip && !full && !simple) return false;
    if (n->out[0] != x || !has_vector(n, at, len) || n->in[at]->init->dims.len != 1 || ((full || simple) && !is_last_axis(n, x))) return false;
    *out = (struct norm){.scale = (struct wml_node *)(uintptr_t)n, .scale_slot = at};
    if (!(full || skip) || !wml_node_in(n, at + 1)) return true;
    out->bias = out->scale;
    out->bias_slot = at + 1;
    return has_vector(n, at + 1, len);
}

/* X = (... * scale) + bias, or X = ... * scale, constants of the last axis. */
static bool is_in_parts(struct wml_node *n, size_t len, struct norm *out)
{
    size_t slot = vector_slot(n, len);
    *out = (struct norm){0};
    if (slot == SIZE_MAX) return false;
    if (wml_node_is(n, "Add")) {
        out->bias = n;
        out->bias_slot = slot;
        n = wml_node_producer(n, 1 - slot);
        if (!n || n->graph != out->bias->graph || wml_value_only_user(n->out[0]) != out->bias) return false;
        slot = vector_slot(n, len);
    }
    out->scale = n;
    out->scale_slot = slot;
    return wml_node_is(n, "Mul") && slot != SIZE_MAX;
}

static bool find_norm(struct wml_value *x, size_t len, struct norm *out)
{
    return x->def && !x->pinned && x->def->graph == x->graph && (is_whole(x->def, x, len, out) || is_in_parts(x->def, len, out));
}

/* Whether a reader of x is a linear layer that can take s. */
static bool is_linear(const struct wml_quant_opts *o, const struct wml_use *u, struct wml_layer *l)
{
    return u->slot == 0 && u->node->graph == u->node->in[0]->graph && wml_quant_selects(o, u->node) && wml_layer_of(u->node, l) && !l->spatial &&
           u->node->in[0] != u->node->in[1];
}

static bool wanted(struct wml_quant_run *r, struct wml_fit_values *out, struct wml_err *err)
{
    (void)err;
    for (struct wml_value *v = r->model->graph->first_value; v; v = v->next) {
        struct wml_layer l = {0};
        struct norm norm;
        bool found = false;
        for (const struct wml_use *u = v->uses; u && !found; u = u->next) found = is_linear(r->opts, u, &l);
        if (!found || !find_norm(v, l.n_in, &norm)) continue;
        struct wml_channels c = {.value = v, .axis = -1, .n = l.n_in};
        WML_PUSH_IN(&r->model->arena, &out->v, c);
    }
    return true;
}

struct group { WML_VEC(struct wml_layer) layer; bool all; /* they are all the readers */ };

static struct group find_group(struct wml_quant_run *r, const struct wml_channels *c)
{
    struct group g = {.all = !c->value->n_outputs};
    for (const struct wml_use *u = c->value->uses; u; u = u->next) {
        struct wml_layer l;
        if (is_linear(r->opts, u, &l) && l.n_in == c->n) WML_PUSH_IN(&r->model->arena, &g.layer, l);
        else g.all = false;
    }
    return g;
}

/* s, and whether it is worth anything. */
static bool factors(struct wml_quant_run *r, const struct wml_channels *c, const struct group *g, double *s, struct wml_err *err)
{
    for (size_t i = 0; i < c->n; i++) s[i] = 0;
    for (size_t k = 0; k < g->layer.len; k++) {
        const struct wml_layer *l = &g->layer.at[k];
        float *peak = wml_layer_peaks(r->model, l, err);
        if (!peak) return false;
        for (size_t a = 0; a < l->first; a++)
            for (size_t b = 0; b < l->second; b++) {
                double *most = &s[wml_layer_channel(l, false, a, b)], v = (double)peak[a * l->second + b];
                *most = v > *most ? v : *most;
            }
        free(peak);
    }
    for (size_t i = 0; i < c->n; i++) {
        double x = WML_MAX(c->peak[i], LEAST), w = WML_MAX(s[i], LEAST);
        s[i] = pow(x, r->opts->smooth) / pow(w, 1 - r->opts->smooth);
        s[i] = isfinite(s[i]) ? WML_MAX(s[i], LEAST) : 1;
    }
    return true;
}

/* A second n behind it, which reads what n reads. */
static struct wml_node *twin(struct wml_node *n)
{
    struct wml_node *t = wml_node_new(n->next, n->domain.len ? wml_arena_cstr(&n->graph->model->arena, n->domain) : "",
                                      wml_arena_cstr(&n->graph->model->arena, n->op_type));
    t->name = wml_model_unique(n->graph->model, wml_arena_fmt(&n->graph->model->arena, "%.*s_smooth", WML_ARG(n->name)));
    wml_attrs_copy(t, n);
    for (size_t i = 0; i < n->n_in; i++) wml_node_add_input(t, n->in[i]);
    struct wml_value *v = wml_node_add_output(t, wml_arena_fmt(&n->graph->model->arena, "%.*s_smooth", WML_ARG(n->out[0]->name)));
    wml_value_set_type(v, wml_value_type(n->out[0]));
    return t;
}

/* The normalisation a second time, for the layers of g alone. */
static void part(struct norm *n, const struct group *g)
{
    struct wml_node *scale = n->scale;
    n->scale = twin(scale);
    if (n->bias && n->bias != scale) {
        struct wml_node *bias = n->bias;
        n->bias = twin(bias);
        wml_node_set_input(n->bias, 1 - n->bias_slot, n->scale->out[0]);
        if (n->scale->next != n->bias) wml_node_move(n->scale, n->bias);
    } else if (n->bias) {
        n->bias = n->scale;
    }
    for (size_t k = 0; k < g->layer.len; k++) wml_node_set_input(g->layer.at[k].node, 0, (n->bias ? n->bias : n->scale)->out[0]);
}

static bool smooth(struct wml_quant_run *r, const struct wml_channels *c, size_t *count, struct wml_err *err)
{
    struct wml_arena *arena = &r->model->arena;
    struct group g = find_group(r, c);
    struct norm norm;
    double *s = WML_NEW_ARRAY(arena, double, c->n), *inverse = WML_NEW_ARRAY(arena, double, c->n);
    if (!g.layer.len || !find_norm(c->value, c->n, &norm)) return true;
    if (!factors(r, c, &g, s, err)) return false;
    for (size_t i = 0; i < c->n; i++) inverse[i] = 1 / s[i];
    if (!g.all) part(&norm, &g);
    if (!wml_constant_scale(norm.scale, norm.scale_slot, -1, c->n, inverse, err)) return false;
    if (norm.bias && !wml_constant_scale(norm.bias, norm.bias_slot, -1, c->n, inverse, err)) return false;
    for (size_t k = 0; k < g.layer.len; k++)
        if (!wml_layer_scale(r->model, &g.layer.at[k], NULL, s, err)) return false;
    *count += g.layer.len;
    return true;
}

static bool apply(struct wml_quant_run *r, const struct wml_channels *c, size_t n, size_t *count, struct wml_err *err)
{
    for (size_t i = 0; i < n; i++)
        if (c[i].count > 0 && !smooth(r, &c[i], count, err)) return false;
    return true;
}

static bool asked(const struct wml_quant_opts *o)
{
    return o->smooth > 0;
}

const struct wml_fit wml_fit_smooth_quant = {.name = "smooth_quant", .option = "--smooth-quant", .doing = "Smoothing layers",
                                             .what = "Linear layers smoothed", .needs = WML_FIT_FLOAT, .asked = asked, .wanted = wanted, .apply = apply};
