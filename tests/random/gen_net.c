/* Operators of networks: convolutions, pools, normalisation, products of matrices, softmax, resize. */
#include "gen.h"

#include <math.h>

static struct gen_value image(struct gen *g)
{
    struct gen_value a = gen_pick(g, GEN_F, 3, 5);
    bool small = a.dim[1] > 12;
    for (size_t i = 2; i < a.rank; i++) small = small || a.dim[i] < 1 || a.dim[i] > 16;
    if (!small || g->depth) return a;
    int64_t dim[4] = {gen_int(g, 1, 2), gen_int(g, 1, 4), gen_int(g, 3, 7), gen_int(g, 3, 7)};
    return gen_source(g, WML_F32, 4, dim);
}

struct window {
    int64_t kernel[3], stride[3], pads[6], dilation[3], out[3];
    bool full; /* all attributes written */
};

static bool window(struct gen *g, const struct gen_value *a, struct window *w, bool dilate)
{
    size_t n = a->rank - 2;
    w->full = gen_chance(g, 60);
    for (size_t i = 0; i < n; i++) {
        w->kernel[i] = gen_int(g, 1, 3);
        w->stride[i] = w->full ? gen_int(g, 1, 2) : 1;
        w->dilation[i] = dilate && w->full && gen_chance(g, 15) ? 2 : 1;
        int64_t most = w->full && w->kernel[i] > 1 ? 1 : 0;
        w->pads[i] = gen_int(g, 0, most);
        w->pads[i + n] = gen_int(g, 0, most);
        int64_t reach = (w->kernel[i] - 1) * w->dilation[i] + 1, room = a->dim[i + 2] + w->pads[i] + w->pads[i + n] - reach;
        if (room < 0 || a->dim[i + 2] < 1) return false;
        w->out[i] = room / w->stride[i] + 1;
    }
    return true;
}

static void put_window(struct wml_node *n, size_t axes, const struct window *w, bool dilate)
{
    wml_attr_set_ints(n, "kernel_shape", axes, w->kernel);
    if (!w->full) return;
    wml_attr_set_ints(n, "strides", axes, w->stride);
    wml_attr_set_ints(n, "pads", 2 * axes, w->pads);
    if (dilate) wml_attr_set_ints(n, "dilations", axes, w->dilation);
}

/* The value after a Conv: something that passes like to fold into it. */
static void after_conv(struct gen *g, struct gen_value y)
{
    int64_t way = gen_int(g, 0, 7), one[GEN_RANK], c = y.dim[1];
    struct gen_value k[4];
    for (size_t i = 0; i < y.rank; i++) one[i] = i == 1 ? c : 1;
    if (way < 2) { /* BatchNormalization */
        for (int i = 0; i < 4; i++) k[i] = gen_const(g, WML_F32, 1, &c, i == 3 ? 0.25 : -1, 2);
        struct wml_node *n = GEN_NODE(g, "BatchNormalization", &y, &k[0], &k[1], &k[2], &k[3]);
        if (gen_chance(g, 50)) wml_attr_set_float(n, "epsilon", 1e-3f);
        gen_like(g, n, &y, y.most * 8);
    } else if (way < 4) { /* per channel, in several spellings */
        bool offset = gen_chance(g, 30) && y.rank == 4;
        k[0] = gen_const(g, WML_F32, offset ? 3 : y.rank, offset ? one + 1 : one, -2, 2);
        gen_op2(g, gen_chance(g, 50) ? "Mul" : "Add", y, k[0]);
    } else if (way == 4) {
        k[0] = gen_beside(g, &y, -2, 2); /* most fit no channel */
        gen_op2(g, gen_chance(g, 50) ? "Mul" : "Add", y, k[0]);
    } else if (way == 5) {
        k[0] = gen_scalar(g, WML_F32, 2);
        if (gen_chance(g, 30)) gen_op2_as(g, gen_chance(g, 50) ? "Div" : "Sub", y, k[0]);
        else gen_op2(g, gen_chance(g, 50) ? "Mul" : "Add", y, k[0]);
    } else if (way == 6) {
        gen_op1(g, gen_chance(g, 60) ? "Relu" : "Sigmoid", y);
    }
}

