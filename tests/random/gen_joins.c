/* Neighbours that passes join: pads before windows, affine chains behind convolutions, slices and joins that undo
 * each other, gathers that tile an axis, normalisation behind products. */
#include "gen.h"

static struct gen_value image(struct gen *g)
{
    struct gen_value a;
    for (int i = 0; i < 3; i++)
        if (gen_find(g, GEN_F, 4, 4, &a) && a.dim[1] <= 8 && a.dim[2] >= 2 && a.dim[3] >= 2 && a.dim[2] < 12 && a.dim[3] < 12 && a.dim[0] && a.dim[1]) return a;
    int64_t dim[4];
    dim[0] = gen_int(g, 1, 2);
    dim[1] = gen_int(g, 1, 4);
    dim[2] = gen_int(g, 2, 6);
    dim[3] = gen_int(g, 2, 6);
    return gen_source(g, WML_F32, 4, dim);
}

static struct gen_value conv(struct gen *g, struct gen_value a, int64_t out, int64_t kernel)
{
    int64_t wd[4] = {out, a.dim[1], kernel, kernel}, dim[4] = {a.dim[0], out, a.dim[2] - kernel + 1, a.dim[3] - kernel + 1};
    struct gen_value w = gen_const(g, WML_F32, 4, wd, -1, 1), b = {0};
    if (gen_chance(g, 50)) b = gen_const(g, WML_F32, 1, &out, -1, 1);
    return gen_out(g, GEN_NODE(g, "Conv", &a, &w, &b), WML_F32, 4, dim, a.most * (double)(a.dim[1] * kernel * kernel) + 1);
}

static struct gen_value batch_norm(struct gen *g, struct gen_value a)
{
    struct gen_value k[4];
    int64_t c = a.dim[1];
    for (int i = 0; i < 4; i++) k[i] = gen_const(g, WML_F32, 1, &c, i == 3 ? 0.25 : -1, 2);
    return gen_like(g, GEN_NODE(g, "BatchNormalization", &a, &k[0], &k[1], &k[2], &k[3]), &a, a.most * 8);
}

/* Pad, then a window: only zeros may go into a Conv's pads, nothing into a pool that would count them. */
static bool make_pad_window(struct gen *g)
{
    struct gen_value a = image(g), v = {0}, y;
    int64_t pads[8] = {0}, dim[4], kernel[2] = {2, 2}, more[4] = {0};
    for (int i = 2; i < 4; i++) {
        pads[i] = gen_int(g, 0, 1);
        pads[i + 4] = gen_int(g, 0, 2);
    }
    if (gen_chance(g, 8)) pads[1] = 1;
    if (gen_chance(g, 8)) pads[2] = -1;
    for (int i = 0; i < 4; i++) dim[i] = a.dim[i] + pads[i] + pads[i + 4];
    if (dim[2] < 2 || dim[3] < 2) return false;
    struct gen_value p = gen_ints(g, 8, pads);
    if (gen_chance(g, 40)) v = gen_fill(g, WML_F32, 0, NULL, &(double){gen_chance(g, 75) ? 0 : 1});
    struct wml_node *n = GEN_NODE(g, "Pad", &a, &p, &v);
    if (gen_chance(g, 10) && !v.v) wml_attr_set_str(n, "mode", WML_STR("edge"));
    y = gen_out(g, n, WML_F32, 4, dim, a.most + 1);
    int64_t way = gen_int(g, 0, 3);
    if (way < 2) y = conv(g, y, gen_int(g, 1, 3), 2);
    else {
        n = GEN_NODE(g, way == 2 ? "MaxPool" : "AveragePool", &y);
        wml_attr_set_ints(n, "kernel_shape", 2, kernel);
        if (way == 3 && gen_chance(g, 60)) wml_attr_set_int(n, "count_include_pad", 1);
        dim[2]--;
        dim[3]--;
        y = gen_out(g, n, WML_F32, 4, dim, y.most);
    }
    if (gen_chance(g, 30) && y.v->def) {
        more[0] = more[3] = 1; /* the window has pads of its own as well */
        if (y.dim[2] && y.dim[3]) {
            dim[0] = y.dim[0];
            dim[1] = y.dim[1];
            dim[2] = y.dim[2] + 1;
            dim[3] = y.dim[3] + 1;
            wml_attr_set_ints(y.v->def, "pads", 4, more);
            struct gen_value *last = &g->pool[g->n - 1];
            memcpy(last->dim, dim, sizeof dim);
        }
    }
    return true;
}

