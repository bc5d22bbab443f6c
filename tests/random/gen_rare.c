/* What few models have but some pass looks for, and arithmetic on shapes. */
#include "gen.h"

#include <math.h>

static bool make_dft(struct gen *g)
{
    int64_t dim[4] = {gen_int(g, 1, 2), gen_int(g, 2, 6), 1};
    struct gen_value a = gen_source(g, WML_F32, 3, dim), length = {0};
    bool one_sided = gen_chance(g, 50);
    struct wml_node *n;
    if (g->opset >= 20) {
        struct gen_value axis = gen_fill(g, WML_I64, 0, NULL, &(double){1});
        n = GEN_NODE(g, "DFT", &a, &length, &axis);
    } else {
        n = GEN_NODE(g, "DFT", &a);
        wml_attr_set_int(n, "axis", 1);
    }
    if (one_sided) wml_attr_set_int(n, "onesided", 1);
    int64_t out[3] = {dim[0], one_sided ? dim[1] / 2 + 1 : dim[1], 2};
    gen_out(g, n, WML_F32, 3, out, a.most * 8);
    return true;
}

static bool make_grid_sample(struct gen *g)
{
    int64_t dim[4] = {1, gen_int(g, 1, 2), gen_int(g, 2, 4), gen_int(g, 2, 4)}, gd[4] = {1, gen_int(g, 1, 3), gen_int(g, 1, 3), 2};
    struct gen_value a = gen_source(g, WML_F32, 4, dim), grid = gen_const(g, WML_F32, 4, gd, -1.2, 1.2);
    int64_t out[4] = {a.dim[0], a.dim[1], gd[1], gd[2]};
    struct wml_node *n = GEN_NODE(g, "GridSample", &a, &grid);
    if (g->opset >= 20) wml_attr_set_str(n, "mode", WML_STR("linear"));
    if (gen_chance(g, 40)) wml_attr_set_int(n, "align_corners", 1);
    if (gen_chance(g, 15)) wml_attr_set_str(n, "padding_mode", WML_STR("border"));
    gen_out(g, n, WML_F32, 4, out, a.most);
    return true;
}

static bool make_resize(struct gen *g)
{
    int64_t dim[4] = {1, gen_int(g, 1, 2), gen_int(g, 2, 4), gen_int(g, 2, 4)}, none = 0, four = 4, target[4];
    struct gen_value a = gen_source(g, WML_F32, 4, dim), roi = {0}, s = {0}, size = {0};
    double times[4] = {1, 1, gen_chance(g, 30) ? 1.5 : 2, gen_chance(g, 30) ? 3 : 2};
    bool by_size = gen_chance(g, 30);
    for (int i = 0; i < 4; i++) target[i] = (int64_t)floor((double)a.dim[i] * times[i]);
    if (g->opset < 13 || gen_chance(g, 50)) roi = gen_fill(g, WML_F32, 1, &none, times);
    if (!by_size) s = gen_fill(g, WML_F32, 1, &four, times);
    else {
        size = gen_ints(g, 4, target);
        if (g->opset < 13 || gen_chance(g, 50)) s = gen_fill(g, WML_F32, 1, &none, times);
    }
    struct wml_node *n = GEN_NODE(g, "Resize", &a, &roi, &s, &size);
    int64_t way = gen_int(g, 0, 2);
    wml_attr_set_str(n, "mode", way == 0 ? WML_STR("nearest") : way == 1 ? WML_STR("linear") : WML_STR("cubic"));
    if (!way && gen_chance(g, 50)) wml_attr_set_str(n, "nearest_mode", WML_STR("floor"));
    if (gen_chance(g, 35) && g->opset < 13) wml_attr_set_str(n, "coordinate_transformation_mode", WML_STR("tf_half_pixel_for_nn"));
    gen_out(g, n, WML_F32, 4, target, a.most * 2);
    return true;
}

