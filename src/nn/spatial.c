/* nn/spatial.c - operators with windows over [n,c,...], and resizing. */
#include "nn/ops.h"

static int64_t or_one(int64_t v)
{
    return v ? v : 1;
}

static void window_attrs(struct wml_node *n, const struct wml_nn_window *w, size_t axes, const int64_t *kernel)
{
    int64_t pads[2 * WML_NN_MAX_RANK], strides[WML_NN_MAX_RANK], dilations[WML_NN_MAX_RANK];
    for (size_t i = 0; i < axes; i++) {
        pads[i] = w->pad;
        pads[axes + i] = w->uneven ? w->pad_end : w->pad;
        strides[i] = or_one(i + 1 == axes && w->last_stride ? w->last_stride : w->stride);
        dilations[i] = or_one(w->dilation);
    }
    wml_attr_set_ints(n, "kernel_shape", axes, kernel);
    wml_attr_set_ints(n, "strides", axes, strides);
    wml_attr_set_ints(n, "pads", 2 * axes, pads);
    if (or_one(w->dilation) != 1) wml_attr_set_ints(n, "dilations", axes, dilations);
}

/* The size after a window of `kernel` went over `in`. */
static struct wml_axis slid(struct wml_axis in, int64_t kernel, const struct wml_nn_window *w)
{
    if (in.size < 0) {
        const bool same = or_one(w->stride) == 1 && or_one(w->dilation) * (kernel - 1) == w->pad + (w->uneven ? w->pad_end : w->pad);
        return same ? in : (struct wml_axis){.size = -1};
    }
    const int64_t room = in.size + w->pad + (w->uneven ? w->pad_end : w->pad) - or_one(w->dilation) * (kernel - 1) - 1;
    const int64_t stride = or_one(w->stride);
    return (struct wml_axis){.size = room < 0 ? 0 : (w->ceil ? (room + stride - 1) / stride : room / stride) + 1};
}

static bool too_small(struct wml_nn *b, const struct wml_nn_shape *s)
{
    for (size_t i = 2; i < s->rank; i++)
        if (s->at[i].size == 0) {
            wml_nn_fail(b, WML_E_UNSUPPORTED, "the input is too small: nothing is left of it at '%.*s'",
                        WML_ARG(b->scope[b->depth ? b->depth - 1 : 0].path));
            wml_nn_hint(b, "give larger sizes with --shape-config");
            return true;
        }
    return false;
}

struct wml_value *wml_nn_conv_node(struct wml_nn *b, struct wml_value *x, struct wml_value *weight, struct wml_value *bias,
                                   const struct wml_nn_window *w)
{
    if (b->failed || !x || !weight) return NULL;
    const struct wml_nn_shape s = wml_nn_shape(x), sw = wml_nn_shape(weight);
    struct wml_nn_shape out = {.rank = s.rank, .at = {s.at[0], sw.at[0]}};
    int64_t kernel[WML_NN_MAX_RANK];
    for (size_t i = 2; i < s.rank; i++) {
        kernel[i - 2] = sw.at[i].size;
        struct wml_nn_window along = *w;
        if (i + 1 == s.rank && w->last_stride) along.stride = w->last_stride;
        out.at[i] = slid(s.at[i], sw.at[i].size, &along);
    }
    if (s.at[1].size >= 0 && s.at[1].size != sw.at[1].size * or_one(w->groups))
        return wml_nn_fail(b, WML_E_FORMAT, "'%.*s' takes %lld channels, but gets %lld", WML_ARG(weight->name),
                           (long long)(sw.at[1].size * or_one(w->groups)), (long long)s.at[1].size);
    if (too_small(b, &out)) return NULL;
    struct wml_node *n = wml_nn_node(b, "", "Conv", bias ? 3 : 2, (struct wml_value *[]){x, weight, bias});
    window_attrs(n, w, s.rank - 2, kernel);
    if (or_one(w->groups) != 1) wml_attr_set_int(n, "group", w->groups);
    return wml_nn_out(b, n, WML_F32, &out);
}

struct wml_value *wml_nn_conv_transpose_node(struct wml_nn *b, struct wml_value *x, struct wml_value *weight,
                                             struct wml_value *bias, const struct wml_nn_window *w)
{
    if (b->failed || !x || !weight) return NULL;
    const struct wml_nn_shape s = wml_nn_shape(x), sw = wml_nn_shape(weight);
    struct wml_nn_shape out = {.rank = s.rank, .at = {s.at[0], {.size = sw.at[1].size * or_one(w->groups)}}};
    int64_t kernel[WML_NN_MAX_RANK];
    for (size_t i = 2; i < s.rank; i++) {
        kernel[i - 2] = sw.at[i].size;
        const int64_t in = s.at[i].size, pads = w->pad + (w->uneven ? w->pad_end : w->pad);
        out.at[i] = (struct wml_axis){
            .size = in >= 0 ? (in - 1) * or_one(w->stride) + or_one(w->dilation) * (kernel[i - 2] - 1) + 1 - pads : -1};
    }
    struct wml_node *n = wml_nn_node(b, "", "ConvTranspose", bias ? 3 : 2, (struct wml_value *[]){x, weight, bias});
    window_attrs(n, w, s.rank - 2, kernel);
    if (or_one(w->groups) != 1) wml_attr_set_int(n, "group", w->groups);
    return wml_nn_out(b, n, WML_F32, &out);
}