/* Conv, Add of a constant, BatchNormalization; per-channel products behind views and splits of the channels. */
static bool make_conv_chain(struct gen *g)
{
    struct gen_value y = conv(g, image(g), 2 * gen_int(g, 1, 2), gen_int(g, 1, 2)), k, part[2];
    int64_t way = gen_int(g, 0, 4), c = y.dim[1], one[4] = {1, c, 1, 1}, half[4] = {y.dim[0], c / 2, y.dim[2], y.dim[3]};
    int64_t flat[3] = {y.dim[0], c, y.dim[2] * y.dim[3]}, along[2];
    if (way == 0) {
        bool whole = gen_chance(g, 70);
        k = gen_const(g, WML_F32, whole ? 4 : 3, whole ? one : one + 1, -1, 1);
        batch_norm(g, gen_op2(g, "Add", y, k));
    } else if (way == 1) {
        y = gen_reshape(g, y, 3, flat);
        along[0] = c;
        along[1] = 1;
        y = gen_op2(g, gen_chance(g, 50) ? "Mul" : "Add", y, gen_const(g, WML_F32, 2, along, -1, 2));
        if (gen_chance(g, 50)) gen_op2(g, gen_chance(g, 50) ? "Mul" : "Add", y, gen_const(g, WML_F32, 2, along, -1, 2));
    } else if (way == 2) {
        struct wml_node *n;
        if (g->opset >= 13) {
            k = gen_ints(g, 2, (const int64_t[]){c / 2, c / 2});
            n = GEN_NODE(g, "Split", &y, &k);
        } else n = GEN_NODE(g, "Split", &y);
        wml_attr_set_int(n, "axis", 1);
        one[1] = c / 2;
        for (int i = 0; i < 2; i++) part[i] = gen_out(g, n, WML_F32, 4, half, y.most);
        for (int i = 0; i < 2; i++)
            if (gen_chance(g, 70)) gen_op2(g, i ? "Mul" : "Add", part[i], gen_const(g, WML_F32, 4, one, -1, 2));
        if (gen_chance(g, 15)) gen_op1(g, "Relu", y);
    } else if (way == 3) {
        y = batch_norm(g, y);
        y = gen_op2(g, "Mul", y, gen_const(g, WML_F32, 4, one, -1, 2));
        batch_norm(g, gen_op2(g, "Add", y, gen_scalar(g, WML_F32, 0.5)));
    } else {
        k = gen_scalar(g, WML_F32, 0.5);
        conv(g, gen_op2(g, "Mul", y, k), 2, 1);
    }
    return true;
}

static struct gen_value slice(struct gen *g, struct gen_value a, int64_t axis, int64_t from, int64_t to)
{
    int64_t dim[GEN_RANK];
    memcpy(dim, a.dim, sizeof dim);
    dim[axis] = to - from;
    struct gen_value s = gen_ints(g, 1, &from), e = gen_ints(g, 1, &to), x = gen_ints(g, 1, &axis);
    return gen_out(g, GEN_NODE(g, "Slice", &a, &s, &e, &x), a.t, a.rank, dim, a.most);
}

static struct gen_value concat(struct gen *g, const struct gen_value *part, size_t n, int64_t axis)
{
    struct wml_node *node = wml_graph_append(g->g, "", "Concat");
    struct gen_value y = part[0];
    y.dim[axis] = 0;
    for (size_t i = 0; i < n; i++) {
        wml_node_add_input(node, part[i].v);
        y.dim[axis] += part[i].dim[axis];
        y.most = part[i].most > y.most ? part[i].most : y.most;
    }
    wml_attr_set_int(node, "axis", gen_chance(g, 50) ? axis : axis - (int64_t)y.rank);
    return gen_out(g, node, y.t, y.rank, y.dim, y.most);
}

/* Parts of an axis that are joined again, in order or not, and parts of a join that are cut out again. */
static bool make_cut_and_join(struct gen *g)
{
    struct gen_value a = gen_pick(g, GEN_F | GEN_I, 1, 4), part[3];
    int64_t axis = gen_int(g, 0, (int64_t)a.rank - 1), d = a.dim[axis];
    if (gen_chance(g, 50)) {
        if (d < 2) return false;
        int64_t cut = gen_int(g, 1, d - 1);
        part[0] = slice(g, a, axis, 0, cut);
        part[1] = slice(g, a, axis, cut, d);
        part[2] = part[0];
        if (gen_chance(g, 30)) part[1] = gen_op1(g, "Identity", part[1]);
        if (gen_chance(g, 25)) part[0] = part[1], part[1] = part[2];
        concat(g, part, gen_chance(g, 85) ? 2 : 3, axis);
        return true;
    }
    if (d < 1) return false;
    int64_t at = 0;
    for (int i = 0; i < 3; i++) part[i] = i && gen_chance(g, 60) ? gen_op1(g, "Neg", a) : a;
    struct gen_value y = concat(g, part, 3, axis);
    for (int i = 0; i < 3; i++) {
        int64_t from = at, to = at + d;
        if (gen_chance(g, 10) && to < 3 * d) to++;
        if (gen_chance(g, 10) && from > 0) from--;
        if (gen_chance(g, 70)) slice(g, y, axis, from, to);
        at += d;
    }
    return true;
}

