/* Quantised parts: QDQ pairs, dynamic quantisation, integer products. */
#include "gen.h"

static struct gen_value quantize(struct gen *g, struct gen_value a, struct gen_value s, struct gen_value z)
{
    return gen_out(g, GEN_NODE(g, "QuantizeLinear", &a, &s, &z), WML_U8, a.rank, a.dim, 255);
}

static struct gen_value dequantize(struct gen *g, struct gen_value q, struct gen_value s, struct gen_value z)
{
    return gen_out(g, GEN_NODE(g, "DequantizeLinear", &q, &s, &z), WML_F32, q.rank, q.dim, 8);
}

static bool make_qdq(struct gen *g)
{
    struct gen_value a = gen_pick_small(g, GEN_F, 0, 4, 100), s, z, q, y;
    s = gen_fill(g, WML_F32, 0, NULL, &(double){gen_real(g, 0.01, 0.05)});
    z = gen_fill(g, WML_U8, 0, NULL, &(double){(double)gen_int(g, 100, 150)});
    q = quantize(g, a, s, z);
    y = dequantize(g, q, s, z);
    if (gen_chance(g, 35)) { /* a second pair behind it, equal or not */
        if (gen_chance(g, 40)) s = gen_fill(g, WML_F32, 0, NULL, &(double){0.04});
        y = dequantize(g, quantize(g, y, s, z), s, z);
    } else if (gen_chance(g, 40)) { /* an operator between pairs */
        y = gen_op1(g, gen_chance(g, 50) ? "Relu" : "Identity", y);
        y = dequantize(g, quantize(g, y, s, z), s, z);
    }
    return true;
}

static bool make_dequantized_weight(struct gen *g)
{
    struct gen_value a = gen_pick(g, GEN_F, 2, 2), w, s, z = {0};
    int64_t dim[2] = {a.dim[1], gen_int(g, 1, 4)}, out[2] = {a.dim[0], dim[1]};
    w = gen_const(g, WML_U8, 2, dim, 0, 255);
    s = gen_fill(g, WML_F32, 0, NULL, &(double){0.02});
    if (gen_chance(g, 60)) z = gen_fill(g, WML_U8, 0, NULL, &(double){128});
    w = dequantize(g, w, s, z);
    gen_out(g, GEN_NODE(g, "MatMul", &a, &w), WML_F32, 2, out, a.most * 6 * (double)(a.dim[1] + 1));
    return true;
}

static bool make_dynamic(struct gen *g)
{
    struct gen_value a = gen_pick_small(g, GEN_F, 2, 2, 100), w, q, s, z, y, zero;
    int64_t dim[2] = {a.dim[1], gen_int(g, 1, 4)}, out[2] = {a.dim[0], dim[1]};
    if (gen_count(&a) < 1) return false;
    w = gen_const(g, WML_U8, 2, dim, 0, 255);
    zero = gen_fill(g, WML_U8, 0, NULL, &(double){128});
    struct wml_node *n = GEN_NODE(g, "DynamicQuantizeLinear", &a);
    q = gen_out(g, n, WML_U8, 2, a.dim, 255);
    s = gen_out(g, n, WML_F32, 0, NULL, 1);
    z = gen_out(g, n, WML_U8, 0, NULL, 255);
    y = gen_out(g, GEN_NODE(g, "MatMulInteger", &q, &w, &z, &zero), WML_I32, 2, out, 1e6);
    struct wml_node *cast = GEN_NODE(g, "Cast", &y);
    wml_attr_set_int(cast, "to", WML_F32);
    y = gen_out(g, cast, WML_F32, 2, out, 1e6);
    struct gen_value ws = gen_fill(g, WML_F32, 0, NULL, &(double){0.02});
    ws = gen_op2(g, "Mul", s, ws);
    y.most = a.most * 10;
    y = gen_op2(g, "Mul", y, ws);
    if (gen_chance(g, 50)) gen_op2(g, "Add", y, gen_const(g, WML_F32, 1, &dim[1], -1, 1));
    return true;
}

const struct gen_op gen_quant_ops[] = {
    {"qdq", make_qdq, 5, 11},
    {"dequantized weight", make_dequantized_weight, 2, 11},
    {"dynamic", make_dynamic, 2, 11},
};
const size_t n_gen_quant_ops = WML_COUNT(gen_quant_ops);
