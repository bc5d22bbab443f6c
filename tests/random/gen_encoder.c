/* What encoders are made of, where gen_attention.c does not go: K and V of another value, V of another width, Q, K and V
 * gathered from one product, results that go on as matrices; embeddings with their normalisation. Each now and then
 * with one thing that forbids to fuse it. */
#include "gen.h"

#include <math.h>

struct shape {
    int64_t batch, length, keys, heads, size, wide; /* wide: size of V's heads */
};

static struct gen_value tap(struct gen *g, struct gen_value a)
{
    if (gen_chance(g, 2)) gen_op1(g, "Neg", a);
    return a;
}

static struct gen_value linear(struct gen *g, struct gen_value x, int64_t width)
{
    int64_t dim[2] = {x.dim[2], width}, out[3] = {x.dim[0], x.dim[1], width};
    struct gen_value w = gen_const(g, WML_F32, 2, dim, -1, 1);
    struct gen_value y = gen_out(g, GEN_NODE(g, "MatMul", &x, &w), WML_F32, 3, out, x.most * 8);
    return tap(g, gen_chance(g, 65) ? gen_op2(g, "Add", y, gen_const(g, WML_F32, 1, &width, -1, 1)) : y);
}

static struct gen_value scaled(struct gen *g, struct gen_value x, double by)
{
    if (gen_chance(g, 50)) return gen_op2_as(g, "Div", x, gen_scalar(g, WML_F32, 1 / by));
    return gen_op2(g, "Mul", x, gen_scalar(g, WML_F32, by));
}

/* [batch, length, heads * size] -> [batch, heads, length, size], or with the last two swapped. */
static struct gen_value split(struct gen *g, struct gen_value x, int64_t heads, bool turned)
{
    static const int64_t perm[] = {0, 2, 1, 3}, whole[] = {0, 2, 3, 1}, swap[] = {0, 1, 3, 2};
    int64_t dim[4] = {x.dim[0], x.dim[1], heads, x.dim[2] / heads};
    struct gen_value y = gen_reshape(g, x, 4, dim);
    if (!turned) return tap(g, gen_transpose(g, y, perm));
    return gen_chance(g, 50) ? gen_transpose(g, y, whole) : gen_transpose(g, tap(g, gen_transpose(g, y, perm)), swap);
}

static struct gen_value masked(struct gen *g, struct gen_value s)
{
    struct gen_value low = gen_scalar(g, WML_F32, gen_chance(g, 70) ? -3e38 : -10000), keep = gen_beside(g, &s, -1, 1), zero = gen_scalar(g, WML_F32, 0);
    if (gen_chance(g, 55)) return gen_op2(g, "Add", s, keep);
    if (zero.rank > keep.rank || low.rank > s.rank) return s;
    struct gen_value c = gen_out(g, GEN_NODE(g, "Less", &keep, &zero), WML_BOOL, keep.rank, keep.dim, 1), all;
    if (c.rank > s.rank || !gen_broadcast(&c, &s, &all)) return s;
    if (gen_chance(g, 50)) return gen_like(g, GEN_NODE(g, "Where", &c, &low, &s), &s, s.most);
    return gen_like(g, GEN_NODE(g, "Where", &c, &s, &low), &s, s.most);
}

static void product(struct gen *g, const struct shape *t, struct gen_value q, struct gen_value k, struct gen_value v, int64_t where, double by)
{
    static const int64_t perm[] = {0, 2, 1, 3};
    int64_t sd[4] = {t->batch, t->heads, t->length, t->keys}, yd[4] = {t->batch, t->heads, t->length, t->wide};
    int64_t back[3] = {t->batch, t->length, t->heads * t->wide}, flat[2] = {t->batch * t->length, t->heads * t->wide};
    struct gen_value s = tap(g, gen_out(g, GEN_NODE(g, "MatMul", &q, &k), WML_F32, 4, sd, 100));
    if (where == 1) s = scaled(g, s, by);
    if (gen_chance(g, 60)) s = masked(g, s);
    if (where == 5) s = scaled(g, s, by); /* the mask as well */
    struct wml_node *n = GEN_NODE(g, "Softmax", &s);
    wml_attr_set_int(n, "axis", gen_chance(g, 50) ? -1 : gen_chance(g, 95) ? 3 : 2);
    s = tap(g, gen_like(g, n, &s, 1));
    s = tap(g, gen_out(g, GEN_NODE(g, "MatMul", &s, &v), WML_F32, 4, yd, 100));
    if (gen_chance(g, 10)) return;
    s = tap(g, gen_transpose(g, s, perm));
    if (gen_chance(g, 85)) gen_reshape(g, s, 3, back);
    else gen_reshape(g, s, 2, flat);
}

