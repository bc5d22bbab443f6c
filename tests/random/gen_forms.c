/* What exporters write out and passes look for, each sometimes a little off: another axis, a number that is not
 * the one, an operand the other way round, a second reader. */
#include "gen.h"

#include <math.h>

/* A number, sometimes not the one that is expected. */
static struct gen_value number(struct gen *g, double x)
{
    return gen_scalar(g, WML_F32, gen_chance(g, 8) ? x * 1.5 + 0.25 : x);
}

/* Somebody else may read an inner value. */
static struct gen_value tap(struct gen *g, struct gen_value a)
{
    if (gen_chance(g, 4)) gen_op1(g, "Neg", a);
    return a;
}

static struct gen_value operand(struct gen *g, size_t min_rank, size_t max_rank)
{
    return gen_pick_small(g, GEN_F, min_rank, max_rank, 100);
}

static struct gen_value now_and_then_identity(struct gen *g, struct gen_value a)
{
    return gen_chance(g, 6) ? gen_op1(g, "Identity", a) : a;
}

static bool make_layer_norm_form(struct gen *g)
{
    struct gen_value x = operand(g, 2, 4), d, m, v, y, s;
    bool rms = gen_chance(g, 35);
    size_t n = gen_chance(g, 85) ? 1 : 2, k = 0;
    int64_t axes[2], keep = !gen_chance(g, 5);
    for (size_t i = x.rank - n; i < x.rank; i++) axes[k++] = (int64_t)i;
    if (gen_chance(g, 10)) axes[0] = 0, n = 1;
    if (gen_count(&x) < 1) return false;
    d = x;
    if (!rms) {
        m = tap(g, gen_reduce(g, "ReduceMean", x, n, axes, 1));
        d = tap(g, gen_op2_as(g, "Sub", x, m));
    }
    struct gen_value from = gen_chance(g, 12) && !rms ? gen_op2_as(g, "Sub", x, m) : d;
    if (gen_chance(g, 75)) {
        struct gen_value two = number(g, 2);
        if (two.rank > from.rank) return true;
        s = gen_like(g, GEN_NODE(g, "Pow", &from, &two), &from, pow(from.most, 3));
    } else s = gen_op2_as(g, "Mul", from, from);
    if (gen_chance(g, 6)) axes[0] = (int64_t)x.rank - 1, n = 1;
    v = tap(g, gen_reduce(g, "ReduceMean", now_and_then_identity(g, s), n, axes, keep));
    v = gen_op2(g, "Add", v, gen_scalar(g, WML_F32, gen_chance(g, 80) ? 1e-5 : 0.1));
    v = gen_op1(g, "Sqrt", v);
    struct gen_value fits;
    if (!gen_broadcast(&d, &v, &fits)) return true;
    if (gen_chance(g, 70)) y = gen_op2_as(g, "Div", d, v);
    else y = gen_op2(g, "Mul", d, gen_op1(g, "Reciprocal", v));
    int64_t last = x.dim[x.rank - 1];
    if (gen_chance(g, 75)) y = gen_op2(g, "Mul", y, gen_chance(g, 80) ? gen_const(g, WML_F32, 1, &last, -1, 2) : gen_beside(g, &x, -1, 2));
    if (gen_chance(g, 70)) y = gen_op2(g, "Add", y, gen_chance(g, 80) ? gen_const(g, WML_F32, 1, &last, -1, 1) : gen_beside(g, &x, -1, 1));
    return true;
}

