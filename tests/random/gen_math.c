/* Elementwise operators, comparisons, reductions, products of matrices. */
#include "gen.h"

#include <math.h>

enum bound { SAME, ONE, BIG, PLUS };
struct unary {
    const char *op;
    unsigned types;
    int64_t since;
    enum bound bound;
    double need; /* of the operand's magnitude; 0: any */
};
static const struct unary unary[] = {
    {"Abs", GEN_NUM, 11, SAME, 0}, {"Neg", GEN_NUM, 11, SAME, 0}, {"Exp", GEN_REAL, 11, BIG, 6},
    {"Log", GEN_REAL, 11, PLUS, 0}, {"Sqrt", GEN_REAL, 11, SAME, 0}, {"Reciprocal", GEN_REAL, 11, BIG, 0},
    {"Floor", GEN_REAL, 11, PLUS, 0}, {"Ceil", GEN_REAL, 11, PLUS, 0}, {"Round", GEN_REAL, 11, PLUS, 0},
    {"Sign", GEN_NUM, 11, ONE, 0}, {"Sin", GEN_REAL, 11, ONE, 0}, {"Cos", GEN_REAL, 11, ONE, 0},
    {"Tanh", GEN_REAL, 11, ONE, 0}, {"Sigmoid", GEN_REAL, 11, ONE, 0}, {"Relu", GEN_REAL, 11, SAME, 0},
    {"Relu", GEN_F, 11, SAME, 0}, {"Elu", GEN_F, 11, SAME, 0}, {"Selu", GEN_F, 11, PLUS, 0},
    {"LeakyRelu", GEN_F, 11, SAME, 0}, {"Softplus", GEN_F, 11, PLUS, 0}, {"Softsign", GEN_F, 11, ONE, 0},
    {"HardSigmoid", GEN_F, 11, ONE, 0}, {"HardSwish", GEN_F, 14, SAME, 0}, {"Erf", GEN_F, 11, ONE, 0},
    {"Identity", GEN_ANY, 11, SAME, 0}, {"Identity", GEN_ANY, 11, SAME, 0}, {"Celu", GEN_F, 12, SAME, 0},
    {"ThresholdedRelu", GEN_F, 11, SAME, 0}, {"Mish", GEN_F, 18, SAME, 0}, {"Gelu", GEN_F, 20, SAME, 0},
    {"Atan", GEN_F, 11, ONE, 0}, {"Sinh", GEN_F, 11, BIG, 4}, {"Not", GEN_B, 11, SAME, 0},
};

static bool make_unary(struct gen *g)
{
    const struct unary *u = &unary[gen_int(g, 0, WML_COUNT(unary) - 1)];
    if (g->opset < u->since) return false;
    struct gen_value a = gen_pick_small(g, u->types, 0, GEN_RANK, u->need ? u->need : 1e5);
    double most = u->bound == SAME ? a.most : u->bound == ONE ? 1.6 : u->bound == BIG ? 1000 : a.most + 16;
    gen_like(g, GEN_NODE(g, u->op, &a), &a, most);
    return true;
}

/* A second operand that fits: another value of the pool, a itself, or a constant. */
static struct gen_value other(struct gen *g, const struct gen_value *a, double low, double high, struct gen_value *y)
{
    struct gen_value b;
    int64_t way = gen_int(g, 0, 9);
    *y = *a;
    if (way == 0) return *a;
    for (int i = 0; way < 6 && i < 4; i++)
        if (gen_find(g, GEN_ANY, 0, GEN_RANK, &b) && b.t == a->t && gen_broadcast(a, &b, y)) return b;
    *y = *a;
    if (way == 8 && a->rank < 5 && gen_chance(g, 40)) { /* one that widens the result */
        struct gen_value wide = *a;
        int64_t dim[GEN_RANK];
        size_t more = (size_t)gen_int(g, 0, 1);
        wide.rank += more;
        for (size_t i = 0; i < wide.rank; i++) {
            int64_t d = i < more ? 1 : a->dim[i - more];
            dim[i] = d == 1 && gen_chance(g, 60) ? gen_int(g, 1, 3) : gen_chance(g, 60) ? 1 : d;
        }
        struct gen_value b2 = gen_const(g, a->t, wide.rank, dim, low, high);
        gen_broadcast(a, &b2, y);
        return b2;
    }
    if (way == 9 && wml_dtype_is_float((int)a->t)) return gen_scalar(g, a->t, gen_int(g, 0, 1) ? 1 : 0);
    return gen_beside(g, a, low, high);
}

