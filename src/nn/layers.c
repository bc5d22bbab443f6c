/* nn/layers.c - linear layers, tables, convolutions. */
#include <math.h>
#include "nn/layers.h"

static int64_t last_axis(struct wml_nn *b, const struct wml_value *x)
{
    return wml_nn_size(b, x, -1, "the last axis of a layer's input");
}

static struct wml_value *product(struct wml_nn *b, struct wml_value *x, const struct wml_weight *w, const struct wml_weight *bias)
{
    if (b->failed || !x || !w) return NULL;
    if (wml_nn_rank(x) == 2) return wml_nn_gemm(b, x, wml_nn_param_of(b, w), wml_nn_param_of(b, bias), true);
    struct wml_value *y = wml_nn_matmul(b, x, wml_nn_transposed(b, w));
    return bias ? wml_nn_add(b, wml_nn_param_of(b, bias), y) : y;
}

struct wml_value *wml_nn_linear(struct wml_nn *b, struct wml_value *x, const char *name, int64_t out)
{
    if (b->failed || !x) return NULL;
    wml_nn_enter_layer(b, "Linear", "%s", name);
    const struct wml_weight *w = wml_nn_need(b, "weight", WML_DIMS(out, last_axis(b, x)));
    const struct wml_weight *bias = w && wml_nn_has(b, "bias") ? wml_nn_need(b, "bias", WML_DIMS(w->dims[0])) : NULL;
    x = product(b, x, w, bias);
    wml_nn_leave(b);
    return x;
}

struct wml_value *wml_nn_linear_scaled(struct wml_nn *b, struct wml_value *x, const char *name, int64_t out, const float *scale)
{
    if (b->failed || !x || !scale) return NULL;
    wml_nn_enter_layer(b, "Linear", "%s", name);
    const struct wml_weight *w = wml_nn_need(b, "weight", WML_DIMS(out, last_axis(b, x)));
    struct wml_value *bias = w && wml_nn_has(b, "bias") ? wml_nn_scaled(b, wml_nn_need(b, "bias", WML_DIMS(out)), 0, scale) : NULL;
    if (wml_nn_rank(x) == 2) {
        x = wml_nn_gemm(b, x, wml_nn_scaled(b, w, 0, scale), bias, true);
    } else {
        x = wml_nn_matmul(b, x, wml_nn_scaled_transposed(b, w, scale));
        if (bias) x = wml_nn_add(b, bias, x);
    }
    wml_nn_leave(b);
    return x;
}

struct wml_value *wml_nn_linear_with(struct wml_nn *b, struct wml_value *x, const struct wml_weight *weight,
                                     const struct wml_weight *bias)
{
    return product(b, x, weight, bias);
}

struct wml_value *wml_nn_tied_head(struct wml_nn *b, struct wml_value *x, const char *name, const char *table, int64_t rows, bool tied)
{
    if (b->failed || !x) return NULL;
    const int64_t width = last_axis(b, x);
    wml_nn_enter_layer(b, "Linear", "%s", name);
    const bool own = wml_nn_has(b, "weight") && !(tied && wml_nn_has(b, table));
    const struct wml_weight *w = wml_nn_need(b, own ? "weight" : table, WML_DIMS(rows, width));
    x = product(b, x, w, wml_nn_has(b, "bias") ? wml_nn_need(b, "bias", WML_DIMS(rows)) : NULL);
    wml_nn_leave(b);
    return x;
}

struct wml_value *wml_nn_linear_in_out(struct wml_nn *b, struct wml_value *x, const char *name, int64_t out)
{
    if (b->failed || !x) return NULL;
    wml_nn_enter_layer(b, "Conv1D", "%s", name);
    struct wml_value *w = wml_nn_param(b, "weight", WML_DIMS(last_axis(b, x), out));
    struct wml_value *y = wml_nn_matmul(b, x, w);
    if (w && wml_nn_has(b, "bias")) y = wml_nn_add(b, wml_nn_param(b, "bias", WML_DIMS(wml_nn_axis(w, 1).size)), y);
    wml_nn_leave(b);
    return y;
}

struct wml_value *wml_nn_embedding(struct wml_nn *b, struct wml_value *ids, const char *name, int64_t rows, int64_t width)
{
    if (b->failed || !ids) return NULL;
    wml_nn_enter_layer(b, "Embedding", "%s", name);
    ids = wml_nn_gather(b, wml_nn_param(b, "weight", WML_DIMS(rows, width)), ids, 0);
    wml_nn_leave(b);
    return ids;
}

/* ------------------------------------------------------------ convolutions */

/* Of a sketch, whose weights say no size: what families that name none have, windows that touch, or that keep the size. */
static int64_t usual_kernel(const struct wml_nn_window *w)
{
    const int64_t stride = w->stride ? w->stride : 1, dilation = w->dilation ? w->dilation : 1;
    if (w->kernel) return w->kernel;
    return w->pad ? 2 * w->pad / dilation + 1 : stride;
}