static bool make_gelu_form(struct gen *g)
{
    struct gen_value x = operand(g, 1, 4), e, y;
    int64_t last = x.dim[x.rank - 1], way = gen_int(g, 0, 5);
    if (gen_chance(g, 20)) x = gen_op2(g, "Add", x, gen_const(g, WML_F32, 1, &last, -1, 1));
    if (gen_chance(g, 50)) e = gen_op2_as(g, "Div", x, number(g, 1.4142135381698608));
    else e = gen_op2(g, "Mul", x, number(g, 0.7071067690849304));
    e = gen_op2(g, "Add", tap(g, gen_op1(g, "Erf", e)), number(g, 1));
    if (way < 2) y = gen_op2(g, "Mul", gen_op2(g, "Mul", x, number(g, 0.5)), e);
    else if (way < 4) y = gen_op2(g, "Mul", tap(g, gen_op2(g, "Mul", x, e)), number(g, 0.5));
    else if (way == 4) y = gen_op2(g, "Mul", x, gen_op2(g, "Mul", e, number(g, 0.5)));
    else y = gen_op2_as(g, "Div", gen_op2(g, "Mul", x, e), number(g, 2));
    tap(g, y);
    return true;
}

static bool make_tanh_gelu_form(struct gen *g)
{
    struct gen_value x = gen_pick_small(g, GEN_F, 1, 4, 10), c, t;
    struct gen_value three = number(g, 3);
    if (three.rank > x.rank) return false;
    if (gen_chance(g, 60)) c = gen_like(g, GEN_NODE(g, "Pow", &x, &three), &x, 1000);
    else c = gen_op2(g, "Mul", gen_op2(g, "Mul", x, x), x);
    t = gen_op2(g, "Add", x, gen_op2(g, "Mul", c, number(g, 0.044715)));
    t = gen_op1(g, "Tanh", gen_op2(g, "Mul", t, number(g, 0.7978845608)));
    t = gen_op2(g, "Add", tap(g, t), number(g, 1));
    if (gen_chance(g, 50)) gen_op2(g, "Mul", gen_op2(g, "Mul", x, t), number(g, 0.5));
    else gen_op2(g, "Mul", gen_op2(g, "Mul", x, number(g, 0.5)), t);
    return true;
}

static bool make_swish_form(struct gen *g)
{
    struct gen_value x = operand(g, 1, 4), a = x;
    if (gen_chance(g, 40)) a = gen_op2(g, "Mul", x, number(g, 1.702));
    gen_op2(g, "Mul", x, tap(g, gen_op1(g, "Sigmoid", a)));
    return true;
}

static bool make_hard_swish_form(struct gen *g)
{
    struct gen_value x = operand(g, 1, 4), c, l, h;
    if (gen_chance(g, 35)) {
        c = gen_op1(g, "HardSigmoid", x);
        if (gen_chance(g, 80)) wml_attr_set_float(c.v->def, "alpha", 1.0f / 6);
        gen_op2(g, "Mul", x, c);
        return true;
    }
    c = gen_op2(g, "Add", x, number(g, 3));
    l = gen_fill(g, WML_F32, 0, NULL, &(double){0});
    h = gen_fill(g, WML_F32, 0, NULL, &(double){gen_chance(g, 90) ? 6 : 5});
    c = gen_like(g, GEN_NODE(g, "Clip", &c, &l, &h), &c, 6);
    if (gen_chance(g, 50)) gen_op2_as(g, "Div", gen_op2(g, "Mul", x, c), number(g, 6));
    else gen_op2(g, "Mul", x, gen_op2_as(g, "Div", tap(g, c), number(g, 6)));
    return true;
}