static bool make_conv(struct gen *g)
{
    struct gen_value a = image(g), b = {0};
    struct window w;
    size_t axes = a.rank - 2;
    if (!window(g, &a, &w, true) || a.dim[1] < 1 || a.dim[1] > 12) return false;
    int64_t group = gen_chance(g, 25) && a.dim[1] > 1 ? a.dim[1] : 1, out = group * gen_int(g, 1, group > 2 ? 2 : 4);
    int64_t wd[GEN_RANK] = {out, a.dim[1] / group}, dim[GEN_RANK] = {a.dim[0], out}, area = a.dim[1] / group;
    for (size_t i = 0; i < axes; i++) {
        wd[i + 2] = w.kernel[i];
        dim[i + 2] = w.out[i];
        area *= w.kernel[i];
    }
    if (gen_chance(g, 15)) { /* a number before it */
        struct gen_value k = gen_scalar(g, WML_F32, 0.5);
        a = gen_op2(g, "Mul", a, k);
    }
    struct gen_value weight = gen_const(g, WML_F32, a.rank, wd, -1, 1);
    if (gen_chance(g, 60)) b = gen_const(g, WML_F32, 1, &out, -1, 1);
    struct wml_node *n = GEN_NODE(g, "Conv", &a, &weight, &b);
    if (group > 1) wml_attr_set_int(n, "group", group);
    put_window(n, axes, &w, true);
    if (!w.full && gen_chance(g, 50)) wml_attr_remove(n, "kernel_shape");
    struct gen_value y = gen_out(g, n, WML_F32, a.rank, dim, a.most * (double)area + 1);
    if (gen_chance(g, 75)) after_conv(g, y);
    if (gen_chance(g, 20)) after_conv(g, g->pool[g->n - 1].rank == y.rank && g->pool[g->n - 1].dim[1] == out ? g->pool[g->n - 1] : y);
    return true;
}

static bool make_conv_transpose(struct gen *g)
{
    struct gen_value a = image(g), b = {0};
    if (a.rank != 4 || a.dim[1] < 1 || a.dim[1] > 8) return false;
    int64_t group = a.dim[1] % 2 == 0 && gen_chance(g, 40) ? 2 : gen_chance(g, 15) ? a.dim[1] : 1, stride[2] = {2, 2};
    int64_t wd[4] = {a.dim[1], gen_int(g, 1, 3), 2, 2}, dim[4] = {a.dim[0], wd[1] * group, a.dim[2] * 2, a.dim[3] * 2};
    struct gen_value weight = gen_const(g, WML_F32, 4, wd, -1, 1);
    if (gen_chance(g, 50)) b = gen_const(g, WML_F32, 1, &dim[1], -1, 1);
    struct wml_node *n = GEN_NODE(g, "ConvTranspose", &a, &weight, &b);
    wml_attr_set_ints(n, "strides", 2, stride);
    if (group > 1) wml_attr_set_int(n, "group", group);
    struct gen_value y = gen_out(g, n, WML_F32, 4, dim, a.most * 40);
    after_conv(g, y);
    if (gen_chance(g, 20) && g->pool[g->n - 1].rank == 4 && g->pool[g->n - 1].dim[1] == dim[1]) after_conv(g, g->pool[g->n - 1]);
    return true;
}

static bool make_pool(struct gen *g)
{
    struct gen_value a = image(g);
    struct window w;
    if (!window(g, &a, &w, false) || a.dim[1] < 1) return false;
    bool most = gen_chance(g, 60);
    for (size_t i = 0; i < a.rank - 2; i++)
        if (w.pads[i] >= w.kernel[i] || w.pads[i + a.rank - 2] >= w.kernel[i]) return false;
    struct wml_node *n = GEN_NODE(g, most ? "MaxPool" : "AveragePool", &a);
    put_window(n, a.rank - 2, &w, false);
    if (!most && gen_chance(g, 40)) wml_attr_set_int(n, "count_include_pad", 1);
    int64_t dim[GEN_RANK] = {a.dim[0], a.dim[1], w.out[0], w.out[1], w.out[2]};
    gen_out(g, n, WML_F32, a.rank, dim, a.most);
    return true;
}