static bool make_binary(struct gen *g)
{
    static const char *const op[] = {"Add", "Add", "Sub", "Mul", "Mul", "Min", "Max", "Sum", "Mean"};
    const char *name = op[gen_int(g, 0, WML_COUNT(op) - 1)];
    bool reals = name[0] == 'S' && name[2] == 'm';
    if (!strcmp(name, "Mean")) reals = true;
    unsigned types = reals ? GEN_F : g->opset < 12 && name[0] == 'M' && name[1] != 'u' ? GEN_REAL : GEN_NUM;
    struct gen_value a = gen_pick(g, types, 0, GEN_RANK), y, b = other(g, &a, -2, 2, &y);
    double most = !strcmp(name, "Mul") ? a.most * b.most : a.most + b.most;
    struct wml_node *n = gen_chance(g, 50) ? GEN_NODE(g, name, &a, &b) : GEN_NODE(g, name, &b, &a);
    if (reals && gen_chance(g, 30)) wml_node_add_input(n, a.v);
    gen_out(g, n, a.t, y.rank, y.dim, reals ? most + a.most : most);
    return true;
}

static bool make_div(struct gen *g)
{
    struct gen_value a = gen_pick(g, GEN_NUM, 0, GEN_RANK), y = a, b;
    if (!wml_dtype_is_float((int)a.t)) {
        b = gen_scalar(g, a.t, (double)(gen_chance(g, 80) ? gen_int(g, 1, 4) : -gen_int(g, 1, 3)));
        if (!b.v->init || b.v->n_inputs) return false;
    } else if (gen_chance(g, 75)) {
        b = gen_beside(g, &a, 0.5, 3);
    } else {
        b = other(g, &a, 0.5, 2, &y);
    }
    gen_broadcast(&a, &b, &y);
    gen_out(g, GEN_NODE(g, "Div", &a, &b), a.t, y.rank, y.dim, a.most * 4);
    return true;
}

static bool make_pow(struct gen *g)
{
    struct gen_value a = gen_pick_small(g, GEN_F, 0, GEN_RANK, 30);
    static const double power[] = {2, 2, 2, 3, 0.5, 1, 0, -1, -0.5, 4};
    double p = power[gen_int(g, 0, WML_COUNT(power) - 1)];
    struct gen_value b = gen_scalar(g, WML_F32, p), y = a;
    gen_broadcast(&a, &b, &y);
    gen_out(g, GEN_NODE(g, "Pow", &a, &b), a.t, y.rank, y.dim, p < 0 ? 1000 : pow(fmax(a.most, 1), p));
    return true;
}

static bool make_mod(struct gen *g)
{
    struct gen_value a = gen_pick(g, GEN_INT, 0, GEN_RANK), b = gen_scalar(g, a.t, (double)gen_int(g, 2, 4)), y = a;
    gen_broadcast(&a, &b, &y);
    gen_out(g, GEN_NODE(g, "Mod", &a, &b), a.t, y.rank, y.dim, 4);
    return true;
}

static bool make_clip(struct gen *g)
{
    struct gen_value a = gen_pick_small(g, GEN_F, 0, GEN_RANK, 1e30);
    double low = gen_real(g, -2, 1);
    struct gen_value l = {0}, h = {0};
    const double none = 0;
    if (gen_chance(g, 80)) l = gen_fill(g, a.t, 0, NULL, gen_chance(g, 40) ? &none : &low);
    if (gen_chance(g, 70)) {
        double high = gen_chance(g, 40) ? 6 : low + gen_real(g, 0, 4);
        h = gen_fill(g, a.t, 0, NULL, &high);
    }
    gen_like(g, GEN_NODE(g, "Clip", &a, &l, &h), &a, l.v && h.v ? 6 : a.most + 6);
    return true;
}

static bool make_prelu(struct gen *g)
{
    struct gen_value a = gen_pick(g, GEN_F, 1, GEN_RANK), b = gen_beside(g, &a, -0.5, 1);
    gen_like(g, GEN_NODE(g, "PRelu", &a, &b), &a, a.most);
    return true;
}

