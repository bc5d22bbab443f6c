/* bench/make_vision.c - ResNet-50 with its normalisations apart, and ViT-base/16 with a dynamic batch. */
#include <math.h>

#include "maker.h"

static struct wml_value *conv(struct maker *k, struct wml_value *x, const int64_t *dims, int64_t stride, int64_t pad)
{
    float scale = 1.0f / sqrtf((float)(dims[1] * dims[2] * dims[3]));
    struct wml_value *y = MAKER_OP(k, "Conv", x, maker_weight(k, "w", 4, dims, scale, 0));
    wml_attr_set_ints(y->def, "kernel_shape", 2, (int64_t[]){dims[2], dims[3]});
    wml_attr_set_ints(y->def, "strides", 2, (int64_t[]){stride, stride});
    wml_attr_set_ints(y->def, "pads", 4, (int64_t[]){pad, pad, pad, pad});
    return y;
}

struct wml_value *maker_conv_bn(struct maker *k, struct wml_value *x, int64_t in, int64_t out, int64_t kernel,
                                int64_t stride, bool relu)
{
    struct wml_value *y = conv(k, x, (int64_t[]){out, in, kernel, kernel}, stride, kernel / 2);
    y = MAKER_OP(k, "BatchNormalization", y, maker_weight(k, "scale", 1, &out, 0.1f, 1),
                 maker_weight(k, "bias", 1, &out, 0.1f, 0), maker_weight(k, "mean", 1, &out, 0.1f, 0),
                 maker_weight(k, "var", 1, &out, 0.1f, 1));
    wml_attr_set_float(y->def, "epsilon", 1e-5f);
    return relu ? MAKER_OP(k, "Relu", y) : y;
}

static struct wml_value *bottleneck(struct maker *k, struct wml_value *x, int64_t in, int64_t mid, int64_t stride)
{
    struct wml_value *y = maker_conv_bn(k, x, in, mid, 1, 1, true);
    y = maker_conv_bn(k, y, mid, mid, 3, stride, true);
    y = maker_conv_bn(k, y, mid, mid * 4, 1, 1, false);
    struct wml_value *skip = in == mid * 4 && stride == 1 ? x : maker_conv_bn(k, x, in, mid * 4, 1, stride, false);
    return MAKER_OP(k, "Relu", MAKER_OP(k, "Add", y, skip));
}

void make_resnet50(struct maker *k)
{
    struct wml_axis batch = k->dynamic ? (struct wml_axis){-1, WML_STR("batch")} : (struct wml_axis){1, {0}};
    struct wml_axis axes[4] = {batch, {3, {0}}, {224, {0}}, {224, {0}}};
    struct wml_value *x = wml_graph_add_input(k->g, WML_STR("pixel_values"), wml_type_tensor(k->m, WML_F32, 4, axes));
    x = MAKER_OP(k, "MaxPool", maker_conv_bn(k, x, 3, 64, 7, 2, true));
    wml_attr_set_ints(x->def, "kernel_shape", 2, (int64_t[]){3, 3});
    wml_attr_set_ints(x->def, "strides", 2, (int64_t[]){2, 2});
    wml_attr_set_ints(x->def, "pads", 4, (int64_t[]){1, 1, 1, 1});
    static const int64_t blocks[4] = {3, 4, 6, 3};
    int64_t in = 64;
    for (int stage = 0; stage < 4; stage++) {
        int64_t mid = (int64_t)64 << stage;
        for (int64_t i = 0; i < blocks[stage]; i++) {
            x = bottleneck(k, x, in, mid, stage && i == 0 ? 2 : 1);
            in = mid * 4;
        }
    }
    x = MAKER_OP(k, "Flatten", MAKER_OP(k, "GlobalAveragePool", x));
    x = maker_gemm(k, x, 2048, 1000);
    maker_output(k, x, "logits", 2, (struct wml_axis[]){batch, {1000, {0}}});
}

/* --- ViT --- */

enum { PATCH = 16, SIDE = 14, TOKENS = SIDE * SIDE + 1, CLASSES = 1000 };

/* [batch, hidden, 14, 14] to [batch, 196, hidden], the shape read from the Conv's output */
static struct wml_value *patches(struct maker *k, struct wml_value *pixels)
{
    struct wml_value *y = conv(k, pixels, (int64_t[]){k->hidden, 3, PATCH, PATCH}, PATCH, 0);
    struct wml_value *lead =
        MAKER_OP(k, "Slice", MAKER_OP(k, "Shape", y), maker_ints(k, 1, (int64_t[]){0}),
                 maker_ints(k, 1, (int64_t[]){2}), maker_ints(k, 1, (int64_t[]){0}));
    struct wml_value *part[2] = {lead, maker_ints(k, 1, (int64_t[]){-1})};
    y = MAKER_OP(k, "Transpose", MAKER_OP(k, "Reshape", y, maker_concat(k, 0, 2, part)));
    wml_attr_set_ints(y->def, "perm", 3, (int64_t[]){0, 2, 1});
    return y;
}

static struct wml_value *vit_embeddings(struct maker *k, struct wml_value *pixels)
{
    struct wml_value *part[3] = {maker_dim(k, pixels, 0), maker_ints(k, 1, (int64_t[]){-1}),
                                 maker_ints(k, 1, (int64_t[]){-1})};
    struct wml_value *cls = maker_weight(k, "cls", 3, (int64_t[]){1, 1, k->hidden}, 0.02f, 0);
    struct wml_value *y[2] = {maker_expand(k, cls, maker_concat(k, 0, 3, part), 3), patches(k, pixels)};
    return MAKER_OP(k, "Add", maker_concat(k, 1, 2, y),
                    maker_weight(k, "position", 3, (int64_t[]){1, TOKENS, k->hidden}, 0.02f, 0));
}

void make_vit(struct maker *k)
{
    struct wml_axis in[4] = {{-1, WML_STR("batch")}, {3, {0}}, {224, {0}}, {224, {0}}};
    struct wml_value *pixels =
        wml_graph_add_input(k->g, WML_STR("pixel_values"), wml_type_tensor(k->m, WML_F32, 4, in));
    struct wml_value *x = vit_embeddings(k, pixels);
    for (int64_t layer = 0; layer < k->layers; layer++) {
        x = MAKER_OP(k, "Add", maker_attention(k, maker_layer_norm(k, x), NULL), x);
        x = MAKER_OP(k, "Add", maker_mlp(k, maker_layer_norm(k, x)), x);
    }
    x = MAKER_OP(k, "Gather", maker_layer_norm(k, x), maker_index(k, 0));
    wml_attr_set_int(x->def, "axis", 1);
    x = maker_gemm(k, x, k->hidden, CLASSES);
    maker_output(k, x, "logits", 2, (struct wml_axis[]){in[0], {CLASSES, {0}}});
}