static bool make_global_pool(struct gen *g)
{
    struct gen_value a = image(g);
    int64_t dim[GEN_RANK] = {a.dim[0], a.dim[1], 1, 1, 1};
    if (gen_count(&a) < 1) return false;
    gen_out(g, GEN_NODE(g, gen_chance(g, 70) ? "GlobalAveragePool" : "GlobalMaxPool", &a), WML_F32, a.rank, dim, a.most);
    return true;
}

static bool make_norm(struct gen *g)
{
    struct gen_value a = gen_pick(g, GEN_F, 2, 4), k[4];
    int64_t c = a.dim[1], way = gen_int(g, 0, 3);
    if (gen_count(&a) < 1) return false;
    for (int i = 0; i < 4; i++) k[i] = gen_const(g, WML_F32, 1, &c, i == 3 ? 0.25 : -1, 2);
    struct wml_node *n;
    if (way == 0 && a.rank > 2) n = GEN_NODE(g, "InstanceNormalization", &a, &k[0], &k[1]);
    else if (way == 1) {
        n = GEN_NODE(g, "LpNormalization", &a);
        wml_attr_set_int(n, "axis", gen_int(g, 0, (int64_t)a.rank - 1));
        if (gen_chance(g, 50)) wml_attr_set_int(n, "p", 1);
    } else n = GEN_NODE(g, "BatchNormalization", &a, &k[0], &k[1], &k[2], &k[3]);
    gen_like(g, n, &a, a.most * 8);
    return true;
}

static bool make_layer_norm(struct gen *g)
{
    struct gen_value a = gen_pick(g, GEN_F, 2, 4), s, b = {0};
    if (gen_count(&a) < 1) return false;
    size_t axis = gen_chance(g, 80) ? a.rank - 1 : a.rank - 2;
    if (gen_chance(g, 25)) {
        struct gen_value skip = gen_chance(g, 50) ? gen_op1(g, "Relu", a) : gen_const(g, WML_F32, a.rank, a.dim, -1, 1);
        a = gen_op2(g, "Add", a, skip);
    }
    s = gen_const(g, WML_F32, a.rank - axis, a.dim + axis, -1, 2);
    if (gen_chance(g, 70)) b = gen_const(g, WML_F32, a.rank - axis, a.dim + axis, -1, 1);
    struct wml_node *n = GEN_NODE(g, "LayerNormalization", &a, &s, &b);
    wml_attr_set_int(n, "axis", gen_chance(g, 50) ? (int64_t)axis : (int64_t)axis - (int64_t)a.rank);
    gen_like(g, n, &a, 20);
    return true;
}

static bool make_softmax(struct gen *g)
{
    struct gen_value a = gen_pick(g, GEN_F, 1, 5);
    struct wml_node *n = GEN_NODE(g, gen_chance(g, 75) ? "Softmax" : "LogSoftmax", &a);
    if (gen_chance(g, 75)) wml_attr_set_int(n, "axis", gen_int(g, -(int64_t)a.rank, (int64_t)a.rank - 1));
    gen_like(g, n, &a, wml_node_is(n, "Softmax") ? 1 : a.most * 2 + 8);
    return true;
}

static void after_matmul(struct gen *g, struct gen_value y)
{
    int64_t way = gen_int(g, 0, 5), c = y.dim[y.rank - 1];
    struct gen_value k;
    if (way < 2) k = gen_const(g, WML_F32, 1, &c, -1, 1);
    else k = gen_beside(g, &y, -1, 1);
    if (way < 4) gen_op2(g, way == 3 ? "Mul" : "Add", y, k);
    else if (way == 4) gen_op1(g, gen_chance(g, 50) ? "Relu" : "Tanh", y);
}

