/* Values and nodes: where operands come from, and the pool that results go to. */
#include "gen.h"

#include <math.h>
#include <stdlib.h>

#include "base/num.h"

static const struct {
    enum wml_dtype t;
    unsigned bit;
} type_bit[] = {{WML_F32, GEN_F}, {WML_F64, GEN_D}, {WML_I64, GEN_I}, {WML_I32, GEN_J}, {WML_BOOL, GEN_B}, {WML_F16, GEN_H}, {WML_U8, GEN_U}};

bool gen_is_type(enum wml_dtype t, unsigned types)
{
    for (size_t i = 0; i < WML_COUNT(type_bit); i++)
        if (type_bit[i].t == t) return (types & type_bit[i].bit) != 0;
    return false;
}

static enum wml_dtype first_type(unsigned types)
{
    for (size_t i = 0; i < WML_COUNT(type_bit); i++)
        if (types & type_bit[i].bit) return type_bit[i].t;
    return WML_F32;
}

int64_t gen_count(const struct gen_value *a)
{
    uint64_t n;
    wml_dims_count(a->dim, a->rank, &n);
    return (int64_t)n;
}

static void push(struct gen *g, const struct gen_value *a)
{
    if (g->n < GEN_POOL) g->pool[g->n++] = *a;
}

/* Newer values are picked more often: graphs become deep. */
static bool find(struct gen *g, unsigned types, size_t min_rank, size_t max_rank, double most, struct gen_value *out)
{
    for (int i = 0; i < 12 && g->n; i++) {
        double u = wml_rng_unit(&g->rng);
        const struct gen_value *a = &g->pool[g->n - 1 - (size_t)(u * u * (double)g->n)];
        if (!gen_is_type(a->t, types) || a->rank < min_rank || a->rank > max_rank || a->most > most) continue;
        if (gen_count(a) > 4096) continue;
        *out = *a;
        return true;
    }
    return false;
}

bool gen_find(struct gen *g, unsigned types, size_t min_rank, size_t max_rank, struct gen_value *out)
{
    return find(g, types, min_rank, max_rank, 1e5, out);
}

struct gen_value gen_pick_small(struct gen *g, unsigned types, size_t min_rank, size_t max_rank, double most)
{
    struct gen_value a;
    int64_t dim[GEN_RANK];
    if (find(g, types, min_rank, max_rank, most, &a)) return a;
    size_t rank = (size_t)gen_int(g, (int64_t)min_rank, (int64_t)WML_MIN(max_rank, WML_MAX(min_rank, 4)));
    for (size_t i = 0; i < rank; i++) dim[i] = gen_dim(g);
    return gen_source(g, first_type(types), rank, dim);
}

struct gen_value gen_pick(struct gen *g, unsigned types, size_t min_rank, size_t max_rank)
{
    return gen_pick_small(g, types, min_rank, max_rank, 1e5);
}

/* --- inputs and constants --- */

static struct gen_value add_input(struct gen *g, enum wml_dtype t, size_t rank, const int64_t *dim)
{
    struct gen_input *in = &g->input[g->n_inputs++];
    struct wml_axis axis[GEN_RANK];
    bool real = wml_dtype_is_float((int)t);
    *in = (struct gen_input){.t = t, .rank = rank, .low = t == WML_BOOL || t == WML_U8 ? 0 : -3, .high = t == WML_BOOL ? 1 : 3};
    if (real && gen_chance(g, 10)) in->low = in->high = gen_int(g, 0, 1) ? 0 : 1;
    if (!g->batch && t != WML_BOOL && real && gen_chance(g, 5)) in->low = 0.5;
    for (size_t i = 0; i < rank; i++) {
        in->dim[i] = dim[i];
        in->batch[i] = g->batch && dim[i] == g->batch && gen_chance(g, 80);
        axis[i] = in->batch[i] ? (struct wml_axis){-1, WML_STR("N")} : (struct wml_axis){dim[i], WML_NO_STR};
    }
    in->wild = real && gen_chance(g, 8);
    snprintf(in->name, sizeof in->name, "x%zu", g->n_inputs);
    struct gen_value a = {.t = t, .rank = rank, .most = 3};
    for (size_t i = 0; i < rank; i++) a.dim[i] = dim[i];
    a.v = wml_graph_add_input(g->m->graph, wml_arena_str(&g->m->arena, wml_str(in->name)), wml_type_tensor(g->m, t, (int64_t)rank, axis));
    push(g, &a);
    return a;
}

