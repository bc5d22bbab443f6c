/* Quantised values of the method "dynamic": weights as integers, made once; activations by DynamicQuantizeLinear, one for all
 * readers of a graph. */
#include <inttypes.h>

#include "graph/graph.h"
#include "quant/derive.h"
#include "quant/dynamic_internal.h"

bool wml_dynamic_is_weight(const struct wml_value *v)
{
    struct wml_tensor *t = v ? wml_value_tensor(v) : NULL;
    uint64_t n;
    return t && t->dtype == WML_F32 && (v->def || wml_value_is_constant(v)) && wml_tensor_count(t, &n, NULL) && n > 0;
}

bool wml_dynamic_leave(struct wml_dynamic *d, const struct wml_value *v)
{
    wml_quant_note(d->r, v->name, "stays float: it holds NaN or infinities");
    return false;
}

bool wml_dynamic_is_finite(struct wml_dynamic *d, struct wml_value *v)
{
    struct wml_span bytes;
    struct wml_weight_range range;
    if (!wml_tensor_bytes(d->r->model, wml_value_tensor(v), &bytes, d->err)) return false;
    wml_weight_ranges(WML_F32, bytes.ptr, 1, 1, bytes.len / sizeof(float), &range);
    return (!range.has_nan && !range.has_inf) || wml_dynamic_leave(d, v);
}

enum wml_dtype wml_dynamic_type(const struct wml_dynamic *d)
{
    enum wml_dtype t = d->r->opts->weight ? d->r->opts->weight : WML_U8;
    return t == WML_U8 ? WML_U8 : WML_I8;
}

struct wml_qform wml_dynamic_form(const struct wml_dynamic *d, enum wml_dtype type)
{
    enum wml_symmetry s = d->r->opts->symmetric_weight;
    bool symmetric = s == WML_SYMMETRY_DEFAULT ? type == WML_I8 : s == WML_SYMMETRY_ON;
    return (struct wml_qform){.type = type, .symmetric = symmetric, .reduced = d->r->opts->reduce_range};
}

static struct wml_str key_of(const struct wml_dynamic *d, const struct wml_value *v, const void *where, enum wml_dtype type, bool channels)
{
    return wml_arena_fmt(&d->r->model->arena, "%p %p %d %d", (const void *)v, where, (int)type, channels);
}

static struct wml_value *add_const(struct wml_graph *g, struct wml_str base, const char *suffix, struct wml_tensor *t)
{
    return wml_graph_add_init(g, wml_arena_fmt(&g->model->arena, "%.*s%s", WML_ARG(base), suffix), t);
}

/* Scales and zero points for [outer, n] elements, one for each of n (or 1: for all). False without *d->err: there are none. */
static bool params(struct wml_dynamic *d, struct wml_value *v, struct wml_tensor *t, struct wml_qform form, size_t n, double *scale,
                   int32_t *zero)
{
    struct wml_span bytes;
    uint64_t count = 0;
    struct wml_weight_range *range = WML_NEW_ARRAY(&d->r->model->arena, struct wml_weight_range, n);
    if (!wml_tensor_count(t, &count, d->err) || !wml_tensor_bytes(d->r->model, t, &bytes, d->err)) return false;
    wml_weight_ranges(WML_F32, bytes.ptr, n == 1 ? 1 : (size_t)count / n, n, n == 1 ? (size_t)count : 1, range);
    bool odd = false;
    for (size_t i = 0; i < n; i++) {
        struct wml_qparams p = wml_qparams_of(&form, WML_F32, range[i].low, range[i].high, d->r->opts->min_real_range);
        scale[i] = p.scale;
        zero[i] = p.zero;
        odd = odd || range[i].has_nan || range[i].has_inf;
    }
    return !odd || wml_dynamic_leave(d, v);
}

