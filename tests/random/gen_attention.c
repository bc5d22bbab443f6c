/* Attention as exporters write it: heads split by Reshape and Transpose or cut from one product, masks added or
 * chosen, the scale in several places, rotary embedding, the mean of one token. Each sometimes a little off. */
#include "gen.h"

#include <math.h>

struct heads {
    int64_t batch, length, n, size;
};

static struct gen_value linear(struct gen *g, struct gen_value x, int64_t out)
{
    int64_t wd[2] = {x.dim[2], out}, dim[3] = {x.dim[0], x.dim[1], out};
    struct gen_value w = gen_const(g, WML_F32, 2, wd, -0.6, 0.6), y;
    y = gen_out(g, GEN_NODE(g, "MatMul", &x, &w), WML_F32, 3, dim, x.most * 4);
    if (gen_chance(g, 60)) y = gen_op2(g, "Add", y, gen_const(g, WML_F32, 1, &out, -1, 1));
    return y;
}

static struct gen_value slice_last(struct gen *g, struct gen_value a, int64_t from, int64_t to)
{
    int64_t axis = gen_chance(g, 50) ? -1 : (int64_t)a.rank - 1, dim[GEN_RANK];
    memcpy(dim, a.dim, sizeof dim);
    dim[a.rank - 1] = to - from;
    struct gen_value f = gen_ints(g, 1, &from), t = gen_ints(g, 1, &to), x = gen_ints(g, 1, &axis);
    return gen_out(g, GEN_NODE(g, "Slice", &a, &f, &t, &x), a.t, a.rank, dim, a.most);
}

/* [batch, length, n * size] -> [batch, n, length, size]; keys sometimes turned at once. */
static struct gen_value split_heads(struct gen *g, struct gen_value x, const struct heads *h, bool turned)
{
    int64_t dim[4] = {h->batch, h->length, h->n, h->size}, perm[4] = {0, 2, 1, 3}, turn[4] = {0, 2, 3, 1};
    return gen_transpose(g, gen_reshape(g, x, 4, dim), turned ? turn : perm);
}

static struct gen_value rotate(struct gen *g, struct gen_value x)
{
    int64_t half = x.dim[3] / 2, rows[2] = {x.dim[2], x.dim[3]};
    double *c = WML_NEW_ARRAY(&g->arena, double, (size_t)(rows[0] * rows[1])), *s = WML_NEW_ARRAY(&g->arena, double, (size_t)(rows[0] * rows[1]));
    bool off = gen_chance(g, 12);
    for (int64_t i = 0; i < rows[0]; i++)
        for (int64_t k = 0; k < rows[1]; k++) {
            double angle = (double)i / pow(10, (double)(k % half)) + (off && k >= half ? 0.3 : 0);
            c[i * rows[1] + k] = cos(angle);
            s[i * rows[1] + k] = sin(angle);
        }
    struct gen_value cosine = gen_fill(g, WML_F32, 2, rows, c), sine = gen_fill(g, WML_F32, 2, rows, s), lo, hi, part[2], turned;
    lo = slice_last(g, x, 0, half);
    hi = slice_last(g, x, half, x.dim[3]);
    part[0] = gen_op1(g, "Neg", gen_chance(g, 92) ? hi : lo);
    part[1] = lo;
    struct wml_node *n = GEN_NODE(g, "Concat", &part[0], &part[1]);
    wml_attr_set_int(n, "axis", -1);
    turned = gen_like(g, n, &x, x.most);
    return gen_op2(g, "Add", gen_op2(g, "Mul", x, cosine), gen_op2(g, "Mul", turned, sine));
}

static struct gen_value masked(struct gen *g, struct gen_value s, const struct heads *h)
{
    int64_t way = gen_int(g, 0, 5), square[4] = {1, 1, h->length, h->length}, row[4] = {h->batch, 1, 1, h->length};
    struct gen_value m, one, fill;
    if (way < 2) return s;
    if (way == 2) return gen_op2(g, "Add", s, gen_const(g, WML_F32, 4, gen_chance(g, 50) ? square : row, -4, 0));
    if (way == 3) return gen_op2(g, "Add", s, gen_beside(g, &s, -4, 0));
    if (way == 4) { /* 1 - mask, times a large number */
        m = gen_const(g, WML_F32, 4, row, 0, 1);
        one = gen_scalar(g, WML_F32, 1);
        m = gen_op2_as(g, "Sub", one, m);
        m = gen_op2(g, "Mul", m, gen_scalar(g, WML_F32, gen_chance(g, 50) ? -10000 : -3.4028234663852886e38));
        return gen_op2(g, "Add", s, m);
    }
    m = gen_const(g, WML_BOOL, 4, square, 0, 1);
    fill = gen_scalar(g, WML_F32, gen_chance(g, 70) ? -1e9 : -3.4028234663852886e38);
    return gen_like(g, gen_chance(g, 70) ? GEN_NODE(g, "Where", &m, &s, &fill) : GEN_NODE(g, "Where", &m, &fill, &s), &s, 1e9);
}