static bool make_encoder_form(struct gen *g)
{
    struct gen_value x = gen_pick_small(g, GEN_F, 3, 3, 100), z = x, q, k, v;
    struct shape t = {x.dim[0], x.dim[1], x.dim[1], gen_int(g, 1, 3), gen_int(g, 1, 3), 0};
    if (gen_count(&x) < 1 || x.dim[2] > 8 || gen_count(&x) > 200) return false;
    t.wide = gen_chance(g, 80) ? t.size : gen_int(g, 1, 3);
    int64_t where = gen_int(g, 0, 5), width = t.heads * t.size;
    double by = gen_chance(g, 80) ? 1 / sqrt((double)t.size) : 0.3;
    if (gen_chance(g, 25)) z = gen_op1(g, "Tanh", x);
    q = linear(g, x, width);
    if (where == 2) q = scaled(g, q, by);
    q = split(g, q, t.heads, false);
    if (where == 3) q = scaled(g, q, by);
    k = split(g, linear(g, z, width), t.heads, true);
    if (where == 4) k = scaled(g, k, by);
    v = split(g, linear(g, gen_chance(g, 90) ? z : x, t.heads * t.wide), t.heads, false);
    product(g, &t, q, k, v, where, by);
    return true;
}

/* Q, K and V of one linear layer. */
static bool make_packed_form(struct gen *g)
{
    static const int64_t apart[] = {2, 0, 3, 1, 4}, swap[] = {0, 1, 3, 2};
    struct gen_value x = gen_pick_small(g, GEN_F, 3, 3, 100), part[3], y;
    struct shape t = {x.dim[0], x.dim[1], x.dim[1], gen_int(g, 1, 3), gen_int(g, 1, 3), 0};
    if (gen_count(&x) < 1 || x.dim[2] > 8 || gen_count(&x) > 200) return false;
    t.wide = t.size;
    int64_t five[5] = {t.batch, t.length, 3, t.heads, t.size}, one[4] = {t.batch, t.heads, t.length, t.size};
    y = tap(g, gen_transpose(g, gen_reshape(g, linear(g, x, 3 * t.heads * t.size), 5, five), apart));
    for (int i = 0; i < 3; i++) {
        double at = gen_chance(g, 95) ? i : 2 - i;
        struct gen_value index = gen_fill(g, WML_I64, 0, NULL, &at);
        part[i] = gen_out(g, GEN_NODE(g, "Gather", &y, &index), WML_F32, 4, one, y.most);
    }
    product(g, &t, part[0], gen_transpose(g, part[1], swap), part[2], 1, 1 / sqrt((double)t.size));
    return true;
}

/* Rows of a table by ids that are in range whatever the numbers are. */
static struct gen_value lookup(struct gen *g, struct gen_value ids, int64_t rows, int64_t hidden)
{
    int64_t dim[2] = {rows, hidden}, out[GEN_RANK];
    struct gen_value n = gen_fill(g, ids.t, 0, NULL, &(double){(double)rows}), table = gen_const(g, WML_F32, 2, dim, -1, 1);
    struct gen_value safe = gen_like(g, GEN_NODE(g, "Mod", &ids, &n), &ids, (double)rows);
    memcpy(out, ids.dim, sizeof out);
    out[ids.rank] = hidden;
    return gen_out(g, GEN_NODE(g, "Gather", &table, &safe), WML_F32, ids.rank + 1, out, 1);
}

static bool make_embedding_form(struct gen *g)
{
    struct gen_value ids = gen_pick_small(g, GEN_INT, 2, 2, 1e5), y, p;
    int64_t hidden = gen_int(g, 2, 4), dim[3] = {1, ids.dim[1], hidden};
    if (gen_count(&ids) < 1) return false;
    y = tap(g, lookup(g, ids, 7, hidden));
    if (gen_chance(g, 50)) y = tap(g, gen_op2(g, "Add", y, lookup(g, gen_op2(g, "Add", ids, gen_scalar(g, ids.t, 1)), 2, hidden)));
    int64_t way = gen_int(g, 0, 3);
    if (way == 0) p = gen_const(g, WML_F32, 3, dim, -1, 1);
    else if (way == 1) p = lookup(g, gen_op2(g, "Mul", ids, ids), 5, hidden);
    else if (way == 2) p = gen_const(g, WML_F32, 1, &hidden, -1, 1);
    else {
        int64_t table[2] = {dim[1] + 1, hidden}, id[2] = {1, dim[1]};
        double at[64];
        if (dim[1] > 64) return true;
        for (int64_t i = 0; i < dim[1]; i++) at[i] = gen_chance(g, 97) ? (double)i : 0;
        struct gen_value rows = gen_const(g, WML_F32, 2, table, -1, 1), index = gen_fill(g, WML_I64, 2, id, at);
        p = gen_out(g, GEN_NODE(g, "Gather", &rows, &index), WML_F32, 3, dim, 1);
    }
    y = tap(g, gen_op2(g, "Add", y, p));
    struct gen_value scale = gen_const(g, WML_F32, 1, &hidden, 0.5, 2), bias = gen_const(g, WML_F32, 1, &hidden, -1, 1);
    struct wml_node *n = gen_chance(g, 85) ? GEN_NODE(g, "LayerNormalization", &y, &scale, &bias) : GEN_NODE(g, "LayerNormalization", &y, &scale);
    wml_attr_set_int(n, "axis", -1);
    tap(g, gen_like(g, n, &y, 10));
    return true;
}

const struct gen_op gen_encoder_ops[] = {
    {"encoder form", make_encoder_form, 5, 0}, {"packed attention form", make_packed_form, 2, 0}, {"embedding form", make_embedding_form, 3, 17},
};
const size_t n_gen_encoder_ops = WML_COUNT(gen_encoder_ops);