struct gen_value gen_source(struct gen *g, enum wml_dtype t, size_t rank, const int64_t *dim)
{
    if (!g->depth && g->n_inputs < GEN_INPUTS && gen_chance(g, g->n_inputs < 3 ? 85 : 30)) return add_input(g, t, rank, dim);
    struct gen_value a = gen_const(g, t, rank, dim, t == WML_BOOL ? 0 : -2, t == WML_BOOL ? 1 : 2);
    push(g, &a);
    return a;
}

static struct wml_tensor *tensor(struct gen *g, const struct gen_value *a, const double *x)
{
    uint64_t bytes = 0;
    size_t n = (size_t)gen_count(a);
    wml_dtype_bytes((int)a->t, n, &bytes);
    char *data = wml_xcalloc((size_t)bytes + 1, 1);
    for (size_t i = 0; i < n; i++) wml_dtype_store((int)a->t, data, i, x[i]);
    return wml_tensor_own(g->m, a->t, a->rank, a->dim, data, (size_t)bytes, NULL);
}

/* An initializer that callers may replace, by numbers of the same range. */
static bool make_optional(struct gen *g, struct gen_value *a, const double *x, double low, double high)
{
    if (g->depth || g->m->ir_version < 4 || g->n_inputs >= GEN_INPUTS || !gen_chance(g, 5)) return false;
    struct gen_input *in = &g->input[g->n_inputs++];
    *in = (struct gen_input){.t = a->t, .rank = a->rank, .optional = true, .low = low, .high = high};
    memcpy(in->dim, a->dim, sizeof in->dim);
    snprintf(in->name, sizeof in->name, "w%zu", g->n_inputs);
    a->v = wml_graph_add_input(g->m->graph, wml_arena_str(&g->m->arena, wml_str(in->name)), wml_type_static(g->m, a->t, a->rank, a->dim));
    wml_value_set_init(a->v, tensor(g, a, x));
    return true;
}

static struct gen_value place(struct gen *g, struct gen_value a, const double *x)
{
    if (gen_chance(g, 25)) { /* a Constant node */
        struct wml_node *n = wml_graph_append(g->g, "", "Constant");
        if (a.rank < 2 && a.t == WML_I64 && g->opset >= 12 && gen_chance(g, 50)) {
            int64_t v[64];
            for (int64_t i = 0; i < gen_count(&a) && i < 64; i++) v[i] = (int64_t)x[i];
            if (!a.rank) wml_attr_set_int(n, "value_int", v[0]);
            else wml_attr_set_ints(n, "value_ints", (size_t)WML_MIN(gen_count(&a), 64), v);
        } else if (!a.rank && a.t == WML_F32 && g->opset >= 12 && gen_chance(g, 50)) {
            wml_attr_set_float(n, "value_float", (float)x[0]);
        } else {
            wml_attr_set_tensor(n, "value", tensor(g, &a, x));
        }
        a.v = wml_node_add_output(n, WML_STR("c"));
        return a;
    }
    struct wml_graph *where = g->depth && gen_chance(g, 50) ? g->m->graph : g->g;
    a.v = wml_graph_add_init(where, WML_STR("k"), tensor(g, &a, x));
    if (gen_chance(g, 10) && where == g->g) wml_value_set_type(a.v, wml_type_static(g->m, a.t, a.rank, a.dim));
    return a;
}