/* A convolution's weight, checked against the rank of x. */
static const struct wml_weight *kernel_named(struct wml_nn *b, const struct wml_value *x, const char *name, int64_t first, int64_t second,
                                             const struct wml_nn_window *w)
{
    int64_t dims[WML_NN_MAX_RANK] = {first, second};
    const int64_t groups = w->groups ? w->groups : 1, from = wml_nn_axis(x, 1).size;
    for (size_t i = 2; i < WML_NN_MAX_RANK; i++) dims[i] = b->sketch ? usual_kernel(w) : -1;
    if (b->sketch && second < 0 && from > 0) dims[1] = from / groups;
    return wml_nn_need(b, name, wml_nn_rank(x), dims);
}

/* Where the window has a size, the kernel has the same along every axis. */
static const struct wml_weight *same_size(struct wml_nn *b, const struct wml_weight *k, const struct wml_nn_window *w)
{
    for (size_t i = 2; k && w->kernel && i < k->rank; i++)
        if (k->dims[i] != w->kernel)
            return wml_nn_fail(b, WML_E_FORMAT, "weight '%.*s' has a kernel of %lld, but the config makes it %lld", WML_ARG(k->name),
                               (long long)k->dims[i], (long long)w->kernel);
    return k;
}

/* The same as a constant, also where it is stored as direction and length; k: a weight of its shape. */
static struct wml_value *kernel(struct wml_nn *b, const struct wml_value *x, int64_t first, int64_t second,
                                const struct wml_nn_window *w, const struct wml_weight **k)
{
    static const char *const parts[][2] = {{"parametrizations.weight.original1", "parametrizations.weight.original0"}, {"weight_v", "weight_g"}};
    for (size_t i = 0; i < 2 && !wml_nn_has(b, "weight"); i++)
        if (wml_nn_has(b, parts[i][0])) {
            *k = kernel_named(b, x, parts[i][0], first, second, w);
            return wml_nn_normed(b, *k, kernel_named(b, x, parts[i][1], -1, -1, w));
        }
    *k = kernel_named(b, x, "weight", first, second, w);
    return wml_nn_param_of(b, *k);
}

static const char *conv_class(const struct wml_value *x)
{
    return wml_nn_rank(x) == 3 ? "Conv1d" : "Conv2d";
}

static struct wml_value *bias_of(struct wml_nn *b, const struct wml_weight *w, size_t axis, int64_t times)
{
    return w && wml_nn_has(b, "bias") ? wml_nn_param(b, "bias", WML_DIMS(w->dims[axis] * times)) : NULL;
}

struct wml_value *wml_nn_conv(struct wml_nn *b, struct wml_value *x, const char *name, int64_t out, const struct wml_nn_window *w)
{
    if (b->failed || !x) return NULL;
    wml_nn_enter_layer(b, conv_class(x), "%s", name);
    const struct wml_weight *k;
    struct wml_value *weight = kernel(b, x, out, -1, w, &k);
    k = same_size(b, k, w);
    x = wml_nn_conv_node(b, x, weight, bias_of(b, k, 0, 1), w);
    wml_nn_leave(b);
    return x;
}

struct wml_value *wml_nn_conv_transpose(struct wml_nn *b, struct wml_value *x, const char *name, int64_t out,
                                        const struct wml_nn_window *w)
{
    if (b->failed || !x) return NULL;
    const int64_t groups = w->groups ? w->groups : 1;
    wml_nn_enter_layer(b, "ConvTranspose2d", "%s", name);
    const struct wml_weight *k;
    struct wml_value *weight = kernel(b, x, wml_nn_size(b, x, 1, "the channels of an image"), out < 0 ? -1 : out / groups, w, &k);
    x = wml_nn_conv_transpose_node(b, x, weight, bias_of(b, k, 1, groups), w);
    wml_nn_leave(b);
    return x;
}

/* What a batch norm does in inference: y = scale x + shift, per channel. */
struct affine {
    float *scale, *shift;
    int64_t n;
};

static bool affine_of(struct wml_nn *b, const char *name, double eps, int64_t channels, struct affine *out)
{
    wml_nn_enter_layer(b, "BatchNorm2d", "%s", name);
    const struct wml_weight *mean = wml_nn_need(b, "running_mean", WML_DIMS(channels));
    if (mean) channels = mean->dims[0];
    const struct wml_weight *var = wml_nn_need(b, "running_var", WML_DIMS(channels));
    const struct wml_weight *gamma = wml_nn_has(b, "weight") ? wml_nn_need(b, "weight", WML_DIMS(channels)) : NULL;
    const struct wml_weight *beta = wml_nn_has(b, "bias") ? wml_nn_need(b, "bias", WML_DIMS(channels)) : NULL;
    const float *m = wml_nn_read(b, mean), *v = wml_nn_read(b, var), *g = wml_nn_read(b, gamma), *a = wml_nn_read(b, beta);
    wml_nn_find(b, "num_batches_tracked");
    wml_nn_leave(b);
    if (b->failed) return false;
    out->n = mean->dims[0];
    out->scale = wml_nn_room(b, "batch norm", sizeof *out->scale, WML_DIMS(out->n));
    out->shift = wml_nn_room(b, "batch norm", sizeof *out->shift, WML_DIMS(out->n));
    if (!out->scale || !out->shift) return false;
    for (int64_t i = 0; i < out->n; i++) {
        const double s = (g ? g[i] : 1.0) / sqrt((double)v[i] + eps);
        out->scale[i] = (float)s;
        out->shift[i] = (float)((a ? a[i] : 0.0) - m[i] * s);
    }
    return true;
}