/* A grouped Conv over one axis whose result is cut to its front. */
static bool make_trimmed_conv(struct gen *g)
{
    int64_t group = gen_chance(g, 80) ? 4 : 3, kernel = gen_int(g, 2, 4), dim[3] = {1, group * 2, gen_int(g, 2, 5)}, wd[3] = {group * 2, 2, kernel};
    struct gen_value a = gen_source(g, WML_F32, 3, dim), w = gen_const(g, WML_F32, 3, wd, -1, 1), b = {0};
    int64_t pads[2] = {kernel - 1, gen_chance(g, 80) ? kernel - 1 : 0}, out[3] = {a.dim[0], group * 2, a.dim[2] + pads[0] + pads[1] - kernel + 1};
    if (gen_chance(g, 50)) b = gen_const(g, WML_F32, 1, &wd[0], -1, 1);
    struct wml_node *n = GEN_NODE(g, "Conv", &a, &w, &b);
    wml_attr_set_int(n, "group", group);
    wml_attr_set_ints(n, "pads", 2, pads);
    wml_attr_set_ints(n, "kernel_shape", 1, &kernel);
    struct gen_value y = gen_out(g, n, WML_F32, 3, out, a.most * 8);
    int64_t keep = gen_int(g, 1, out[2]), zero = 0, axis = 2;
    struct gen_value s = gen_ints(g, 1, &zero), e = gen_ints(g, 1, &keep), x = gen_ints(g, 1, &axis);
    out[2] = keep;
    gen_out(g, GEN_NODE(g, "Slice", &y, &s, &e, &x), WML_F32, 3, out, y.most);
    return true;
}

static bool make_int_weight(struct gen *g)
{
    int64_t dim[2] = {gen_int(g, 1, 3), gen_int(g, 1, 4)};
    struct gen_value w = gen_const(g, WML_I32, 2, dim, -50, 50), s = gen_fill(g, WML_F32, 0, NULL, &(double){0.02}), z = {0};
    if (gen_chance(g, 70)) z = gen_fill(g, WML_I32, 0, NULL, &(double){0});
    gen_out(g, GEN_NODE(g, "DequantizeLinear", &w, &s, &z), WML_F32, 2, dim, 2);
    return true;
}

/* ONNX's own Attention, three or four axes. */
static bool make_attention(struct gen *g)
{
    int64_t heads = 2, size = gen_int(g, 1, 3), length = gen_int(g, 1, 3), four[4] = {1, heads, length, size}, three[3] = {1, length, heads * size};
    bool split = gen_chance(g, 60);
    struct gen_value in[3], mask = {0};
    for (int i = 0; i < 3; i++) in[i] = split ? gen_source(g, WML_F32, 4, four) : gen_source(g, WML_F32, 3, three);
    for (int i = 0; i < 3; i++) in[i].most = 1;
    int64_t md[2] = {length, length};
    if (gen_chance(g, 40)) mask = gen_const(g, WML_F32, 2, md, -3, 0);
    struct wml_node *n = GEN_NODE(g, "Attention", &in[0], &in[1], &in[2], &mask);
    if (!split) {
        wml_attr_set_int(n, "q_num_heads", heads);
        wml_attr_set_int(n, "kv_num_heads", heads);
    }
    if (gen_chance(g, 30) && !mask.v) wml_attr_set_int(n, "is_causal", 1);
    if (gen_chance(g, 30)) wml_attr_set_float(n, "scale", 0.7f);
    gen_out(g, n, WML_F32, split ? 4 : 3, split ? four : three, 3);
    return true;
}