struct gen_value gen_fill(struct gen *g, enum wml_dtype t, size_t rank, const int64_t *dim, const double *x)
{
    struct gen_value a = {.t = t, .rank = rank};
    for (size_t i = 0; i < rank; i++) a.dim[i] = dim[i];
    for (int64_t i = 0; i < gen_count(&a); i++) a.most = fmax(a.most, fabs(x[i]));
    return place(g, a, x);
}

struct gen_value gen_const(struct gen *g, enum wml_dtype t, size_t rank, const int64_t *dim, double low, double high)
{
    struct gen_value a = {.t = t, .rank = rank, .most = fmax(fabs(low), fabs(high))};
    for (size_t i = 0; i < rank; i++) a.dim[i] = dim[i];
    size_t n = (size_t)gen_count(&a);
    double *x = WML_NEW_ARRAY(&g->arena, double, n + 1);
    bool flat = gen_chance(g, 12), round = gen_chance(g, 10);
    for (size_t i = 0; i < n; i++) {
        x[i] = flat && i ? x[0] : wml_dtype_is_float((int)t) ? gen_real(g, low, high) : (double)gen_int(g, (int64_t)low, (int64_t)high);
        if (round && nearbyint(x[i]) >= low && nearbyint(x[i]) <= high) x[i] = nearbyint(x[i]);
    }
    if (make_optional(g, &a, x, low, high)) return a;
    return place(g, a, x);
}

struct gen_value gen_scalar(struct gen *g, enum wml_dtype t, double x)
{
    const int64_t one = 1;
    return gen_fill(g, t, gen_chance(g, 25), &one, &x);
}

struct gen_value gen_ints(struct gen *g, size_t n, const int64_t *v)
{
    double x[32];
    int64_t len = (int64_t)n;
    for (size_t i = 0; i < n && i < 32; i++) x[i] = (double)v[i];
    return gen_fill(g, WML_I64, 1, &len, x);
}

struct gen_value gen_beside(struct gen *g, const struct gen_value *a, double low, double high)
{
    int64_t dim[GEN_RANK];
    size_t rank = gen_chance(g, 50) ? a->rank : (size_t)gen_int(g, 0, (int64_t)a->rank);
    int ones = gen_chance(g, 30) ? 80 : 25;
    for (size_t i = 0; i < rank; i++) {
        dim[i] = gen_chance(g, ones) ? 1 : a->dim[a->rank - rank + i];
        if (g->batch && dim[i] == g->batch && gen_chance(g, 70)) dim[i] = 1;
    }
    return gen_const(g, a->t, rank, dim, low, high);
}

bool gen_broadcast(const struct gen_value *a, const struct gen_value *b, struct gen_value *out)
{
    size_t rank = WML_MAX(a->rank, b->rank);
    for (size_t i = 0; i < rank; i++) {
        int64_t x = i + a->rank >= rank ? a->dim[i + a->rank - rank] : 1, y = i + b->rank >= rank ? b->dim[i + b->rank - rank] : 1;
        if (x != y && x != 1 && y != 1) return false;
        out->dim[i] = x == 1 ? y : x;
    }
    out->rank = rank;
    return gen_count(out) <= 8192;
}

/* --- nodes --- */

struct wml_node *gen_node(struct gen *g, const char *op, const struct gen_value *const *in)
{
    struct wml_node *n = wml_graph_append(g->g, "", op);
    for (size_t i = 0; in[i]; i++)
        if (in[i]->v) wml_node_set_input(n, i, in[i]->v);
    return n;
}

struct gen_value gen_out(struct gen *g, struct wml_node *n, enum wml_dtype t, size_t rank, const int64_t *dim, double most)
{
    struct gen_value a = {.t = t, .rank = rank, .most = most};
    for (size_t i = 0; i < rank; i++) a.dim[i] = dim[i];
    a.v = wml_node_add_output(n, gen_chance(g, 10) ? WML_STR("t/0.x") : WML_STR("v"));
    push(g, &a);
    return a;
}

struct gen_value gen_like(struct gen *g, struct wml_node *n, const struct gen_value *a, double most)
{
    return gen_out(g, n, a->t, a->rank, a->dim, most);
}

