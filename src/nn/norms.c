/* nn/norms.c - normalisations over the last axis, channels, groups. */
#include <math.h>
#include "nn/layers.h"

/* LayerNormalization in its parts, for opsets that lack it. */
static struct wml_value *norm_parts(struct wml_nn *b, struct wml_value *x, struct wml_value *scale, struct wml_value *bias, double eps)
{
    struct wml_value *d = wml_nn_sub(b, x, wml_nn_reduce(b, "ReduceMean", x, WML_DIMS(-1), true));
    struct wml_value *var = wml_nn_reduce(b, "ReduceMean", wml_nn_binary(b, "Pow", d, wml_nn_float(b, 2)), WML_DIMS(-1), true);
    struct wml_value *y = wml_nn_div(b, d, wml_nn_unary(b, "Sqrt", wml_nn_shift(b, var, eps)));
    if (scale) y = wml_nn_mul(b, y, scale);
    return bias ? wml_nn_add(b, y, bias) : y;
}

static struct wml_value *norm_node(struct wml_nn *b, struct wml_value *x, struct wml_value *scale, struct wml_value *bias, double eps)
{
    if (b->failed || !x || !scale) return NULL;
    if (b->opset < 17) return norm_parts(b, x, scale, bias, eps);
    const struct wml_nn_shape s = wml_nn_shape(x);
    struct wml_node *n = wml_nn_node(b, "", "LayerNormalization", bias ? 3 : 2, (struct wml_value *[]){x, scale, bias});
    wml_attr_set_int(n, "axis", -1);
    wml_attr_set_float(n, "epsilon", (float)eps);
    return wml_nn_out(b, n, WML_F32, &s);
}

static struct wml_value *all_of(struct wml_nn *b, const char *hint, int64_t n, float v)
{
    float *a = wml_nn_room(b, hint, sizeof *a, WML_DIMS(n));
    if (!a) return NULL;
    for (int64_t i = 0; i < n; i++) a[i] = v;
    return wml_nn_const(b, hint, WML_F32, 1, &n, a);
}

struct wml_value *wml_nn_layer_norm(struct wml_nn *b, struct wml_value *x, const char *name, double eps)
{
    if (b->failed || !x) return NULL;
    const int64_t n = wml_nn_size(b, x, -1, "the last axis of a normalised value");
    wml_nn_enter_layer(b, "LayerNorm", "%s", name);
    struct wml_value *scale = wml_nn_param(b, "weight", WML_DIMS(n));
    struct wml_value *bias = wml_nn_has(b, "bias") ? wml_nn_param(b, "bias", WML_DIMS(n)) : NULL;
    x = norm_node(b, x, scale, bias, eps);
    wml_nn_leave(b);
    return x;
}

struct wml_value *wml_nn_layer_norm_plain(struct wml_nn *b, struct wml_value *x, const char *name, double eps)
{
    if (b->failed || !x) return NULL;
    const int64_t n = wml_nn_size(b, x, -1, "the last axis of a normalised value");
    wml_nn_enter_layer(b, "LayerNorm", "%s", name);
    x = norm_node(b, x, all_of(b, "ones", n, 1), NULL, eps);
    wml_nn_leave(b);
    return x;
}

struct wml_value *wml_nn_layer_norm_channels(struct wml_nn *b, struct wml_value *x, const char *name, double eps)
{
    const bool line = x && wml_nn_rank(x) == 3;
    x = wml_nn_layer_norm(b, wml_nn_transpose(b, x, line ? "021" : "0231"), name, eps);
    return wml_nn_transpose(b, x, line ? "021" : "0312");
}

/* The weight of an RMS norm times `by`, or (1 + weight) times `by`, in the model's type of floats. */
static struct wml_value *gain(struct wml_nn *b, int64_t n, bool one_plus, double by)
{
    const struct wml_weight *w = wml_nn_need(b, "weight", WML_DIMS(n));
    if (!one_plus && by == 1) return wml_nn_param_of(b, w);
    const float *g = wml_nn_read(b, w);
    float *more = wml_nn_room(b, "norm", sizeof *more, WML_DIMS(n));
    if (!more) return NULL;
    for (int64_t i = 0; g && i < n; i++) wml_dtype_store(b->real, more, (size_t)i, ((one_plus ? 1 : 0) + (double)g[i]) * by);
    return wml_nn_const(b, by != 1 ? "weight.gain" : "weight.plus_one", b->real, 1, &n, more);
}

struct wml_value *wml_nn_rms_norm(struct wml_nn *b, struct wml_value *x, const char *name, double eps, bool one_plus)
{
    if (b->failed || !x) return NULL;
    const int64_t n = wml_nn_size(b, x, -1, "the last axis of a normalised value");
    wml_nn_enter_layer(b, "RMSNorm", "%s", name);
    struct wml_value *scale = gain(b, n, one_plus, 1);
    struct wml_value *mean = wml_nn_reduce(b, "ReduceMean", wml_nn_binary(b, "Pow", x, wml_nn_float(b, 2)), WML_DIMS(-1), true);
    struct wml_value *y = wml_nn_div(b, x, wml_nn_unary(b, "Sqrt", wml_nn_shift(b, mean, eps)));
    y = wml_nn_mul(b, scale, y);
    wml_nn_leave(b);
    return y;
}