/* A multi-head product: heads split off, scores scaled and masked, heads joined. */
static bool make_attention_form(struct gen *g)
{
    struct gen_value x = operand(g, 3, 3), in[3], s;
    int64_t h = 2, d, hidden, perm[4] = {0, 2, 1, 3}, turned[4] = {0, 2, 3, 1}, wd[2];
    if (gen_count(&x) < 1 || x.dim[2] > 8 || gen_count(&x) > 200) return false;
    d = gen_int(g, 1, 3);
    hidden = h * d;
    wd[0] = x.dim[2];
    wd[1] = hidden;
    for (int i = 0; i < 3; i++) {
        int64_t out[3] = {x.dim[0], x.dim[1], hidden}, split[4] = {x.dim[0], x.dim[1], h, d};
        struct gen_value w = gen_const(g, WML_F32, 2, wd, -1, 1);
        in[i] = gen_out(g, GEN_NODE(g, "MatMul", &x, &w), WML_F32, 3, out, x.most * 8);
        if (gen_chance(g, 70)) in[i] = gen_op2(g, "Add", in[i], gen_const(g, WML_F32, 1, &hidden, -1, 1));
        in[i] = gen_reshape(g, in[i], 4, split);
        in[i] = gen_transpose(g, in[i], i == 1 ? turned : perm);
    }
    int64_t sd[4] = {x.dim[0], h, x.dim[1], x.dim[1]}, yd[4] = {x.dim[0], h, x.dim[1], d}, back[3] = {x.dim[0], x.dim[1], hidden};
    s = gen_out(g, GEN_NODE(g, "MatMul", &in[0], &in[1]), WML_F32, 4, sd, 100);
    if (gen_chance(g, 50)) s = gen_op2_as(g, "Div", s, number(g, sqrt((double)d)));
    else s = gen_op2(g, "Mul", s, number(g, 1 / sqrt((double)d)));
    if (gen_chance(g, 50)) s = gen_op2(g, "Add", s, gen_beside(g, &s, -4, 0));
    struct wml_node *n = GEN_NODE(g, "Softmax", &s);
    wml_attr_set_int(n, "axis", gen_chance(g, 50) ? -1 : 3);
    s = tap(g, gen_like(g, n, &s, 1));
    s = gen_out(g, GEN_NODE(g, "MatMul", &s, &in[2]), WML_F32, 4, yd, 100);
    gen_reshape(g, gen_transpose(g, s, perm), 3, back);
    return true;
}

/* Reshape, Transpose, Reshape: windows, channel shuffles, pixel shuffles, up to rank 6. */
static bool make_shuffle_form(struct gen *g)
{
    struct gen_value x = gen_pick(g, GEN_F | GEN_I, 2, 4), y;
    int64_t dim[GEN_RANK], perm[GEN_RANK], flat[2];
    size_t rank = 0;
    for (size_t i = 0; i < x.rank; i++) {
        if (x.dim[i] % 2 == 0 && x.dim[i] && rank < 6) {
            dim[rank++] = x.dim[i] / 2;
            dim[rank++] = 2;
        } else dim[rank++] = x.dim[i];
    }
    for (size_t i = 0; i < rank; i++) perm[i] = (int64_t)i;
    size_t a = (size_t)gen_int(g, 0, (int64_t)rank - 1), b = (size_t)gen_int(g, 0, (int64_t)rank - 1);
    int64_t t = perm[a];
    perm[a] = perm[b];
    perm[b] = t;
    y = gen_transpose(g, tap(g, gen_reshape(g, x, rank, dim)), perm);
    if (gen_count(&x) < 1) return true;
    flat[0] = gen_chance(g, 50) ? y.dim[0] : 1;
    flat[1] = gen_count(&x) / flat[0];
    gen_reshape(g, y, 2, flat);
    return true;
}

/* Transposes around what does not care for the order of axes. */
static bool make_transpose_form(struct gen *g)
{
    struct gen_value x = operand(g, 3, 5), y, k;
    int64_t there[GEN_RANK], back[GEN_RANK];
    if (gen_count(&x) < 1) return false;
    for (size_t i = 0; i < x.rank; i++) there[i] = i == 0 ? 0 : i == 1 ? (int64_t)x.rank - 1 : (int64_t)i - 1; /* channels first */
    for (size_t i = 0; i < x.rank; i++) back[there[i]] = (int64_t)i;
    y = tap(g, gen_transpose(g, x, there));
    for (int64_t n = gen_int(g, 0, 3); n > 0; n--) {
        int64_t way = gen_int(g, 0, 6);
        if (way < 2) y = gen_op1(g, way ? "Relu" : "Tanh", y);
        else if (way < 4) y = gen_op2(g, way == 2 ? "Add" : "Mul", y, gen_beside(g, &y, -1, 1));
        else if (way == 4) {
            k = gen_transpose(g, gen_op1(g, "Sigmoid", x), there);
            if (k.rank == y.rank && !memcmp(k.dim, y.dim, y.rank * sizeof *k.dim)) y = gen_op2(g, "Add", y, k);
        } else if (way == 5) {
            int64_t axis = gen_int(g, 0, (int64_t)y.rank - 1);
            y = gen_reduce(g, gen_chance(g, 50) ? "ReduceMean" : "ReduceMax", y, 1, &axis, 1);
        } else {
            struct wml_node *n2 = GEN_NODE(g, "Softmax", &y);
            wml_attr_set_int(n2, "axis", gen_int(g, 0, (int64_t)y.rank - 1));
            if (g->opset >= 13) y = gen_like(g, n2, &y, 1);
            else return true;
        }
    }
    gen_transpose(g, y, gen_chance(g, 85) ? back : there);
    return true;
}