struct gen_value gen_op1(struct gen *g, const char *op, struct gen_value a)
{
    return gen_like(g, GEN_NODE(g, op, &a), &a, a.most);
}

struct gen_value gen_op2_as(struct gen *g, const char *op, struct gen_value a, struct gen_value b)
{
    struct gen_value y = a;
    gen_broadcast(&a, &b, &y);
    double most = !strcmp(op, "Mul") ? a.most * b.most : !strcmp(op, "Div") ? a.most * 4 : a.most + b.most;
    return gen_out(g, GEN_NODE(g, op, &a, &b), a.t, y.rank, y.dim, most);
}

struct gen_value gen_op2(struct gen *g, const char *op, struct gen_value a, struct gen_value b)
{
    return gen_chance(g, 50) ? gen_op2_as(g, op, a, b) : gen_op2_as(g, op, b, a);
}

struct wml_node *gen_axes_node(struct gen *g, const char *op, const struct gen_value *a, size_t n, const int64_t *axes, int64_t since)
{
    if (g->opset < since) {
        struct wml_node *node = GEN_NODE(g, op, a);
        if (n) wml_attr_set_ints(node, "axes", n, axes);
        return node;
    }
    if (!n) return GEN_NODE(g, op, a);
    struct gen_value k = gen_ints(g, n, axes);
    return GEN_NODE(g, op, a, &k);
}

struct gen_value gen_reduce(struct gen *g, const char *op, struct gen_value a, size_t n, const int64_t *axes, int64_t keep)
{
    bool gone[GEN_RANK] = {0};
    int64_t dim[GEN_RANK], spelt[GEN_RANK];
    size_t rank = 0;
    for (size_t i = 0; i < n; i++) {
        gone[axes[i]] = true;
        spelt[i] = gen_chance(g, 50) ? axes[i] : axes[i] - (int64_t)a.rank;
    }
    for (size_t i = 0; i < a.rank; i++)
        if (keep || !(gone[i] || !n)) dim[rank++] = gone[i] || !n ? 1 : a.dim[i];
    struct wml_node *node = gen_axes_node(g, op, &a, n, spelt, strcmp(op, "ReduceSum") ? 18 : 13);
    if (!keep || gen_chance(g, 50)) wml_attr_set_int(node, "keepdims", keep);
    bool sums = !strcmp(op, "ReduceSum") || !strcmp(op, "ReduceL1") || !strcmp(op, "ReduceL2");
    double most = sums ? a.most * (double)gen_count(&a) : !strcmp(op, "ReduceSumSquare") ? a.most * a.most * (double)gen_count(&a)
                  : !strcmp(op, "ReduceProd") ? pow(fmax(a.most, 1), (double)gen_count(&a)) : a.most + 10;
    return gen_out(g, node, a.t, rank, dim, most);
}

struct gen_value gen_reshape(struct gen *g, struct gen_value a, size_t rank, const int64_t *dim)
{
    int64_t spelt[GEN_RANK];
    size_t open = rank && gen_chance(g, 50) ? (size_t)gen_int(g, 0, (int64_t)rank - 1) : SIZE_MAX;
    for (size_t i = 0; i < rank; i++) {
        spelt[i] = dim[i];
        if (i < a.rank && dim[i] == a.dim[i] && gen_chance(g, 30)) spelt[i] = 0;
    }
    if (open != SIZE_MAX && gen_count(&a) > 0) spelt[open] = -1;
    struct gen_value s = gen_ints(g, rank, spelt);
    return gen_out(g, GEN_NODE(g, "Reshape", &a, &s), a.t, rank, dim, a.most);
}

struct gen_value gen_transpose(struct gen *g, struct gen_value a, const int64_t *perm)
{
    int64_t dim[GEN_RANK];
    for (size_t i = 0; i < a.rank; i++) dim[i] = a.dim[perm[i]];
    struct wml_node *n = GEN_NODE(g, "Transpose", &a);
    wml_attr_set_ints(n, "perm", a.rank, perm);
    return gen_out(g, n, a.t, a.rank, dim, a.most);
}