static bool make_matmul(struct gen *g)
{
    struct gen_value a = gen_pick(g, GEN_F, 1, 4), b;
    int64_t k = a.dim[a.rank - 1], n = gen_int(g, 1, 5), dim[GEN_RANK], out[GEN_RANK];
    size_t rank = gen_chance(g, 65) ? 2 : gen_chance(g, 10) ? 1 : WML_MAX(a.rank, 2), r = 0;
    if (a.rank == 1 && rank > 2) rank = 2;
    for (size_t i = 0; i < rank; i++) dim[i] = i + 2 < rank ? (gen_chance(g, 50) ? 1 : a.dim[i]) : 0;
    dim[rank - 1] = rank == 1 ? k : n;
    if (rank > 1) dim[rank - 2] = k;
    if (rank > 1 && gen_chance(g, 20)) { /* through a Transpose */
        int64_t perm[GEN_RANK];
        for (size_t i = 0; i < rank; i++) perm[i] = (int64_t)i;
        perm[rank - 1] = (int64_t)rank - 2;
        perm[rank - 2] = (int64_t)rank - 1;
        dim[rank - 2] = n;
        dim[rank - 1] = k;
        b = gen_transpose(g, gen_chance(g, 50) ? gen_source(g, WML_F32, rank, dim) : gen_const(g, WML_F32, rank, dim, -1, 1), perm);
    } else {
        b = gen_chance(g, 20) ? gen_source(g, WML_F32, rank, dim) : gen_const(g, WML_F32, rank, dim, -1, 1);
    }
    for (size_t i = 0; i + 1 < a.rank; i++) out[r++] = a.dim[i];
    if (rank > 1) out[r++] = n;
    struct gen_value y = gen_out(g, GEN_NODE(g, "MatMul", &a, &b), WML_F32, r, out, a.most * 2 * (double)WML_MAX(k, 1));
    if (r && gen_chance(g, 65)) after_matmul(g, y);
    return true;
}

static bool make_gemm(struct gen *g)
{
    struct gen_value a = gen_pick(g, GEN_F, 2, 2), b, c = {0};
    bool ta = gen_chance(g, 25), tb = gen_chance(g, 40);
    int64_t m = a.dim[ta], k = a.dim[!ta], n = gen_int(g, 1, 5), bd[2] = {tb ? n : k, tb ? k : n}, dim[2] = {m, n};
    b = gen_chance(g, 15) ? gen_source(g, WML_F32, 2, bd) : gen_const(g, WML_F32, 2, bd, -1, 1);
    struct gen_value like = {.t = WML_F32, .rank = 2, .dim = {m, n}};
    if (gen_chance(g, 60)) c = gen_beside(g, &like, -1, 1);
    struct wml_node *node = GEN_NODE(g, "Gemm", &a, &b, &c);
    if (ta) wml_attr_set_int(node, "transA", 1);
    if (tb) wml_attr_set_int(node, "transB", 1);
    if (gen_chance(g, 25)) wml_attr_set_float(node, "alpha", 0.5f);
    if (gen_chance(g, 25)) wml_attr_set_float(node, "beta", gen_chance(g, 30) ? 0 : 2);
    struct gen_value y = gen_out(g, node, WML_F32, 2, dim, (a.most + 1) * 2 * (double)WML_MAX(k, 1));
    if (gen_chance(g, 60)) after_matmul(g, y);
    return true;
}

static bool make_dropout(struct gen *g)
{
    struct gen_value a = gen_pick(g, GEN_F, 1, 4);
    struct wml_node *n = GEN_NODE(g, "Dropout", &a);
    if (g->opset < 12 && gen_chance(g, 50)) wml_attr_set_float(n, "ratio", 0.3f);
    struct gen_value ratio;
    if (g->opset >= 12 && gen_chance(g, 40)) {
        ratio = gen_fill(g, WML_F32, 0, NULL, &(double){0.3});
        wml_node_add_input(n, ratio.v);
        if (ratio.v->def) wml_node_move(ratio.v->def, n);
    }
    gen_like(g, n, &a, a.most);
    if (gen_chance(g, 25)) gen_out(g, n, WML_BOOL, a.rank, a.dim, 1);
    return true;
}