/* A chain of views of which some undo others. */
static bool make_view_form(struct gen *g)
{
    struct gen_value x = gen_pick(g, GEN_F | GEN_I | GEN_B, 1, 5), y = x;
    int64_t dim[GEN_RANK], n = gen_count(&x);
    for (int64_t k = gen_int(g, 2, 4); k > 0; k--) {
        int64_t way = gen_int(g, 0, 3);
        if (way == 0) y = gen_reshape(g, y, 1, &n);
        else if (way == 1) y = gen_reshape(g, y, x.rank, x.dim);
        else if (way == 2 && y.rank < 5) {
            int64_t axis = gen_int(g, 0, (int64_t)y.rank);
            for (size_t i = 0, from = 0; i <= y.rank; i++) dim[i] = (int64_t)i == axis ? 1 : y.dim[from++];
            struct wml_node *node = gen_axes_node(g, "Unsqueeze", &y, 1, &axis, 13);
            y = gen_out(g, node, y.t, y.rank + 1, dim, y.most);
        } else y = gen_op1(g, "Identity", y);
    }
    return true;
}

/* The same node twice, or nearly. */
static bool make_twins(struct gen *g)
{
    struct gen_value x = operand(g, 1, 4), a, b, k = gen_beside(g, &x, -1, 1), y;
    const char *op = gen_chance(g, 50) ? "Mul" : "Add";
    a = gen_op2_as(g, op, x, k);
    if (gen_chance(g, 60)) b = gen_chance(g, 50) ? gen_op2_as(g, op, x, k) : gen_op2_as(g, op, k, x);
    else b = gen_op2_as(g, op, x, gen_beside(g, &x, -1, 1));
    if (gen_chance(g, 50) && gen_broadcast(&a, &b, &y)) gen_op2(g, "Sub", a, b);
    return true;
}

/* Products and sums with numbers, one after the other, and around products of matrices. */
static bool make_scale_form(struct gen *g)
{
    struct gen_value x = operand(g, 2, 4), w, y = x;
    int64_t dim[2] = {x.dim[x.rank - 1], gen_int(g, 1, 4)}, out[GEN_RANK];
    if (gen_chance(g, 60)) y = gen_op2(g, "Mul", y, number(g, 0.25));
    if (gen_chance(g, 20)) y = gen_op2_as(g, "Div", y, number(g, 4));
    w = gen_const(g, WML_F32, 2, dim, -1, 1);
    if (gen_chance(g, 25)) w = gen_op2(g, "Mul", w, number(g, 3));
    memcpy(out, y.dim, sizeof out);
    out[y.rank - 1] = dim[1];
    y = gen_out(g, GEN_NODE(g, "MatMul", &y, &w), WML_F32, y.rank, out, y.most * 8);
    if (gen_chance(g, 60)) y = gen_op2(g, "Mul", y, number(g, 2));
    if (gen_chance(g, 30)) y = gen_op2(g, "Add", y, gen_const(g, WML_F32, 1, &dim[1], -1, 1));
    if (gen_chance(g, 30)) gen_op1(g, "Relu", y);
    return true;
}