/* Numbers out of a Shape, some arithmetic, and a Reshape, Expand or Slice by them. */
static bool make_shape_arithmetic(struct gen *g)
{
    struct gen_value a = gen_pick(g, GEN_F, 2, 4), s, d, k, parts[2];
    int64_t rank = (int64_t)a.rank, one = 1, two = 2, axis = gen_int(g, 0, rank - 1);
    if (gen_count(&a) < 1) return false;
    s = gen_out(g, GEN_NODE(g, "Shape", &a), WML_I64, 1, &rank, 1e9);
    if (gen_chance(g, 50)) { /* [1] by Gather of [axis], or a number made [1] */
        k = gen_ints(g, 1, &axis);
        d = gen_out(g, GEN_NODE(g, "Gather", &s, &k), WML_I64, 1, &one, 1e9);
    } else {
        struct gen_value from = gen_ints(g, 1, &axis), to = gen_ints(g, 1, (const int64_t[]){axis + 1}), zero = gen_ints(g, 1, (const int64_t[]){0});
        d = gen_out(g, GEN_NODE(g, "Slice", &s, &from, &to, &zero), WML_I64, 1, &one, 1e9);
    }
    int64_t size = a.dim[axis], way = gen_int(g, 0, 3), dim[GEN_RANK];
    if (way == 0) { /* [size * k, -1] */
        int64_t f = gen_count(&a) % (size * 2) == 0 ? 2 : 1;
        k = gen_ints(g, 1, &f);
        parts[0] = gen_out(g, GEN_NODE(g, "Mul", &d, &k), WML_I64, 1, &one, 1e9);
        parts[1] = gen_ints(g, 1, (const int64_t[]){-1});
        dim[0] = size * f;
        dim[1] = gen_count(&a) / dim[0];
        struct wml_node *n = GEN_NODE(g, "Concat", &parts[0], &parts[1]);
        wml_attr_set_int(n, "axis", 0);
        s = gen_out(g, n, WML_I64, 1, &two, 1e9);
        gen_out(g, GEN_NODE(g, "Reshape", &a, &s), a.t, 2, dim, a.most);
    } else if (way == 1) { /* the first half of the axis */
        k = gen_ints(g, 1, &two);
        struct gen_value half = gen_out(g, GEN_NODE(g, "Div", &d, &k), WML_I64, 1, &one, 1e9), zero = gen_ints(g, 1, (const int64_t[]){0});
        struct gen_value x = gen_ints(g, 1, &axis);
        memcpy(dim, a.dim, sizeof dim);
        dim[axis] = size / 2;
        gen_out(g, GEN_NODE(g, "Slice", &a, &zero, &half, &x), a.t, a.rank, dim, a.most);
        if (gen_chance(g, 60)) { /* and the second */
            struct gen_value end = gen_ints(g, 1, (const int64_t[]){INT64_C(1) << 40});
            dim[axis] = size - size / 2;
            gen_out(g, GEN_NODE(g, "Slice", &a, &half, &end, &x), a.t, a.rank, dim, a.most);
        }
    } else if (way == 2) { /* a constant stretched to the whole shape */
        k = gen_scalar(g, WML_F32, 0.5);
        k = gen_out(g, GEN_NODE(g, "Expand", &k, &s), WML_F32, a.rank, a.dim, 1);
        gen_op2(g, "Add", a, k);
    } else { /* zeros of the shape */
        struct wml_node *n = GEN_NODE(g, "ConstantOfShape", &s);
        k = gen_out(g, n, WML_F32, a.rank, a.dim, 1);
        gen_op2(g, gen_chance(g, 50) ? "Add" : "Sub", a, k);
    }
    return true;
}

