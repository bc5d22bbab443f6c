/* Bilinear GridSample with zero padding written out: pixel coordinates, the four corners with their weights, which
 * are zero outside the image, GatherND of each, and the weighted sum. In float32, also for half floats. */
#include "passes/pattern.h"

struct grid {
    int64_t c, h, w, oh, ow;
    bool half, align;
    struct wml_match *m;
};

static struct wml_value *one(const struct grid *g, const char *op, struct wml_value *a)
{
    return wml_match_add(g->m, op, "gridsample", 1, &a);
}

static struct wml_value *two(const struct grid *g, const char *op, struct wml_value *a, struct wml_value *b)
{
    struct wml_value *in[2] = {a, b};
    return wml_match_add(g->m, op, "gridsample", 2, in);
}

static struct wml_value *num(const struct grid *g, double v)
{
    return wml_match_scalar(g->m, "gridsample_number", WML_F32, v);
}

static struct wml_value *reshape(const struct grid *g, struct wml_value *v, size_t n, const int64_t *dims)
{
    return two(g, "Reshape", v, wml_match_ints(g->m, "gridsample_shape", n, dims));
}

static struct wml_value *cast(const struct grid *g, struct wml_value *v, int dtype)
{
    struct wml_value *y = one(g, "Cast", v);
    wml_attr_set_int(y->def, "to", dtype);
    return y;
}

/* Pixel coordinate of one component, as [N, P]. */
static struct wml_value *coordinate(const struct grid *g, struct wml_value *grid, int64_t component, int64_t size)
{
    const int64_t flat[] = {-1, g->oh * g->ow};
    double scale = g->align ? (double)(size - 1) / 2 : (double)size / 2;
    struct wml_value *index = wml_match_const(g->m, "gridsample_part",
                                              wml_tensor_copy(g->m->r->model, WML_I64, 0, NULL, &component, sizeof component, NULL));
    struct wml_value *v = two(g, "Gather", grid, index);
    wml_attr_set_int(v->def, "axis", 3);
    v = reshape(g, v, 2, flat);
    return two(g, "Add", two(g, "Mul", v, num(g, scale)), num(g, (double)(size - 1) / 2));
}

/* One of the two pixels beside a coordinate, along one axis. */
struct side {
    struct wml_value *index, *weight;
};

/* Off the image, or where v is no number: the index of a pixel that exists, and no weight. */
static struct side side(const struct grid *g, struct wml_value *v, struct wml_value *weight, int64_t size)
{
    struct wml_value *zero = num(g, 0);
    struct wml_value *on = two(g, "And", two(g, "GreaterOrEqual", v, zero), two(g, "LessOrEqual", v, num(g, (double)(size - 1))));
    struct wml_value *in[3] = {on, v, zero};
    return (struct side){wml_match_add(g->m, "Where", "gridsample", 3, in), two(g, "Mul", weight, cast(g, on, WML_F32))};
}

/* The value of one corner times its weight, [N, P, C]. row: y's index times the width. */
static struct wml_value *corner(const struct grid *g, struct wml_value *data, struct side x, struct wml_value *row, struct side y)
{
    int64_t last = -1;
    struct wml_value *axes = wml_match_ints(g->m, "gridsample_axes", 1, &last);
    struct wml_value *index = two(g, "Unsqueeze", cast(g, two(g, "Add", row, x.index), WML_I64), axes);
    struct wml_value *v = two(g, "GatherND", data, index);
    wml_attr_set_int(v->def, "batch_dims", 1);
    return two(g, "Mul", v, two(g, "Unsqueeze", two(g, "Mul", x.weight, y.weight), axes));
}