static bool make_exp_form(struct gen *g)
{
    struct gen_value x = gen_pick_small(g, GEN_F, 1, 4, 4), k = gen_beside(g, &x, -1, 1);
    struct gen_value e = gen_op1(g, "Exp", gen_op2(g, "Add", x, k));
    e.most = 100;
    gen_op2(g, "Mul", e, gen_scalar(g, WML_F32, gen_chance(g, 85) ? 0.75 : -0.75));
    return true;
}

/* Casts that come back. */
static bool make_cast_form(struct gen *g)
{
    static const enum wml_dtype way[] = {WML_F32, WML_F64, WML_I64, WML_I32, WML_F16};
    struct gen_value x = gen_pick_small(g, GEN_F | GEN_INT, 0, 4, 1000), y = x;
    for (int k = 0; k < 2; k++) {
        enum wml_dtype t = k ? x.t : way[gen_int(g, 0, WML_COUNT(way) - 1)];
        if (wml_dtype_is_float((int)y.t) && !wml_dtype_is_float((int)t)) return true;
        struct wml_node *n = GEN_NODE(g, "Cast", &y);
        wml_attr_set_int(n, "to", t);
        y = gen_out(g, n, t, y.rank, y.dim, y.most);
    }
    return true;
}

/* Softmax with a mask that NaN guards, as exporters of attention write it. */
static bool make_guard_form(struct gen *g)
{
    struct gen_value x = operand(g, 2, 4), s, is, zero;
    struct wml_node *n = GEN_NODE(g, "Softmax", &x);
    wml_attr_set_int(n, "axis", -1);
    s = gen_like(g, n, &x, 1);
    is = gen_out(g, GEN_NODE(g, "IsNaN", &s), WML_BOOL, s.rank, s.dim, 1);
    zero = gen_scalar(g, WML_F32, 0);
    gen_like(g, GEN_NODE(g, "Where", &is, &zero, &s), &s, 1);
    return true;
}

/* --- what sub-graphs need --- */

bool gen_number(struct gen *g, struct gen_value *out)
{
    struct gen_value x;
    if (!gen_find(g, GEN_F, 0, GEN_RANK, &x) || gen_count(&x) < 1) return false;
    *out = x.rank ? gen_reduce(g, "ReduceMean", x, 0, NULL, 0) : x;
    return true;
}

struct gen_value gen_same(struct gen *g, struct gen_value a)
{
    struct gen_value y = a, k;
    for (int64_t n = gen_int(g, 0, 2); n > 0; n--) {
        int64_t way = gen_int(g, 0, 4);
        if (way == 0 && y.t == WML_F32) y = gen_op1(g, gen_chance(g, 50) ? "Relu" : "Tanh", y);
        else if (way == 1) y = gen_op2(g, "Add", y, gen_beside(g, &y, -1, 1));
        else if (way == 2 && y.t == WML_F32 && gen_number(g, &k)) y = gen_op2(g, "Add", y, k);
        else if (way == 3 && y.rank > 1) {
            int64_t perm[GEN_RANK];
            for (size_t i = 0; i < y.rank; i++) perm[i] = (int64_t)i;
            perm[0] = 1;
            perm[1] = 0;
            y = gen_transpose(g, gen_transpose(g, y, perm), perm);
        } else y = gen_op1(g, "Identity", y);
    }
    return y;
}

const struct gen_op gen_form_ops[] = {
    {"layer norm form", make_layer_norm_form, 8, 0}, {"gelu form", make_gelu_form, 5, 0}, {"tanh gelu form", make_tanh_gelu_form, 3, 0},
    {"swish form", make_swish_form, 3, 0}, {"hard swish form", make_hard_swish_form, 3, 0}, {"attention form", make_attention_form, 4, 0},
    {"shuffle form", make_shuffle_form, 6, 0}, {"transpose form", make_transpose_form, 7, 0}, {"view form", make_view_form, 5, 0},
    {"twins", make_twins, 4, 0}, {"scale form", make_scale_form, 5, 0}, {"exp form", make_exp_form, 2, 0},
    {"cast form", make_cast_form, 3, 0}, {"guard form", make_guard_form, 1, 0},
};
const size_t n_gen_form_ops = WML_COUNT(gen_form_ops);