static bool make_resize(struct gen *g)
{
    struct gen_value a = image(g), roi = {0}, s;
    if (a.rank != 4 || gen_count(&a) < 1) return false;
    double times[4] = {1, 1, gen_chance(g, 20) ? 1 : 2, gen_chance(g, 20) ? 1 : 2};
    int64_t four = 4, none = 0, dim[4] = {a.dim[0], a.dim[1], a.dim[2] * (int64_t)times[2], a.dim[3] * (int64_t)times[3]};
    if (g->opset < 13) roi = gen_fill(g, WML_F32, 1, &none, times);
    s = gen_fill(g, WML_F32, 1, &four, times);
    struct wml_node *n = GEN_NODE(g, "Resize", &a, &roi, &s);
    bool nearest = gen_chance(g, 60);
    wml_attr_set_str(n, "mode", nearest ? WML_STR("nearest") : WML_STR("linear"));
    if (gen_chance(g, 50)) wml_attr_set_str(n, "coordinate_transformation_mode", WML_STR("asymmetric"));
    if (nearest && gen_chance(g, 50)) wml_attr_set_str(n, "nearest_mode", WML_STR("floor"));
    gen_out(g, n, WML_F32, 4, dim, a.most);
    return true;
}

static bool make_einsum(struct gen *g)
{
    struct gen_value a = gen_pick(g, GEN_F, 2, 2);
    int64_t bd[2] = {a.dim[1], gen_int(g, 1, 4)}, dim[2] = {a.dim[0], bd[1]};
    struct gen_value b = gen_const(g, WML_F32, 2, bd, -1, 1);
    struct wml_node *n = GEN_NODE(g, "Einsum", &a, &b);
    wml_attr_set_str(n, "equation", WML_STR("ij,jk->ik"));
    gen_out(g, n, WML_F32, 2, dim, a.most * (double)(a.dim[1] + 1));
    return true;
}

/* GRU and LSTM with their many optional inputs and outputs. */
static bool make_recurrent(struct gen *g)
{
    struct gen_value a = gen_pick(g, GEN_F, 3, 3), bias = {0}, none = {0}, h = {0};
    bool lstm = gen_chance(g, 50);
    int64_t gates = lstm ? 4 : 3, hidden = 2, wd[3] = {1, gates * hidden, a.dim[2]}, rd[3] = {1, gates * hidden, hidden};
    int64_t bd[2] = {1, 2 * gates * hidden}, hd[3] = {1, a.dim[1], hidden}, yd[4] = {a.dim[0], 1, a.dim[1], hidden};
    if (gen_count(&a) < 1) return false;
    struct gen_value w = gen_const(g, WML_F32, 3, wd, -1, 1), r = gen_const(g, WML_F32, 3, rd, -1, 1);
    if (gen_chance(g, 60)) bias = gen_const(g, WML_F32, 2, bd, -1, 1);
    if (gen_chance(g, 40)) h = gen_const(g, WML_F32, 3, hd, -1, 1);
    struct wml_node *n = GEN_NODE(g, lstm ? "LSTM" : "GRU", &a, &w, &r, &bias, &none, &h);
    wml_attr_set_int(n, "hidden_size", hidden);
    gen_out(g, n, WML_F32, 4, yd, 1);
    if (gen_chance(g, 60)) gen_out(g, n, WML_F32, 3, hd, 1);
    return true;
}

const struct gen_op gen_net_ops[] = {
    {"conv", make_conv, 26, 0}, {"conv transpose", make_conv_transpose, 3, 0}, {"pool", make_pool, 7, 0},
    {"global pool", make_global_pool, 3, 0}, {"norm", make_norm, 8, 0}, {"layer norm", make_layer_norm, 5, 17},
    {"softmax", make_softmax, 8, 0}, {"matmul", make_matmul, 18, 0}, {"gemm", make_gemm, 12, 0}, {"dropout", make_dropout, 4, 0},
    {"resize", make_resize, 4, 0}, {"einsum", make_einsum, 2, 12}, {"recurrent", make_recurrent, 2, 0},
};
const size_t n_gen_net_ops = WML_COUNT(gen_net_ops);