static bool make(struct wml_dynamic *d, struct wml_value *v, struct wml_qform form, bool channels, struct wml_dynq *out)
{
    struct wml_model *m = d->r->model;
    struct wml_tensor *t = wml_value_tensor(v);
    struct wml_graph *g = v->graph;
    size_t rank = t->dims.len, n = channels && rank ? (size_t)t->dims.at[rank - 1] : 1;
    bool each = channels && rank && n;
    int64_t dim = (int64_t)n;
    if (!n) n = 1;
    double *scale = WML_NEW_ARRAY(&m->arena, double, n);
    int32_t *zero = WML_NEW_ARRAY(&m->arena, int32_t, n);
    float *f = WML_NEW_ARRAY(&m->arena, float, n);
    unsigned char *z = WML_NEW_ARRAY(&m->arena, unsigned char, n);
    if (!params(d, v, t, form, n, scale, zero)) return false;
    for (size_t i = 0; i < n; i++) {
        f[i] = (float)scale[i];
        z[i] = (unsigned char)zero[i];
    }
    struct wml_tensor *q = wml_quant_derive_linear(m, t, form.type, each ? (int64_t)rank - 1 : -1, n, scale, zero, d->err);
    struct wml_tensor *s = q ? wml_tensor_copy(m, WML_F32, each, &dim, f, n * sizeof *f, d->err) : NULL;
    struct wml_tensor *p = s ? wml_tensor_copy(m, form.type, each, &dim, z, n, d->err) : NULL;
    if (!p) return false;
    *out = (struct wml_dynq){.q = add_const(g, v->name, "_quantized", q), .scale = add_const(g, v->name, "_scale", s), .zero = add_const(g, v->name, "_zero_point", p)};
    d->r->result->weights++;
    return true;
}

static bool once(struct wml_dynamic *d, struct wml_value *v, struct wml_qform form, bool channels, bool table, struct wml_dynq *out)
{
    struct wml_str key = key_of(d, v, table ? (const void *)d : NULL, form.type, channels);
    struct wml_dynq *known = wml_map_get(&d->weights, key);
    if (!known) {
        known = WML_NEW(&d->r->model->arena, struct wml_dynq);
        if (!make(d, v, form, channels, known) && d->err->code) return wml_wrap(d->err, "weight '%.*s'", WML_ARG(v->name));
        wml_map_put(&d->weights, key, known);
    }
    *out = *known;
    return known->q != NULL;
}

bool wml_dynamic_weight(struct wml_dynamic *d, struct wml_value *v, enum wml_dtype type, bool channels, struct wml_dynq *out)
{
    return once(d, v, wml_dynamic_form(d, type), channels, false, out);
}

bool wml_dynamic_table(struct wml_dynamic *d, struct wml_value *v, struct wml_dynq *out)
{
    struct wml_qform form = {.type = WML_U8, .symmetric = d->r->opts->symmetric_activation == WML_SYMMETRY_ON};
    return once(d, v, form, false, true, out);
}

static struct wml_value *named(struct wml_node *n, struct wml_str base, const char *suffix, enum wml_dtype type, const struct wml_value *like)
{
    struct wml_model *m = n->graph->model;
    struct wml_value *v = wml_node_add_output(n, wml_arena_fmt(&m->arena, "%.*s%s", WML_ARG(base), suffix));
    int64_t rank = like ? wml_value_rank(like) : 0;
    struct wml_axis *axis = WML_NEW_ARRAY(&m->arena, struct wml_axis, rank > 0 ? (size_t)rank : 1);
    for (int64_t i = 0; i < rank; i++) axis[i] = wml_value_axis(like, (size_t)i);
    if (rank >= 0) wml_value_set_type(v, wml_type_tensor(m, type, rank, axis));
    return v;
}

void wml_dynamic_know(struct wml_dynamic *d, const struct wml_value *x, const struct wml_dynq *by)
{
    struct wml_dynq *known = WML_NEW(&d->r->model->arena, struct wml_dynq);
    *known = *by;
    wml_map_put(&d->activations, key_of(d, x, x->graph, WML_U8, false), known);
}

const struct wml_dynq *wml_dynamic_known(const struct wml_dynamic *d, const struct wml_value *x)
{
    const struct wml_dynq *known = x ? wml_map_get(&d->activations, key_of(d, x, x->graph, WML_U8, false)) : NULL;
    return known && known->exact ? known : NULL;
}

struct wml_dynq wml_dynamic_activation(struct wml_dynamic *d, struct wml_value *x, struct wml_node *before)
{
    struct wml_model *m = d->r->model;
    struct wml_str key = key_of(d, x, before->graph, WML_U8, false);
    struct wml_dynq *known = wml_map_get(&d->activations, key);
    if (known) return *known;
    struct wml_node *n = wml_node_new(before, "", "DynamicQuantizeLinear");
    n->name = wml_model_unique(m, wml_arena_fmt(&m->arena, "%.*s_QuantizeLinear", WML_ARG(x->name)));
    wml_node_add_input(n, x);
    known = WML_NEW(&m->arena, struct wml_dynq);
    known->q = named(n, x->name, "_quantized", WML_U8, x);
    known->scale = named(n, x->name, "_scale", WML_F32, NULL);
    known->zero = named(n, x->name, "_zero_point", WML_U8, NULL);
    wml_map_put(&d->activations, key, known);
    d->r->result->q++;
    return *known;
}