static bool make_compare(struct gen *g)
{
    static const char *const op[] = {"Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual"};
    int64_t k = gen_int(g, 0, g->opset < 12 ? 2 : 4);
    struct gen_value a = gen_pick(g, GEN_NUM, 0, GEN_RANK), y, b = other(g, &a, -1, 1, &y);
    gen_out(g, GEN_NODE(g, op[k], &a, &b), WML_BOOL, y.rank, y.dim, 1);
    return true;
}

static bool make_logic(struct gen *g)
{
    static const char *const op[] = {"And", "Or", "Xor"};
    struct gen_value a, y, b;
    if (!gen_find(g, GEN_B, 0, GEN_RANK, &a)) return make_compare(g);
    b = other(g, &a, 0, 1, &y);
    gen_out(g, GEN_NODE(g, op[gen_int(g, 0, 2)], &a, &b), WML_BOOL, y.rank, y.dim, 1);
    return true;
}

static bool make_where(struct gen *g)
{
    struct gen_value a, b, c, y;
    if (!gen_find(g, GEN_B, 0, GEN_RANK, &c)) return make_compare(g);
    if (gen_chance(g, 30)) c = gen_op1(g, "Not", c);
    a = gen_pick(g, GEN_NUM, 0, GEN_RANK);
    if (!gen_broadcast(&a, &c, &y)) a = gen_const(g, WML_F32, 0, NULL, -1, 1);
    gen_broadcast(&a, &c, &y);
    y.t = a.t;
    b = gen_beside(g, &y, -2, 2);
    struct wml_node *n = gen_chance(g, 50) ? GEN_NODE(g, "Where", &c, &a, &b) : GEN_NODE(g, "Where", &c, &b, &a);
    gen_out(g, n, a.t, y.rank, y.dim, fmax(a.most, b.most));
    return true;
}

static bool make_cast(struct gen *g)
{
    static const enum wml_dtype to[] = {WML_F32, WML_F32, WML_F64, WML_I64, WML_I32, WML_BOOL, WML_F16};
    enum wml_dtype t = to[gen_int(g, 0, WML_COUNT(to) - 1)];
    struct gen_value a = gen_pick_small(g, GEN_ANY | GEN_H, 0, GEN_RANK, 1000), like;
    if (wml_dtype_is_float((int)a.t) && !wml_dtype_is_float((int)t) && t != WML_BOOL) {
        if (a.t != WML_F32) return false; /* what an infinite number becomes is not defined */
        struct gen_value l = gen_fill(g, a.t, 0, NULL, &(double){-100}), h = gen_fill(g, a.t, 0, NULL, &(double){100});
        a = gen_like(g, GEN_NODE(g, "Clip", &a, &l, &h), &a, 100);
    }
    if (g->opset >= 15 && gen_chance(g, 20) && gen_find(g, GEN_NUM, 0, GEN_RANK, &like) && (like.t == a.t || wml_dtype_is_float((int)like.t))) {
        gen_out(g, GEN_NODE(g, "CastLike", &a, &like), like.t, a.rank, a.dim, a.most);
        return true;
    }
    struct wml_node *n = GEN_NODE(g, "Cast", &a);
    wml_attr_set_int(n, "to", t);
    gen_out(g, n, t, a.rank, a.dim, a.most);
    return true;
}

/* A few operators in half precision: ORT computes most of them in float, between Casts. */
static bool make_half(struct gen *g)
{
    struct gen_value a;
    if (!gen_find(g, GEN_H, 0, GEN_RANK, &a)) {
        a = gen_pick_small(g, GEN_F, 0, GEN_RANK, 100);
        struct wml_node *n = GEN_NODE(g, "Cast", &a);
        wml_attr_set_int(n, "to", WML_F16);
        a = gen_out(g, n, WML_F16, a.rank, a.dim, a.most);
    }
    if (a.most > 1000) return false;
    static const char *const op[] = {"Add", "Mul", "Relu", "Sigmoid", "Identity", "Neg"};
    int64_t k = gen_int(g, 0, WML_COUNT(op) - 1);
    if (k >= 2) {
        gen_op1(g, op[k], a);
        return true;
    }
    struct gen_value b = gen_chance(g, 20) ? gen_scalar(g, WML_F16, k) : gen_beside(g, &a, -2, 2);
    gen_op2(g, op[k], a, b);
    return true;
}