struct wml_value *wml_nn_conv_bn(struct wml_nn *b, struct wml_value *x, const char *conv, const char *bn, double eps, int64_t out,
                                 const struct wml_nn_window *w)
{
    if (b->failed || !x) return NULL;
    struct affine f;
    if (!affine_of(b, bn, eps, out, &f)) return NULL;
    wml_nn_enter_layer(b, conv_class(x), "%s", conv);
    const struct wml_weight *k = kernel_named(b, x, "weight", f.n, -1, w);
    const struct wml_weight *bias = k && wml_nn_has(b, "bias") ? wml_nn_need(b, "bias", WML_DIMS(f.n)) : NULL;
    const float *old = wml_nn_read(b, bias);
    if (old)
        for (int64_t i = 0; i < f.n; i++) f.shift[i] += f.scale[i] * old[i];
    x = wml_nn_conv_node(b, x, wml_nn_scaled(b, k, 0, f.scale), wml_nn_const(b, "bias.folded", WML_F32, 1, &f.n, f.shift), w);
    wml_nn_leave(b);
    return x;
}

/* sum [out, in, side, side] += the kernel `conv` at its middle, times the scale of its norm; shift += that norm's. */
static void add_folded(struct wml_nn *b, struct wml_value *x, const char *conv, const char *bn, double eps, int64_t out, int64_t side, float *sum, float *shift)
{
    struct affine f;
    if (!affine_of(b, bn, eps, out, &f)) return;
    const int64_t in = wml_nn_size(b, x, 1, "the channels of an image");
    wml_nn_enter_layer(b, "Conv2d", "%s", conv);
    const struct wml_weight *k = wml_nn_need(b, "weight", WML_DIMS(out, in, -1, -1));
    const float *from = wml_nn_read(b, k);
    const int64_t n = from ? k->dims[2] : 0, edge = (side - n) / 2;
    if (from && (n != k->dims[3] || n > side || (side - n) % 2))
        wml_nn_fail(b, WML_E_FORMAT, "'%.*s' is a kernel that does not fit into one of %lld x %lld", WML_ARG(k->name), (long long)side, (long long)side);
    for (int64_t i = 0; !b->failed && i < out * in * n * n; i++) {
        const int64_t o = i / (in * n * n), y = i / n % n + edge, column = i % n + edge;
        sum[(i / (n * n) * side + y) * side + column] += from[i] * f.scale[o];
    }
    for (int64_t o = 0; o < out && !b->failed; o++) shift[o] += f.shift[o];
    wml_nn_leave(b);
}

struct wml_value *wml_nn_conv_bn_both(struct wml_nn *b, struct wml_value *x, const char *const conv[2], const char *const bn[2], double eps, int64_t out,
                                      const struct wml_nn_window *w)
{
    if (b->failed || !x) return NULL;
    const int64_t in = wml_nn_size(b, x, 1, "the channels of an image"), side = w->kernel;
    float *sum = wml_nn_room(b, conv[0], sizeof *sum, WML_DIMS(out, in, side, side));
    float *shift = wml_nn_room(b, conv[0], sizeof *shift, WML_DIMS(out));
    if (!sum || !shift) return NULL;
    for (size_t i = 0; i < 2; i++) add_folded(b, x, conv[i], bn[i], eps, out, side, sum, shift);
    wml_nn_enter_layer(b, "Conv2d", "%s", conv[0]);
    x = wml_nn_conv_node(b, x, wml_nn_const(b, "weight.both", WML_F32, WML_DIMS(out, in, side, side), sum),
                         wml_nn_const(b, "bias.both", WML_F32, 1, &out, shift), w);
    wml_nn_leave(b);
    return x;
}

struct wml_value *wml_nn_batch_norm(struct wml_nn *b, struct wml_value *x, const char *name, double eps)
{
    if (b->failed || !x) return NULL;
    const struct wml_nn_shape s = wml_nn_shape(x);
    const int64_t n = wml_nn_size(b, x, 1, "the channels of an image");
    wml_nn_enter_layer(b, "BatchNorm2d", "%s", name);
    static const char *const part[4] = {"weight", "bias", "running_mean", "running_var"};
    struct wml_value *in[5] = {x};
    for (size_t i = 0; i < 4; i++) in[i + 1] = wml_nn_param(b, part[i], WML_DIMS(n));
    wml_nn_find(b, "num_batches_tracked");
    struct wml_node *node = wml_nn_node(b, "", "BatchNormalization", 5, in);
    if (node) wml_attr_set_float(node, "epsilon", (float)eps);
    x = wml_nn_out(b, node, WML_F32, &s);
    wml_nn_leave(b);
    return x;
}
