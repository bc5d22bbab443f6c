/* Cross-layer equalisation: Nagel, van Baalen, Blankevoort, Welling, "Data-Free Quantization Through Weight Equalization
 * and Bias Correction", 2019, section 4.1.
 *
 * Two layers with nothing between them but what commutes with a positive factor per channel (Relu, pooling, ...):
 *     W2 f(W1 x + b1)  =  (W2 S) f(S^-1 W1 x + S^-1 b1)        S diagonal, s_i = sqrt(r1_i / r2_i)
 * r1_i is the largest weight of output i of the first, r2_i that of input i of the second. Both become sqrt(r1_i r2_i), so
 * one scale per tensor suits all channels. A layer in the middle of a chain belongs to two pairs: rounds over all pairs are
 * repeated until nothing moves. Relu6 and other Clips do not commute and end a chain, as does every second reader. */
#include "quant/fit.h"

#include <math.h>
#include <stdlib.h>

#include "quant/layer.h"

enum { ROUNDS = 100, LONGEST = 8 /* steps between two layers */ };
static const double STILL = 1e-4;

struct constant { struct wml_node *node; size_t slot; int64_t axis; }; /* divided by the factors */

struct layer {
    struct wml_layer l;
    float *peak;       /* of weights: wml_layer_peaks */
    double *out, *in;  /* factors so far; NULL: of no pair on that side */
};

struct pair {
    struct layer *a, *b;
    size_t n; /* channels between them */
    WML_VEC(struct constant) with; /* of what lies between */
};

struct run {
    struct wml_quant_run *q;
    struct wml_arena *arena;
    WML_VEC(struct layer *) layer;
    WML_VEC(struct pair) pair;
};

static bool is_float_constant(const struct wml_value *v)
{
    return v && v->init && !v->sparse && wml_value_is_constant(v) && v->init->dtype == WML_F32;
}

/* Whether constant v has an element for each of n channels along axis (from the end), of a value of this rank. */
static bool spans(const struct wml_value *v, int64_t axis, int64_t rank, size_t n)
{
    int64_t own = (int64_t)v->init->dims.len;
    return own <= rank && own + axis >= 0 && v->init->dims.at[own + axis] == (int64_t)n;
}

static void with(struct run *r, struct pair *p, struct wml_node *n, size_t slot, int64_t axis)
{
    struct constant c = {n, slot, axis};
    WML_PUSH_IN(r->arena, &p->with, c);
}

/* v op constant, or constant op v. */
static bool passes_arithmetic(struct run *r, struct pair *p, struct wml_node *n, const struct wml_value *v, int64_t axis, int64_t rank)
{
    size_t other = n->in[0] == v ? 1 : 0;
    const struct wml_value *c = wml_node_in(n, other);
    bool factor = wml_node_is(n, "Mul") || (wml_node_is(n, "Div") && other == 1);
    bool term = wml_node_is(n, "Add") || wml_node_is(n, "Sub");
    if (rank < 0 || !is_float_constant(c) || (int64_t)c->init->dims.len > rank) return false;
    if (factor) return true;
    if (!term || !spans(c, axis, rank, p->n)) return false;
    with(r, p, n, other, axis);
    return true;
}

static bool passes_normalization(struct run *r, struct pair *p, struct wml_node *n)
{
    if (!wml_node_is(n, "BatchNormalization") || n->n_out != 1 || wml_attr_int(n, "training_mode", 0) || n->n_in != 5) return false;
    for (size_t i = 2; i < 4; i++)
        if (!is_float_constant(n->in[i]) || n->in[i]->init->dims.len != 1) return false;
    with(r, p, n, 2, 0); /* the bias */
    with(r, p, n, 3, 0); /* the mean */
    return true;
}

/* Whether n, reading v, commutes with positive factors per channel once the constants it notes are divided too. */
static bool passes(struct run *r, struct pair *p, struct wml_node *n, const struct wml_value *v, bool spatial, int64_t axis, int64_t rank)
{
    static const char *const any[] = {"Relu", "LeakyRelu", "PRelu", "Identity", "Abs"};
    static const char *const pool[] = {"MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool"};
    if (n->n_out != 1 || n->graph != v->graph) return false;
    for (size_t i = 0; i < WML_COUNT(any); i++)
        if (wml_node_is(n, any[i])) return n->in[0] == v && (n->n_in == 1 || n->in[1] != v);
    for (size_t i = 0; spatial && i < WML_COUNT(pool); i++)
        if (wml_node_is(n, pool[i])) return true;
    return (spatial && passes_normalization(r, p, n)) || passes_arithmetic(r, p, n, v, axis, rank);
}

/* [n, c, 1, 1] to [n, c]. */
static bool flattens(const struct wml_node *n, const struct wml_value *v)
{
    int64_t rank = wml_value_rank(v);
    if (!wml_node_is(n, "Flatten") || wml_attr_int(n, "axis", 1) != 1 || rank < 3) return false;
    for (int64_t i = 2; i < rank; i++)
        if (wml_value_axis(v, (size_t)i).size != 1) return false;
    return true;
}

static bool has_plain_bias(const struct wml_layer *l, struct run *r, struct pair *p)
{
    const struct wml_value *b = wml_node_in(l->node, 2);
    if (!b) return true;
    if (!is_float_constant(b) || !spans(b, -1, 2, l->n_out)) return false;
    with(r, p, l->node, 2, -1);
    return true;
}

static struct layer *layer_at(const struct run *r, const struct wml_node *n)
{
    return n->mark ? r->layer.at[n->mark - 1] : NULL;
}

