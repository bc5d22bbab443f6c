/* families/mobilevit.c - MobileViT (Mehta, Rastegari 2021): the convolutions of MobileNetV2, and in the small pictures a
 * transformer over places that lie a patch apart; with a DeepLabV3 head (Chen et al. 2017) for segmentation. */
#include "families/mobilenet.h"
#include "families/vit_body.h"

struct params {
    int64_t neck[7], hidden[3], heads, patch, kernel, output_stride;
    double expand, ratio, eps;
    struct wml_str act;
};

static struct params params_of(struct wml_family_job *j)
{
    const struct wml_json_val *c = j->cfg;
    struct params p = {.neck = {16, 32, 64, 96, 128, 160, 640}, .hidden = {144, 192, 240},
                       .heads = wml_cfg_size(j, c, "num_attention_heads", 4), .patch = wml_cfg_size(j, c, "patch_size", 2),
                       .kernel = wml_cfg_size(j, c, "conv_kernel_size", 3), .output_stride = wml_cfg_size(j, c, "output_stride", 32),
                       .expand = wml_cfg_num(j, c, "expand_ratio", 4), .ratio = wml_cfg_num(j, c, "mlp_ratio", 2),
                       .eps = wml_cfg_num(j, c, "layer_norm_eps", 1e-5), .act = wml_cfg_str(j, c, "hidden_act", "silu")};
    const size_t neck = wml_cfg_sizes(j, c, "neck_hidden_sizes", p.neck, 7), hidden = wml_cfg_sizes(j, c, "hidden_sizes", p.hidden, 3);
    if ((neck && neck != 7) || (hidden && hidden != 3))
        wml_nn_fail(j->nn, WML_E_FORMAT, "config.json: neck_hidden_sizes must have 7 values, hidden_sizes 3");
    return p;
}

static struct wml_value *conv(struct wml_nn *b, const struct params *p, struct wml_value *x, const char *name, int64_t out, int64_t kernel,
                              int64_t stride)
{
    const struct wml_mobilenet_conv c = {.out = out, .kernel = kernel, .stride = stride, .eps = 1e-5, .act = p->act};
    return wml_mobilenet_conv(b, x, name, &c);
}

static struct wml_value *residual(struct wml_nn *b, const struct params *p, const char *name, struct wml_value *x, int64_t out, int64_t stride,
                                  int64_t dilation)
{
    const int64_t in = wml_nn_size(b, x, 1, "the channels of an image");
    const int64_t wide = wml_mobilenet_width((double)in * p->expand, 8, 8);
    wml_nn_enter(b, "*InvertedResidual", "%s", name);
    struct wml_value *y = conv(b, p, x, "expand_1x1", wide, 1, 1);
    struct wml_mobilenet_conv c = {.out = wide, .kernel = 3, .stride = stride, .dilation = dilation, .depthwise = true, .eps = 1e-5, .act = p->act};
    y = wml_mobilenet_conv(b, y, "conv_3x3", &c);
    c = (struct wml_mobilenet_conv){.out = out, .kernel = 1, .stride = 1, .eps = 1e-5};
    y = wml_mobilenet_conv(b, y, "reduce_1x1", &c);
    if (stride == 1 && in == out) y = wml_nn_add(b, x, y);
    wml_nn_leave(b);
    return y;
}

static struct wml_value *mobile(struct wml_nn *b, const struct params *p, size_t layer, struct wml_value *x, int64_t out, int64_t stride, size_t n)
{
    wml_nn_enter(b, "*MobileNetLayer", "layer.%zu", layer);
    for (size_t i = 0; i < n; i++) {
        char name[32];
        snprintf(name, sizeof name, "layer.%zu", i);
        x = residual(b, p, name, x, out, i ? 1 : stride, 1);
    }
    wml_nn_leave(b);
    return x;
}

/* ------------------------------------------------------------- the transformer */

/* [batch, c, h, w] -> rows, [batch * patch^2 * places, c]: places that have the same place in their patch are one text. */
static struct wml_value *unfold(struct wml_nn *b, struct wml_value *x, int64_t p, int64_t c, int64_t h, int64_t w)
{
    x = wml_nn_transpose(b, wml_nn_reshape(b, x, WML_DIMS(-1, p, w / p, p)), "0213");
    x = wml_nn_transpose(b, wml_nn_reshape(b, x, WML_DIMS(-1, c, h / p * (w / p), p * p)), "0321");
    return wml_nn_reshape(b, x, WML_DIMS(-1, c));
}

