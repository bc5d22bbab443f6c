/* families/mobilenet_v2.c - MobileNetV2 (Sandler et al. 2018): narrow residuals, wide layers between them; with a
 * DeepLabV3+ head (Chen et al. 2018) for segmentation. */
#include "families/mobilenet.h"

enum { BLOCKS = 16 };

struct params {
    double times, expand;
    int64_t divisor, least, output_stride;
    bool fine, first_expands, tf_padding;
    double eps;
    struct wml_str act;
};

static struct params params_of(struct wml_family_job *j)
{
    const struct wml_json_val *c = j->cfg;
    return (struct params){
        .times = wml_cfg_num(j, c, "depth_multiplier", 1), .expand = wml_cfg_num(j, c, "expand_ratio", 6),
        .divisor = wml_cfg_size(j, c, "depth_divisible_by", 8), .least = wml_cfg_size(j, c, "min_depth", 8),
        .output_stride = wml_cfg_size(j, c, "output_stride", 32), .fine = wml_json_get_bool(c, "finegrained_output", true),
        .first_expands = wml_json_get_bool(c, "first_layer_is_expansion", true), .tf_padding = wml_json_get_bool(c, "tf_padding", true),
        .eps = wml_cfg_num(j, c, "layer_norm_eps", 1e-3), .act = wml_cfg_str(j, c, "hidden_act", "relu6")};
}

static int64_t width(const struct params *p, int64_t channels, double times)
{
    return wml_mobilenet_width((double)channels * times, p->divisor, p->least);
}

static struct wml_mobilenet_conv conv_of(const struct params *p, int64_t out, int64_t kernel, int64_t stride, int64_t dilation)
{
    return (struct wml_mobilenet_conv){.out = out, .kernel = kernel, .stride = stride, .dilation = dilation, .depthwise = kernel > 1,
                                       .tf_padding = p->tf_padding, .eps = p->eps, .act = p->act};
}

static struct wml_value *stem(struct wml_nn *b, const struct params *p, struct wml_value *x)
{
    const int64_t wide = width(p, 32, p->times);
    wml_nn_enter(b, "*Stem", "conv_stem");
    struct wml_mobilenet_conv c = conv_of(p, wide, 3, 2, 1);
    c.depthwise = false;
    x = wml_mobilenet_conv(b, x, "first_conv", &c);
    if (!p->first_expands) {
        c = conv_of(p, wide, 1, 1, 1);
        x = wml_mobilenet_conv(b, x, "expand_1x1", &c);
    }
    c = conv_of(p, wide, 3, 1, 1);
    x = wml_mobilenet_conv(b, x, "conv_3x3", &c);
    c = conv_of(p, width(p, 16, p->times), 1, 1, 1);
    c.act = WML_STR("");
    x = wml_mobilenet_conv(b, x, "reduce_1x1", &c);
    wml_nn_leave(b);
    return x;
}

static struct wml_value *block(struct wml_nn *b, const struct params *p, size_t i, struct wml_value *x, int64_t out, int64_t stride,
                               int64_t dilation)
{
    const int64_t in = wml_nn_size(b, x, 1, "the channels of an image");
    const int64_t wide = width(p, in, p->expand);
    wml_nn_enter(b, "*InvertedResidual", "layer.%zu", i);
    struct wml_mobilenet_conv c = conv_of(p, wide, 1, 1, 1);
    struct wml_value *y = wml_mobilenet_conv(b, x, "expand_1x1", &c);
    c = conv_of(p, wide, 3, stride, dilation);
    y = wml_mobilenet_conv(b, y, "conv_3x3", &c);
    c = conv_of(p, out, 1, 1, 1);
    c.act = WML_STR("");
    y = wml_mobilenet_conv(b, y, "reduce_1x1", &c);
    if (stride == 1 && in == out) y = wml_nn_add(b, x, y);
    wml_nn_leave(b);
    return y;
}