/* Every index of an axis gathered alone. */
static bool make_single_gathers(struct gen *g)
{
    struct gen_value a = gen_pick(g, GEN_F, 2, 4);
    int64_t axis = gen_int(g, 0, (int64_t)a.rank - 1), d = a.dim[axis], dim[GEN_RANK];
    bool keep = gen_chance(g, 40), missing = gen_chance(g, 15);
    if (d < 2 || d > 5) return false;
    for (int64_t i = missing; i < d; i++) {
        size_t rank = 0, ir = keep;
        double at = (double)(gen_chance(g, 15) ? i - d : i);
        struct gen_value k = gen_fill(g, WML_I64, ir, (const int64_t[]){1}, &at);
        for (size_t x = 0; x < a.rank; x++)
            if ((int64_t)x != axis || keep) dim[rank++] = (int64_t)x == axis ? 1 : a.dim[x];
        struct wml_node *n = GEN_NODE(g, "Gather", &a, &k);
        wml_attr_set_int(n, "axis", axis);
        gen_out(g, n, a.t, rank, dim, a.most);
    }
    return true;
}

static bool make_product_norm(struct gen *g)
{
    struct gen_value a = gen_pick_small(g, GEN_F, 2, 2, 100), y;
    int64_t wd[2] = {a.dim[1], gen_int(g, 1, 4)}, dim[2] = {a.dim[0], wd[1]};
    struct gen_value w = gen_const(g, WML_F32, 2, wd, -1, 1);
    if (gen_count(&a) < 1) return false;
    y = gen_out(g, GEN_NODE(g, gen_chance(g, 50) ? "MatMul" : "Gemm", &a, &w), WML_F32, 2, dim, a.most * 8);
    if (gen_chance(g, 30)) y = gen_op2(g, "Add", y, gen_const(g, WML_F32, 1, &wd[1], -1, 1));
    batch_norm(g, y);
    return true;
}

/* Add and normalisation, with a bias on one side. */
static bool make_skip_norm(struct gen *g)
{
    int64_t dim[3];
    for (int i = 0; i < 3; i++) dim[i] = gen_int(g, 1, 4);
    struct gen_value a, b, s, t = {0};
    if (!gen_find(g, GEN_F, 3, 3, &a) || gen_count(&a) < 1) a = gen_source(g, WML_F32, 3, dim);
    int64_t last = a.dim[2];
    b = gen_chance(g, 50) ? gen_op1(g, "Relu", a) : gen_const(g, WML_F32, gen_chance(g, 85) ? 3 : 2, a.dim + 0, -1, 1);
    if (b.rank == 2) b = gen_beside(g, &a, -1, 1);
    if (gen_chance(g, 50)) b = gen_op2(g, "Add", b, gen_const(g, WML_F32, 1, &last, -1, 1));
    struct gen_value fits;
    if (!gen_broadcast(&a, &b, &fits) || fits.rank != 3 || memcmp(fits.dim, a.dim, 3 * sizeof *a.dim)) return true;
    a = gen_op2(g, "Add", a, b);
    if (gen_chance(g, 15)) gen_op1(g, "Neg", a);
    s = gen_const(g, WML_F32, 1, &last, -1, 2);
    if (gen_chance(g, 70)) t = gen_const(g, WML_F32, 1, &last, -1, 1);
    struct wml_node *n = GEN_NODE(g, "LayerNormalization", &a, &s, &t);
    wml_attr_set_int(n, "axis", -1);
    gen_like(g, n, &a, 20);
    return true;
}

static bool make_masked_softmax(struct gen *g)
{
    struct gen_value a = gen_pick_small(g, GEN_F, 2, 4, 100);
    struct gen_value like = a, mask, fill;
    like.t = WML_BOOL;
    mask = gen_beside(g, &like, 0, 1);
    if (gen_chance(g, 50)) mask = gen_op1(g, "Not", mask);
    fill = gen_scalar(g, WML_F32, gen_chance(g, 50) ? -1e9 : -3.4028234663852886e38);
    if (fill.rank > a.rank) return true;
    struct wml_node *n = gen_chance(g, 50) ? GEN_NODE(g, "Where", &mask, &fill, &a) : GEN_NODE(g, "Where", &mask, &a, &fill);
    a = gen_like(g, n, &a, 1e9);
    n = GEN_NODE(g, "Softmax", &a);
    wml_attr_set_int(n, "axis", -1);
    gen_like(g, n, &a, 1);
    return true;
}

const struct gen_op gen_join_ops[] = {
    {"pad window", make_pad_window, 5, 0},        {"conv chain", make_conv_chain, 7, 0},      {"cut and join", make_cut_and_join, 7, 0},
    {"single gathers", make_single_gathers, 3, 0}, {"product norm", make_product_norm, 3, 0}, {"skip norm", make_skip_norm, 4, 17},
    {"masked softmax", make_masked_softmax, 2, 0},
};
const size_t n_gen_join_ops = WML_COUNT(gen_join_ops);