static struct wml_value *fold(struct wml_nn *b, struct wml_value *x, int64_t p, int64_t c, int64_t h, int64_t w)
{
    x = wml_nn_transpose(b, wml_nn_reshape(b, x, WML_DIMS(-1, p * p, h / p * (w / p), c)), "0321");
    x = wml_nn_transpose(b, wml_nn_reshape(b, x, WML_DIMS(-1, w / p, p, p)), "0213");
    return wml_nn_reshape(b, x, WML_DIMS(-1, c, h, w));
}

/* x: rows of texts of `length`. */
static struct wml_value *transformer(struct wml_nn *b, const struct params *p, struct wml_value *x, int64_t width, int64_t length, size_t n)
{
    const struct wml_vit v = {.hidden = width, .heads = p->heads, .length = length};
    wml_nn_enter(b, "*Transformer", "transformer");
    for (size_t i = 0; i < n && wml_nn_ok(b); i++) {
        wml_nn_enter(b, "*TransformerLayer", "layer.%zu", i);
        x = wml_nn_add(b, wml_vit_attention(b, &v, wml_nn_layer_norm(b, x, "layernorm_before", p->eps)), x);
        struct wml_value *y = wml_nn_layer_norm(b, x, "layernorm_after", p->eps);
        wml_nn_enter(b, "*Intermediate", "intermediate");
        y = wml_nn_act(b, wml_nn_linear(b, y, "dense", wml_cfg_whole((double)width * p->ratio)), p->act, "hidden_act");
        wml_nn_leave(b);
        wml_nn_enter(b, "*Output", "output");
        x = wml_nn_add(b, wml_nn_linear(b, y, "dense", width), x);
        wml_nn_leave(b);
        wml_nn_leave(b);
    }
    wml_nn_leave(b);
    return x;
}

static struct wml_value *vit(struct wml_nn *b, const struct params *p, size_t layer, struct wml_value *x, int64_t width, size_t n, int64_t dilation)
{
    static const char *const what = "the height and width of pixel_values";
    const int64_t out = p->neck[layer + 1];
    wml_nn_enter(b, "*Layer", "layer.%zu", layer);
    x = residual(b, p, "downsampling_layer", x, out, dilation > 1 ? 1 : 2, dilation > 1 ? dilation / 2 : 1);
    const int64_t h = wml_nn_size(b, x, 2, what), w = wml_nn_size(b, x, 3, what);
    const int64_t rows = (h + p->patch - 1) / p->patch * p->patch, columns = (w + p->patch - 1) / p->patch * p->patch;
    struct wml_value *y = conv(b, p, x, "conv_kxk", out, p->kernel, 1);
    wml_nn_enter(b, "*ConvLayer", "conv_1x1");
    y = wml_nn_conv(b, y, "convolution", width, &(struct wml_nn_window){0});
    wml_nn_leave(b);
    const bool resized = rows != h || columns != w;
    if (resized) y = wml_nn_resize(b, y, "linear", false, rows, columns);
    y = transformer(b, p, unfold(b, y, p->patch, width, rows, columns), width, rows / p->patch * (columns / p->patch), n);
    y = fold(b, wml_nn_layer_norm(b, y, "layernorm", p->eps), p->patch, width, rows, columns);
    if (resized) y = wml_nn_resize(b, y, "linear", false, h, w);
    y = conv(b, p, y, "conv_projection", out, 1, 1);
    x = conv(b, p, wml_nn_concat(b, 1, WML_VALUES(x, y)), "fusion", out, p->kernel, 1);
    wml_nn_leave(b);
    return x;
}

static struct wml_value *body(struct wml_nn *b, const struct params *p, struct wml_value *x, bool last)
{
    /* beyond the wanted stride, holes take its place */
    const int64_t fourth = p->output_stride == 8 ? 2 : 1, fifth = p->output_stride == 8 ? 4 : p->output_stride == 16 ? 2 : 1;
    x = conv(b, p, x, "conv_stem", p->neck[0], 3, 2);
    wml_nn_enter(b, "*Encoder", "encoder");
    x = mobile(b, p, 0, x, p->neck[1], 1, 1);
    x = mobile(b, p, 1, x, p->neck[2], 2, 3);
    x = vit(b, p, 2, x, p->hidden[0], 2, 1);
    x = vit(b, p, 3, x, p->hidden[1], 4, fourth);
    x = vit(b, p, 4, x, p->hidden[2], 3, fifth);
    wml_nn_leave(b);
    return last ? conv(b, p, x, "conv_1x1_exp", p->neck[6], 1, 1) : x;
}

