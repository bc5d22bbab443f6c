/* nn/norms.c - normalisations over the last axis, channels, groups. */
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
    float *a = WML_NEW_ARRAY(&b->m->arena, float, (size_t)n);
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

struct wml_value *wml_nn_rms_norm(struct wml_nn *b, struct wml_value *x, const char *name, double eps, bool one_plus)
{
    if (b->failed || !x) return NULL;
    const int64_t n = wml_nn_size(b, x, -1, "the last axis of a normalised value");
    wml_nn_enter_layer(b, "RMSNorm", "%s", name);
    const struct wml_weight *w = wml_nn_need(b, "weight", WML_DIMS(n));
    struct wml_value *scale = NULL;
    if (one_plus && w) {
        const float *g = wml_nn_read(b, w);
        float *more = WML_NEW_ARRAY(&b->m->arena, float, (size_t)n);
        for (int64_t i = 0; g && i < n; i++) more[i] = 1.0f + g[i];
        scale = wml_nn_const(b, "weight.plus_one", WML_F32, 1, &n, more);
    } else {
        scale = wml_nn_param_of(b, w);
    }
    struct wml_value *mean = wml_nn_reduce(b, "ReduceMean", wml_nn_binary(b, "Pow", x, wml_nn_float(b, 2)), WML_DIMS(-1), true);
    struct wml_value *y = wml_nn_div(b, x, wml_nn_unary(b, "Sqrt", wml_nn_shift(b, mean, eps)));
    y = wml_nn_mul(b, scale, y);
    wml_nn_leave(b);
    return y;
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