static bool make_reduce(struct gen *g)
{
    static const char *const op[] = {"ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2",
                                     "ReduceSumSquare", "ReduceLogSumExp", "ReduceMean", "ReduceSum"};
    const char *name = op[gen_int(g, 0, WML_COUNT(op) - 1)];
    struct gen_value a = gen_pick(g, GEN_F | GEN_J, 1, GEN_RANK);
    if (!strcmp(name, "ReduceProd") && (gen_count(&a) > 12 || a.most > 4)) return false;
    if (a.t != WML_F32 && strcmp(name, "ReduceSum") && strcmp(name, "ReduceMean")) return false;
    if (!gen_count(&a)) return false; /* ORT divides by zero, or answers with other sizes */
    int64_t axes[GEN_RANK];
    size_t n = 0;
    for (size_t i = 0; i < a.rank; i++)
        if (gen_chance(g, 45)) axes[n++] = (int64_t)i;
    if (!n && gen_chance(g, 70)) axes[n++] = (int64_t)a.rank - 1;
    gen_reduce(g, name, a, n, axes, gen_int(g, 0, 1));
    return true;
}

static bool make_arg(struct gen *g)
{
    struct gen_value a = gen_pick(g, GEN_F, 1, GEN_RANK);
    int64_t axis = gen_int(g, 0, (int64_t)a.rank - 1), dim[GEN_RANK], keep = gen_int(g, 0, 1);
    size_t rank = 0;
    for (size_t i = 0; i < a.rank; i++)
        if (keep || (int64_t)i != axis) dim[rank++] = (int64_t)i == axis ? 1 : a.dim[i];
    struct wml_node *n = GEN_NODE(g, gen_chance(g, 50) ? "ArgMax" : "ArgMin", &a);
    wml_attr_set_int(n, "axis", axis);
    wml_attr_set_int(n, "keepdims", keep);
    gen_out(g, n, WML_I64, rank, dim, 10);
    return true;
}

static bool make_cumsum(struct gen *g)
{
    struct gen_value a = gen_pick(g, GEN_F | GEN_I, 1, GEN_RANK);
    struct gen_value axis = gen_fill(g, WML_I64, 0, NULL, &(double){(double)gen_int(g, 0, (int64_t)a.rank - 1)});
    struct wml_node *n = GEN_NODE(g, "CumSum", &a, &axis);
    if (gen_chance(g, 20)) wml_attr_set_int(n, "reverse", 1);
    gen_like(g, n, &a, a.most * 8);
    return true;
}

static bool make_isnan(struct gen *g)
{
    struct gen_value a = gen_pick(g, GEN_F, 0, GEN_RANK), zero;
    struct gen_value is = gen_out(g, GEN_NODE(g, gen_chance(g, 70) ? "IsNaN" : "IsInf", &a), WML_BOOL, a.rank, a.dim, 1);
    if (gen_chance(g, 50)) return true;
    zero = gen_scalar(g, WML_F32, 0);
    if (a.rank < zero.rank) return true;
    gen_like(g, GEN_NODE(g, "Where", &is, &zero, &a), &a, a.most);
    return true;
}

const struct gen_op gen_math_ops[] = {
    {"unary", make_unary, 40, 0},    {"binary", make_binary, 40, 0}, {"div", make_div, 8, 0},     {"pow", make_pow, 6, 0},
    {"mod", make_mod, 2, 0},         {"clip", make_clip, 7, 0},      {"prelu", make_prelu, 3, 0}, {"compare", make_compare, 6, 0},
    {"logic", make_logic, 3, 0},     {"where", make_where, 6, 0},    {"cast", make_cast, 9, 0},   {"reduce", make_reduce, 12, 0},
    {"arg", make_arg, 3, 0},         {"cumsum", make_cumsum, 2, 0},  {"isnan", make_isnan, 2, 0}, {"half", make_half, 3, 0},
};
const size_t n_gen_math_ops = WML_COUNT(gen_math_ops);