static void features(struct wml_family_job *j)
{
    const struct params p = params_of(j);
    wml_nn_output(j->nn, "last_hidden_state", body(j->nn, &p, wml_family_pixels(j, 256), true));
}

static void classification(struct wml_family_job *j)
{
    struct wml_nn *b = j->nn;
    const struct params p = params_of(j);
    struct wml_value *x = wml_family_pixels(j, 256);
    wml_nn_enter(b, "*Model", "%s", j->type->base);
    x = wml_nn_flatten(b, wml_nn_global_mean(b, body(b, &p, x, true)), 1);
    wml_nn_leave(b);
    wml_nn_output(b, "logits", wml_nn_linear(b, x, "classifier", wml_cfg_labels(j, j->cfg)));
}

/* [batch, out, rows, columns]: convolutions that see far and wide, and the mean of all places. */
static struct wml_value *pyramid(struct wml_family_job *j, struct wml_value *x, int64_t out)
{
    static const char *const what = "the height and width of pixel_values";
    struct wml_nn *b = j->nn;
    struct wml_mobilenet_conv c = {.out = out, .kernel = 1, .stride = 1, .eps = 1e-5, .act = WML_STR("relu")};
    int64_t rate[3] = {6, 12, 18};
    struct wml_value *part[5];
    const size_t n = wml_cfg_sizes(j, j->cfg, "atrous_rates", rate, 3);
    if (n && n != 3) return wml_nn_fail(b, WML_E_FORMAT, "config.json: atrous_rates must have 3 values");
    const int64_t h = wml_nn_size(b, x, 2, what), w = wml_nn_size(b, x, 3, what);
    wml_nn_enter(b, "*ASPP", "aspp");
    part[0] = wml_mobilenet_conv(b, x, "convs.0", &c);
    for (size_t i = 0; i < 3; i++) {
        char name[16];
        snprintf(name, sizeof name, "convs.%zu", i + 1);
        const struct wml_mobilenet_conv far = {.out = out, .kernel = 3, .stride = 1, .dilation = rate[i], .eps = 1e-5, .act = c.act};
        part[i + 1] = wml_mobilenet_conv(b, x, name, &far);
    }
    wml_nn_enter(b, "*ASPPPooling", "convs.4");
    part[4] = wml_nn_resize(b, wml_mobilenet_conv(b, wml_nn_global_mean(b, x), "conv_1x1", &c), "linear", false, h, w);
    wml_nn_leave(b);
    x = wml_mobilenet_conv(b, wml_nn_concat(b, 1, 5, part), "project", &c);
    wml_nn_leave(b);
    return x;
}

static void segmentation(struct wml_family_job *j)
{
    struct wml_nn *b = j->nn;
    const struct params p = params_of(j);
    struct wml_value *x = wml_family_pixels(j, 256);
    wml_nn_enter(b, "*Model", "%s", j->type->base);
    x = body(b, &p, x, false);
    wml_nn_leave(b);
    wml_nn_enter(b, "*DeepLabV3", "segmentation_head");
    x = pyramid(j, x, wml_cfg_size(j, j->cfg, "aspp_out_channels", 256));
    wml_nn_enter(b, "*ConvLayer", "classifier");
    x = wml_nn_conv(b, x, "convolution", wml_cfg_labels(j, j->cfg), &(struct wml_nn_window){0});
    wml_nn_leave(b);
    wml_nn_leave(b);
    wml_nn_output(b, "logits", x);
}

static const struct wml_family_type types[] = {{"mobilevit", "MobileViT", "mobilevit"}, {NULL, NULL, NULL}};
static const struct wml_family_task tasks[] = {
    {"image-classification", "ForImageClassification", classification},
    {"image-feature-extraction", "Model", features},
    {"image-segmentation", "ForSemanticSegmentation", segmentation},
    {NULL, NULL, NULL},
};
const struct wml_family wml_family_mobilevit = {.name = "mobilevit", .type = types, .task = tasks};