static struct wml_value *body(struct wml_nn *b, const struct params *p, struct wml_value *x, bool last)
{
    static const int64_t channels[BLOCKS] = {24, 24, 32, 32, 32, 64, 64, 64, 64, 96, 96, 96, 160, 160, 160, 320};
    static const int64_t strides[BLOCKS] = {2, 1, 2, 1, 1, 2, 1, 1, 1, 1, 1, 1, 2, 1, 1, 1};
    int64_t at = 2, dilation = 1;
    x = stem(b, p, x);
    for (size_t i = 0; i < BLOCKS && wml_nn_ok(b); i++) {
        int64_t stride = strides[i], now = dilation; /* beyond the wanted stride, holes take its place */
        if (at == p->output_stride) {
            stride = 1;
            dilation *= strides[i];
        } else {
            at *= stride;
        }
        x = block(b, p, i, x, width(p, channels[i], p->times), stride, now);
    }
    const int64_t end = p->fine && p->times < 1 ? 1280 : width(p, 1280, p->times);
    struct wml_mobilenet_conv c = conv_of(p, end, 1, 1, 1);
    return last ? wml_mobilenet_conv(b, x, "conv_1x1", &c) : x;
}

static void features(struct wml_family_job *j)
{
    const struct params p = params_of(j);
    wml_nn_output(j->nn, "last_hidden_state", body(j->nn, &p, wml_family_pixels(j, 224), true));
}

static void classification(struct wml_family_job *j)
{
    struct wml_nn *b = j->nn;
    const struct params p = params_of(j);
    struct wml_value *x = wml_family_pixels(j, 224);
    wml_nn_enter(b, "*Model", "%s", j->type->base);
    x = wml_nn_flatten(b, wml_nn_global_mean(b, body(b, &p, x, true)), 1);
    wml_nn_leave(b);
    wml_nn_output(b, "logits", wml_nn_linear(b, x, "classifier", wml_cfg_labels(j, j->cfg)));
}

static void segmentation(struct wml_family_job *j)
{
    struct wml_nn *b = j->nn;
    const struct params p = params_of(j);
    struct wml_value *x = wml_family_pixels(j, 224);
    wml_nn_enter(b, "*Model", "%s", j->type->base);
    x = body(b, &p, x, false);
    wml_nn_leave(b);
    static const char *const what = "the height and width of pixel_values";
    const int64_t h = wml_nn_size(b, x, 2, what), w = wml_nn_size(b, x, 3, what);
    struct wml_mobilenet_conv c = conv_of(&p, 256, 1, 1, 1);
    c.eps = 1e-5;
    c.act = WML_STR("relu");
    wml_nn_enter(b, "*DeepLabV3Plus", "segmentation_head");
    struct wml_value *whole = wml_mobilenet_conv(b, wml_nn_global_mean(b, x), "conv_pool", &c);
    whole = wml_nn_resize(b, whole, "linear", true, h, w);
    x = wml_nn_concat(b, 1, WML_VALUES(whole, wml_mobilenet_conv(b, x, "conv_aspp", &c)));
    x = wml_mobilenet_conv(b, x, "conv_projection", &c);
    wml_nn_enter(b, "*ConvLayer", "classifier");
    x = wml_nn_conv(b, x, "convolution", wml_cfg_labels(j, j->cfg), &(struct wml_nn_window){0});
    wml_nn_leave(b);
    wml_nn_leave(b);
    wml_nn_output(b, "logits", x);
}

static const struct wml_family_type types[] = {{"mobilenet_v2", "MobileNetV2", "mobilenet_v2"}, {NULL, NULL, NULL}};
static const struct wml_family_task tasks[] = {
    {"image-classification", "ForImageClassification", classification},
    {"image-feature-extraction", "Model", features},
    {"image-segmentation", "ForSemanticSegmentation", segmentation},
    {NULL, NULL, NULL},
};
const struct wml_family wml_family_mobilenet_v2 = {.name = "mobilenet_v2", .type = types, .task = tasks};