static struct wml_value *sampled(const struct grid *g, struct wml_value *data, struct wml_value *grid)
{
    struct wml_value *at[2] = {coordinate(g, grid, 0, g->w), coordinate(g, grid, 1, g->h)}, *row[2], *one_v = num(g, 1);
    const int64_t size[2] = {g->w, g->h};
    struct side s[2][2]; /* of x and of y, the lower and the upper one */
    for (size_t i = 0; i < 2; i++) {
        struct wml_value *low = one(g, "Floor", at[i]), *upper = two(g, "Sub", at[i], low);
        s[i][0] = side(g, low, two(g, "Sub", one_v, upper), size[i]);
        s[i][1] = side(g, two(g, "Add", low, one_v), upper, size[i]);
    }
    for (size_t i = 0; i < 2; i++) {
        struct wml_value *start = two(g, "Mul", s[1][i].index, num(g, (double)g->w));
        row[i] = two(g, "Add", corner(g, data, s[0][0], start, s[1][i]), corner(g, data, s[0][1], start, s[1][i]));
    }
    return two(g, "Add", row[0], row[1]);
}

static bool read(struct wml_match *m, struct grid *g)
{
    struct wml_value *x = wml_match_value(m, "x"), *grid = wml_match_value(m, "grid");
    struct wml_str mode = wml_attr_str(m->root, "mode", WML_STR("bilinear"));
    *g = (struct grid){.m = m, .half = wml_value_elem(x) == WML_F16, .align = wml_attr_int(m->root, "align_corners", 0) != 0};
    if (wml_value_rank(x) != 4 || wml_value_rank(grid) != 4) return wml_match_refuse(m, "not of rank 4");
    if (wml_value_elem(x) != wml_value_elem(grid) || (wml_value_elem(x) != WML_F32 && !g->half))
        return wml_match_refuse(m, "neither float32 nor float16");
    if (!wml_str_is(mode, "bilinear") && !wml_str_is(mode, "linear")) return wml_match_refuse(m, "not bilinear");
    if (!wml_str_is(wml_attr_str(m->root, "padding_mode", WML_STR("zeros")), "zeros")) return wml_match_refuse(m, "not padded with zeros");
    g->c = wml_value_axis(x, 1).size, g->h = wml_value_axis(x, 2).size, g->w = wml_value_axis(x, 3).size;
    g->oh = wml_value_axis(grid, 1).size, g->ow = wml_value_axis(grid, 2).size;
    if (g->c <= 0 || g->h <= 0 || g->w <= 0 || g->oh <= 0 || g->ow <= 0) return wml_match_refuse(m, "channels or sizes are not fixed");
    return g->h * g->w < 1 << 24 || wml_match_refuse(m, "positions beyond what float32 counts");
}

static bool rewrite(struct wml_match *m)
{
    static const int64_t to_last[] = {0, 2, 3, 1}, to_first[] = {0, 3, 1, 2};
    struct grid g;
    if (!read(m, &g)) return false;
    struct wml_value *x = wml_match_value(m, "x"), *grid = wml_match_value(m, "grid");
    const int64_t data_shape[] = {-1, g.h * g.w, g.c}, out_shape[] = {-1, g.oh, g.ow, g.c};
    if (g.half) x = cast(&g, x, WML_F32), grid = cast(&g, grid, WML_F32);
    x = one(&g, "Transpose", x);
    wml_attr_set_ints(x->def, "perm", 4, to_last);
    struct wml_value *y = reshape(&g, sampled(&g, reshape(&g, x, 3, data_shape), grid), 4, out_shape);
    if (!g.half) {
        wml_attr_set_ints(wml_match_replace(m, "", "Transpose", 1, &y), "perm", 4, to_first);
        return true;
    }
    y = one(&g, "Transpose", y);
    wml_attr_set_ints(y->def, "perm", 4, to_first);
    wml_attr_set_int(wml_match_replace(m, "", "Cast", 1, &y), "to", WML_F16);
    return true;
}

static const struct wml_rule rules[] = {{"GridSample(x, grid)", rewrite, 0, 16}};

const struct wml_pass wml_pass_gridsample_to_gather = {
    .name = "gridsample-to-gather", .category = "rewrite", .pipe = "cgir_rewrite", .cgc = true, .rules = rules, .n_rules = WML_COUNT(rules),
    .summary = "Write bilinear GridSample out with GatherND",
};