/* The layer behind a, with nothing between them that does not commute. */
static bool find_pair(struct run *r, struct layer *a, struct pair *p)
{
    struct wml_value *v = a->l.node->out[0];
    bool spatial = a->l.spatial;
    int64_t rank = spatial ? (int64_t)a->l.weight->init->dims.len : wml_value_rank(v), axis = spatial ? 1 - rank : -1;
    *p = (struct pair){.a = a, .n = a->l.n_out};
    if (!has_plain_bias(&a->l, r, p)) return false;
    for (int i = 0; i < LONGEST; i++) {
        struct wml_node *n = v && !v->pinned ? wml_value_only_user(v) : NULL;
        if (!n || n->graph != v->graph) return false;
        p->b = layer_at(r, n);
        if (p->b) return p->b->l.spatial == spatial && n->in[0] == v && p->b->l.n_in == p->n;
        if (spatial && flattens(n, v)) {
            spatial = false;
            rank = 2;
            axis = -1;
        } else if (!passes(r, p, n, v, spatial, axis, rank)) {
            return false;
        }
        v = n->out[0];
    }
    return false;
}

static double *ones(struct run *r, double *had, size_t n)
{
    if (had) return had;
    had = WML_NEW_ARRAY(r->arena, double, n);
    for (size_t i = 0; i < n; i++) had[i] = 1;
    return had;
}

static void find_pairs(struct run *r)
{
    for (struct wml_node *n = r->q->model->graph->first; n; n = n->next) {
        struct wml_layer l;
        n->mark = 0;
        if (!wml_layer_of(n, &l) || !wml_constant_is_own(l.weight)) continue;
        struct layer *own = WML_NEW(r->arena, struct layer);
        own->l = l;
        WML_PUSH_IN(r->arena, &r->layer, own);
        n->mark = r->layer.len;
    }
    for (size_t i = 0; i < r->layer.len; i++) {
        struct pair p;
        if (!find_pair(r, r->layer.at[i], &p)) continue;
        p.a->out = ones(r, p.a->out, p.n);
        p.b->in = ones(r, p.b->in, p.n);
        WML_PUSH_IN(r->arena, &r->pair, p);
    }
}

/* The largest weight of every channel of one side, as it is now. */
static void largest(const struct layer *x, bool out, double *of)
{
    const struct wml_layer *l = &x->l;
    for (size_t i = 0, n = out ? l->n_out : l->n_in; i < n; i++) of[i] = 0;
    for (size_t a = 0; a < l->first; a++)
        for (size_t b = 0; b < l->second; b++) {
            size_t o = wml_layer_channel(l, true, a, b), i = wml_layer_channel(l, false, a, b);
            double v = (double)x->peak[a * l->second + b] * (x->out ? x->out[o] : 1) * (x->in ? x->in[i] : 1);
            double *most = &of[out ? o : i];
            *most = v > *most ? v : *most;
        }
}

/* How far one round moves a factor at most, as a logarithm. */
static double balance(struct pair *p, double *first, double *second)
{
    double moved = 0;
    largest(p->a, true, first);
    largest(p->b, false, second);
    for (size_t i = 0; i < p->n; i++) {
        double s = sqrt(first[i] / second[i]);
        if (!(s > 0) || !isfinite(s)) continue; /* a channel that says or is told nothing */
        p->a->out[i] /= s;
        p->b->in[i] *= s;
        moved = WML_MAX(moved, fabs(log(s)));
    }
    return moved;
}

static bool solve(struct run *r, struct wml_err *err)
{
    size_t widest = 0;
    for (size_t i = 0; i < r->pair.len; i++) {
        struct pair *p = &r->pair.at[i];
        widest = WML_MAX(widest, p->n);
        if (!p->a->peak && !(p->a->peak = wml_layer_peaks(r->q->model, &p->a->l, err))) return false;
        if (!p->b->peak && !(p->b->peak = wml_layer_peaks(r->q->model, &p->b->l, err))) return false;
    }
    double *room = WML_NEW_ARRAY(r->arena, double, 2 * widest + 1), moved = 1;
    for (int round = 0; round < ROUNDS && moved > STILL; round++) {
        moved = 0;
        for (size_t i = 0; i < r->pair.len; i++) {
            double m = balance(&r->pair.at[i], room, room + widest);
            moved = WML_MAX(moved, m);
        }
        if (!wml_check_cancel(r->q->cx, err)) return false;
    }
    return true;
}

static bool rewrite(struct run *r, struct wml_err *err)
{
    for (size_t i = 0; i < r->layer.len; i++) {
        const struct layer *x = r->layer.at[i];
        if ((x->out || x->in) && !wml_layer_scale(r->q->model, &x->l, x->out, x->in, err)) return false;
    }
    for (size_t i = 0; i < r->pair.len; i++) {
        const struct pair *p = &r->pair.at[i];
        for (size_t k = 0; k < p->with.len; k++) {
            const struct constant *c = &p->with.at[k];
            if (!wml_constant_scale(c->node, c->slot, c->axis, p->n, p->a->out, err)) return false;
        }
    }
    return true;
}

static bool apply(struct wml_quant_run *q, const struct wml_channels *c, size_t n, size_t *count, struct wml_err *err)
{
    struct wml_arena arena = {0};
    struct run r = {.q = q, .arena = &arena};
    (void)c, (void)n;
    find_pairs(&r);
    bool ok = solve(&r, err) && rewrite(&r, err);
    *count = r.pair.len;
    for (size_t i = 0; i < r.layer.len; i++) free(r.layer.at[i]->peak);
    wml_arena_release(&arena);
    return ok;
}

static bool asked(const struct wml_quant_opts *o)
{
    return o->equalize;
}

const struct wml_fit wml_fit_equalize = {.name = "equalize", .option = "--equalize", .doing = "Equalizing layers", .what = "Pairs of layers equalized",
                                         .needs = WML_FIT_GRAPH, .asked = asked, .apply = apply};