static struct gen_value scaled(struct gen *g, struct gen_value a, double f)
{
    if (gen_chance(g, 8)) f *= 1.3;
    return gen_chance(g, 50) ? gen_op2(g, "Mul", a, gen_scalar(g, WML_F32, f)) : gen_op2_as(g, "Div", a, gen_scalar(g, WML_F32, 1 / f));
}

static void inputs(struct gen *g, struct gen_value x, struct heads *h, bool turned, struct gen_value *q)
{
    int64_t hidden = h->n * h->size;
    if (gen_chance(g, 35)) { /* one product for all three */
        struct gen_value all = linear(g, x, 3 * hidden);
        for (int i = 0; i < 3; i++) q[i] = slice_last(g, all, i * hidden, (i + 1) * hidden);
    } else
        for (int i = 0; i < 3; i++) q[i] = linear(g, x, hidden);
    for (int i = 0; i < 3; i++) q[i] = split_heads(g, q[i], h, turned && i == 1);
}

static bool make_heads(struct gen *g)
{
    struct gen_value x, q[3], s, y;
    int64_t dim[3] = {gen_chance(g, 60) ? 1 : 2, gen_int(g, 1, 4), gen_int(g, 2, 6)};
    if (!gen_find(g, GEN_F, 3, 3, &x) || x.most > 20 || gen_count(&x) < 1 || gen_count(&x) > 200) x = gen_source(g, WML_F32, 3, dim);
    struct heads h = {x.dim[0], x.dim[1], gen_int(g, 1, 3), 2 * gen_int(g, 1, 2)};
    bool rotary = gen_chance(g, 30), turned = !rotary && gen_chance(g, 50), early = gen_chance(g, 30);
    int64_t back[4] = {0, 1, 3, 2}, join[4] = {0, 2, 1, 3}, sd[4] = {h.batch, h.n, h.length, h.length};
    int64_t yd[4] = {h.batch, h.n, h.length, h.size}, flat[3] = {h.batch, h.length, h.n * h.size};
    double f = 1 / sqrt((double)h.size);
    inputs(g, x, &h, turned, q);
    if (rotary)
        for (int i = 0; i < 2; i++) q[i] = rotate(g, q[i]);
    if (early) {
        q[0] = scaled(g, q[0], gen_chance(g, 50) ? f : sqrt(f));
        if (gen_chance(g, 50)) q[1] = scaled(g, q[1], sqrt(f));
    }
    if (!turned) q[1] = gen_transpose(g, q[1], back);
    s = gen_out(g, GEN_NODE(g, "MatMul", &q[0], &q[1]), WML_F32, 4, sd, 50);
    if (!early) s = scaled(g, s, f);
    s = masked(g, s, &h);
    struct wml_node *n = GEN_NODE(g, "Softmax", &s);
    wml_attr_set_int(n, "axis", gen_chance(g, 90) ? (gen_chance(g, 50) ? -1 : 3) : 2);
    if (g->opset < 13) wml_attr_set_int(n, "axis", 3);
    s = gen_like(g, n, &s, 1);
    if (gen_chance(g, 8)) gen_op1(g, "Neg", s);
    y = gen_out(g, GEN_NODE(g, "MatMul", &s, &q[2]), WML_F32, 4, yd, 50);
    y = gen_reshape(g, gen_transpose(g, y, join), 3, flat);
    if (gen_chance(g, 50)) linear(g, y, x.dim[2]);
    return true;
}

static bool make_rotary(struct gen *g)
{
    int64_t dim[4] = {gen_int(g, 1, 2), gen_int(g, 1, 3), gen_int(g, 1, 3), 2 * gen_int(g, 1, 3)};
    struct gen_value x = gen_source(g, WML_F32, 4, dim);
    if (x.dim[3] % 2) return false;
    rotate(g, x);
    return true;
}

const struct gen_op gen_attention_ops[] = {
    {"heads", make_heads, 5, 0},
    {"rotary", make_rotary, 2, 0},
};
const size_t n_gen_attention_ops = WML_COUNT(gen_attention_ops);