struct wml_value *wml_nn_pool(struct wml_nn *b, const char *op, struct wml_value *x, const struct wml_nn_window *w)
{
    if (b->failed || !x) return NULL;
    struct wml_nn_shape out = wml_nn_shape(x);
    int64_t kernel[WML_NN_MAX_RANK];
    for (size_t i = 2; i < out.rank; i++) {
        kernel[i - 2] = or_one(w->kernel);
        out.at[i] = slid(out.at[i], or_one(w->kernel), w);
    }
    if (too_small(b, &out)) return NULL;
    struct wml_node *n = wml_nn_node(b, "", op, 1, &x);
    window_attrs(n, w, out.rank - 2, kernel);
    if (w->ceil) wml_attr_set_int(n, "ceil_mode", 1);
    return wml_nn_out(b, n, WML_F32, &out);
}

struct wml_value *wml_nn_grid_sample(struct wml_nn *b, struct wml_value *x, struct wml_value *grid, bool nearest)
{
    if (b->failed || !x || !grid) return NULL;
    struct wml_nn_shape s = wml_nn_shape(x);
    s.at[2] = wml_nn_axis(grid, 1);
    s.at[3] = wml_nn_axis(grid, 2);
    struct wml_node *n = wml_nn_node(b, "", "GridSample", 2, (struct wml_value *[]){x, grid});
    const struct wml_str between = b->opset < 20 ? WML_STR("bilinear") : WML_STR("linear");
    wml_attr_set_str(n, "mode", nearest ? WML_STR("nearest") : between);
    wml_attr_set_str(n, "padding_mode", nearest ? WML_STR("border") : WML_STR("zeros"));
    return wml_nn_out(b, n, WML_F32, &s);
}

struct wml_value *wml_nn_global_mean(struct wml_nn *b, struct wml_value *x)
{
    if (b->failed || !x) return NULL;
    struct wml_nn_shape s = wml_nn_shape(x);
    for (size_t i = 2; i < s.rank; i++) s.at[i] = (struct wml_axis){.size = 1};
    return wml_nn_out(b, wml_nn_node(b, "", "GlobalAveragePool", 1, &x), WML_F32, &s);
}

/* ---------------------------------------------------------------- resizing */

static struct wml_value *resize_node(struct wml_nn *b, struct wml_value *x, const char *mode, bool corners, struct wml_value *scales,
                                     struct wml_value *sizes, const struct wml_nn_shape *out)
{
    struct wml_node *n = wml_nn_node(b, "", "Resize", sizes ? 4 : 3, (struct wml_value *[]){x, NULL, scales, sizes});
    const bool nearest = strcmp(mode, "nearest") == 0;
    wml_attr_set_str(n, "mode", wml_str(mode));
    wml_attr_set_str(n, "coordinate_transformation_mode", nearest  ? WML_STR("asymmetric") :
                                                          corners ? WML_STR("align_corners") : WML_STR("half_pixel"));
    if (nearest) wml_attr_set_str(n, "nearest_mode", WML_STR("floor"));
    if (strcmp(mode, "cubic") == 0) wml_attr_set_float(n, "cubic_coeff_a", -0.75f);
    return wml_nn_out(b, n, WML_F32, out);
}

struct wml_value *wml_nn_resize(struct wml_nn *b, struct wml_value *x, const char *mode, bool corners, int64_t height, int64_t width)
{
    if (b->failed || !x) return NULL;
    struct wml_nn_shape s = wml_nn_shape(x);
    s.at[2] = (struct wml_axis){.size = height};
    s.at[3] = (struct wml_axis){.size = width};
    const int64_t hw[2] = {height, width};
    struct wml_value *sizes = NULL;
    if (s.at[0].size >= 0 && s.at[1].size >= 0) {
        sizes = wml_nn_ints(b, WML_DIMS(s.at[0].size, s.at[1].size, height, width));
    } else {
        sizes = wml_nn_concat(b, 0, WML_VALUES(wml_nn_extent(b, x, 0), wml_nn_extent(b, x, 1), wml_nn_ints(b, 2, hw)));
    }
    return resize_node(b, x, mode, corners, NULL, sizes, &s);
}

struct wml_value *wml_nn_resize_by(struct wml_nn *b, struct wml_value *x, const char *mode, bool corners, double factor)
{
    if (b->failed || !x) return NULL;
    struct wml_nn_shape s = wml_nn_shape(x);
    for (size_t i = 2; i < s.rank; i++)
        s.at[i] = (struct wml_axis){.size = s.at[i].size >= 0 ? (int64_t)((double)s.at[i].size * factor) : -1};
    const float scales[4] = {1, 1, (float)factor, (float)factor};
    const int64_t four = 4;
    return resize_node(b, x, mode, corners, wml_nn_const(b, "scales", WML_F32, 1, &four, scales), NULL, &s);
}

struct wml_value *wml_nn_pixel_shuffle(struct wml_nn *b, struct wml_value *x, int64_t r)
{
    if (b->failed || !x) return NULL;
    struct wml_nn_shape s = wml_nn_shape(x);
    for (size_t i = 1; i < 4; i++)
        if (s.at[i].size >= 0) s.at[i].size = i == 1 ? s.at[i].size / (r * r) : s.at[i].size * r;
        else s.at[i].symbol = WML_NO_STR;
    struct wml_node *n = wml_nn_node(b, "", "DepthToSpace", 1, &x);
    wml_attr_set_int(n, "blocksize", r);
    wml_attr_set_str(n, "mode", WML_STR("CRD"));
    return wml_nn_out(b, n, WML_F32, &s);
}