/* Several axes at once, backwards too. */
static bool make_wide_slice(struct gen *g)
{
    struct gen_value a = gen_pick(g, GEN_F | GEN_I | GEN_B, 2, 4);
    int64_t from[GEN_RANK], to[GEN_RANK], axis[GEN_RANK], step[GEN_RANK], dim[GEN_RANK];
    size_t n = 0;
    memcpy(dim, a.dim, sizeof dim);
    for (size_t i = 0; i < a.rank; i++) {
        int64_t d = a.dim[i];
        if (d < 1 || gen_chance(g, 35)) continue;
        bool back = gen_chance(g, 20);
        axis[n] = gen_chance(g, 70) ? (int64_t)i : (int64_t)i - (int64_t)a.rank;
        step[n] = back ? -1 : gen_int(g, 1, 2);
        from[n] = back ? d - 1 : gen_int(g, 0, d - 1);
        to[n] = back ? -d - 1 : gen_chance(g, 60) ? d : gen_int(g, from[n], d);
        dim[i] = back ? d : (to[n] - from[n] + step[n] - 1) / step[n];
        if (!back && gen_chance(g, 20)) from[n] -= d;
        n++;
    }
    if (!n) return false;
    struct gen_value f = gen_ints(g, n, from), t = gen_ints(g, n, to), x = gen_ints(g, n, axis), s = gen_ints(g, n, step);
    gen_out(g, GEN_NODE(g, "Slice", &a, &f, &t, &x, &s), a.t, a.rank, dim, a.most);
    return true;
}

static bool make_sequence(struct gen *g)
{
    struct gen_value a = gen_pick(g, GEN_F, 1, 3), k = gen_fill(g, WML_I64, 0, NULL, &(double){(double)gen_int(g, 0, 1)});
    struct gen_value b = gen_op1(g, "Neg", a);
    struct wml_node *n = GEN_NODE(g, "SequenceConstruct", &a, &b), *at;
    struct gen_value list = {.v = wml_node_add_output(n, WML_STR("list"))};
    at = GEN_NODE(g, "SequenceAt", &list, &k);
    gen_like(g, at, &a, a.most);
    if (gen_chance(g, 50)) {
        at = GEN_NODE(g, "ConcatFromSequence", &list);
        wml_attr_set_int(at, "axis", 0);
        int64_t dim[GEN_RANK];
        memcpy(dim, a.dim, sizeof dim);
        dim[0] *= 2;
        gen_out(g, at, a.t, a.rank, dim, a.most);
    }
    return true;
}

/* Random numbers: twice the same node is not the same value, and nothing may be folded. The answer is not shown. */
static bool make_random(struct gen *g)
{
    struct gen_value a = gen_pick(g, GEN_F, 1, 3), r, zero;
    if (g->opset > 21) return false;
    struct wml_node *n = GEN_NODE(g, "RandomUniformLike", &a);
    r = (struct gen_value){.v = wml_node_add_output(n, WML_STR("random")), .t = WML_F32, .rank = a.rank, .most = 1};
    memcpy(r.dim, a.dim, sizeof r.dim);
    zero = gen_scalar(g, WML_F32, 2);
    if (zero.rank > a.rank) return true;
    gen_out(g, GEN_NODE(g, "Less", &r, &zero), WML_BOOL, a.rank, a.dim, 1); /* always true */
    return true;
}

/* Products of one factor on vectors, and matrices of one row. */
static bool make_vector_product(struct gen *g)
{
    struct gen_value a = gen_pick_small(g, GEN_F, 1, 1, 100), b = gen_const(g, WML_F32, 1, a.dim, -1, 1);
    if (a.dim[0] < 1) return false;
    struct gen_value y = gen_out(g, GEN_NODE(g, "MatMul", &a, &b), WML_F32, 0, NULL, a.most * 10);
    gen_op2(g, "Add", y, gen_fill(g, WML_F32, 0, NULL, &(double){1}));
    return true;
}

const struct gen_op gen_rare_ops[] = {
    {"dft", make_dft, 2, 17}, {"grid sample", make_grid_sample, 2, 16}, {"resize", make_resize, 3, 0}, {"trimmed conv", make_trimmed_conv, 2, 0},
    {"int weight", make_int_weight, 1, 0}, {"attention", make_attention, 6, 23}, {"shape arithmetic", make_shape_arithmetic, 9, 0},
    {"wide slice", make_wide_slice, 5, 0}, {"sequence", make_sequence, 2, 0}, {"random", make_random, 1, 0},
    {"vector product", make_vector_product, 1, 0},
};
const size_t n_gen_rare_ops = WML_COUNT(gen_rare_ops);