struct wml_value *wml_nn_rms_norm_one(struct wml_nn *b, struct wml_value *x, struct wml_value **skip, const char *name, double eps, bool one_plus)
{
    if (b->failed || !x) return NULL;
    const struct wml_nn_shape s = wml_nn_shape(x);
    const enum wml_dtype type = (enum wml_dtype)wml_value_elem(x);
    const int64_t n = wml_nn_size(b, x, -1, "the last axis of a normalised value");
    wml_nn_enter_layer(b, "RMSNorm", "%s", name);
    struct wml_value *scale = gain(b, n, one_plus, 1), *y;
    if (skip && *skip) {
        struct wml_node *node = wml_nn_node(b, "com.microsoft", "SkipSimplifiedLayerNormalization", WML_VALUES(x, *skip, scale));
        if (node) wml_attr_set_float(node, "epsilon", (float)eps);
        struct wml_value *out[4] = {NULL};
        for (size_t i = 0; i < 4; i++) out[i] = wml_nn_out(b, node, type, &s);
        for (size_t i = 1; i < 3 && node; i++) wml_node_drop_output(node, i); /* statistics */
        y = out[0];
        *skip = out[3];
    } else {
        struct wml_node *node = wml_nn_node(b, "", "SimplifiedLayerNormalization", WML_VALUES(x, scale));
        if (node) {
            wml_attr_set_float(node, "epsilon", (float)eps);
            wml_attr_set_int(node, "axis", -1);
            wml_attr_set_int(node, "stash_type", 1);
        }
        y = wml_nn_out(b, node, type, &s);
    }
    wml_nn_leave(b);
    return y;
}

struct wml_value *wml_nn_rms_norm_lp(struct wml_nn *b, struct wml_value *x, const char *name, bool one_plus)
{
    if (b->failed || !x) return NULL;
    const struct wml_nn_shape s = wml_nn_shape(x);
    const int64_t n = wml_nn_size(b, x, -1, "the last axis of a normalised value");
    wml_nn_enter_layer(b, "RMSNorm", "%s", name);
    struct wml_node *node = wml_nn_node(b, "", "LpNormalization", 1, &x);
    if (node) {
        wml_attr_set_int(node, "axis", -1);
        wml_attr_set_int(node, "p", 2);
    }
    x = wml_nn_mul(b, wml_nn_out(b, node, WML_F32, &s), gain(b, n, one_plus, sqrt((double)n)));
    wml_nn_leave(b);
    return x;
}

/* [n,c,...], every channel for itself. */
static struct wml_value *instance_norm(struct wml_nn *b, struct wml_value *x, struct wml_value *scale, struct wml_value *bias, double eps)
{
    if (b->failed || !x || !scale || !bias) return NULL;
    const struct wml_nn_shape s = wml_nn_shape(x);
    struct wml_node *n = wml_nn_node(b, "", "InstanceNormalization", 3, (struct wml_value *[]){x, scale, bias});
    if (n) wml_attr_set_float(n, "epsilon", (float)eps);
    return wml_nn_out(b, n, WML_F32, &s);
}

struct wml_value *wml_nn_group_norm(struct wml_nn *b, struct wml_value *x, const char *name, int64_t groups, double eps)
{
    if (b->failed || !x) return NULL;
    const struct wml_nn_shape s = wml_nn_shape(x);
    const int64_t c = wml_nn_size(b, x, 1, "the channels of a normalised value");
    if (groups < 1 || c % groups) return wml_nn_fail(b, WML_E_FORMAT, "%lld channels in %lld groups", (long long)c, (long long)groups);
    wml_nn_enter_layer(b, "GroupNorm", "%s", name);
    if (groups == c) {
        x = instance_norm(b, x, wml_nn_param(b, "weight", 1, &c), wml_nn_param(b, "bias", 1, &c), eps);
        wml_nn_leave(b);
        return x;
    }
    struct wml_value *y = wml_nn_reshape(b, x, WML_DIMS(0, groups, -1));
    y = instance_norm(b, y, all_of(b, "ones", groups, 1), all_of(b, "zeros", groups, 0), eps);
    struct wml_value *back[WML_NN_MAX_RANK];
    for (size_t i = 0; i < s.rank; i++) back[i] = wml_nn_extent(b, x, (int)i);
    y = wml_nn_reshape_to(b, y, s.rank, back, &s);
    int64_t shape[WML_NN_MAX_RANK] = {c, 1, 1, 1, 1, 1, 1, 1};
    y = wml_nn_mul(b, y, wml_nn_reshaped(b, wml_nn_need(b, "weight", 1, &c), s.rank - 1, shape));
    y = wml_nn_add(b, y, wml_nn_reshaped(b, wml_nn_need(b, "bias", 1, &c), s.rank - 1, shape));
    wml_nn_leave(b);
    return y;
}
