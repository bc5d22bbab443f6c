/* families/resnet.c - ResNet (He et al. 2015): convolutions with shortcuts, in basic or bottleneck blocks. */
#include "families/resnet_body.h"

enum { MAX_STAGES = 16 };

struct params {
    int64_t stem, width[MAX_STAGES], depth[MAX_STAGES];
    size_t stages;
    bool bottleneck, down_first, down_in_bottleneck;
    struct wml_str act;
};

static struct params params_of(struct wml_family_job *j, const struct wml_json_val *c)
{
    struct params p = {
        .stem = wml_cfg_size(j, c, "embedding_size", 64),
        .act = wml_cfg_str(j, c, "hidden_act", "relu"),
        .bottleneck = wml_str_is(wml_cfg_str(j, c, "layer_type", "bottleneck"), "bottleneck"),
        .down_first = wml_json_get_bool(c, "downsample_in_first_stage", false),
        .down_in_bottleneck = wml_json_get_bool(c, "downsample_in_bottleneck", false),
    };
    p.stages = wml_cfg_list(j, c, "hidden_sizes", 4, (const int64_t[]){256, 512, 1024, 2048}, p.width, MAX_STAGES);
    const size_t n = wml_cfg_list(j, c, "depths", 4, (const int64_t[]){3, 4, 6, 3}, p.depth, MAX_STAGES);
    if (!p.stages || n != p.stages)
        wml_nn_fail(j->nn, WML_E_FORMAT, "config.json: hidden_sizes has %zu stages, depths %zu", p.stages, n);
    return p;
}

/* Conv, BN and the activation ("": none). */
static struct wml_value *conv(struct wml_nn *b, struct wml_value *x, const char *name, int64_t out, int64_t kernel, int64_t stride,
                              struct wml_str act)
{
    wml_nn_enter(b, "*ConvLayer", "%s", name);
    x = wml_nn_conv_bn(b, x, "convolution", "normalization", 1e-5, out, &(struct wml_nn_window){.kernel = kernel, .stride = stride, .pad = kernel / 2});
    if (act.len) x = wml_nn_act(b, x, act, "hidden_act");
    wml_nn_leave(b);
    return x;
}

static struct wml_value *shortcut(struct wml_nn *b, struct wml_value *x, int64_t out, int64_t stride)
{
    if (wml_nn_axis(x, 1).size == out && stride == 1) return x;
    wml_nn_enter(b, "*ShortCut", "shortcut");
    x = wml_nn_conv_bn(b, x, "convolution", "normalization", 1e-5, out, &(struct wml_nn_window){.kernel = 1, .stride = stride});
    wml_nn_leave(b);
    return x;
}

static struct wml_value *block(struct wml_nn *b, const struct params *p, size_t i, struct wml_value *x, int64_t out, int64_t stride)
{
    wml_nn_enter(b, p->bottleneck ? "*BottleNeckLayer" : "*BasicLayer", "layers.%zu", i);
    const struct wml_str inner = WML_STR("relu"); /* whatever hidden_act says */
    struct wml_value *y = x;
    if (p->bottleneck) {
        const bool first = p->down_in_bottleneck; /* the stride is in the 1x1, else in the 3x3 */
        y = conv(b, y, "layer.0", out / 4, 1, first ? stride : 1, inner);
        y = conv(b, y, "layer.1", out / 4, 3, first ? 1 : stride, inner);
        y = conv(b, y, "layer.2", out, 1, 1, WML_STR(""));
    } else {
        y = conv(b, y, "layer.0", out, 3, stride, inner);
        y = conv(b, y, "layer.1", out, 3, 1, WML_STR(""));
    }
    y = wml_nn_act(b, wml_nn_add(b, y, shortcut(b, x, out, stride)), p->act, "hidden_act");
    wml_nn_leave(b);
    return y;
}

static struct wml_value *body(struct wml_nn *b, const struct params *p, struct wml_value *x)
{
    wml_nn_enter(b, "*Embeddings", "embedder");
    x = conv(b, x, "embedder", p->stem, 7, 2, p->act);
    x = wml_nn_pool(b, "MaxPool", x, &(struct wml_nn_window){.kernel = 3, .stride = 2, .pad = 1});
    wml_nn_leave(b);
    wml_nn_enter(b, "*Encoder", "encoder");
    for (size_t s = 0; s < p->stages && wml_nn_ok(b); s++) {
        wml_nn_enter(b, "*Stage", "stages.%zu", s);
        for (size_t i = 0; i < (size_t)p->depth[s] && wml_nn_ok(b); i++)
            x = block(b, p, i, x, p->width[s], i == 0 && (s > 0 || p->down_first) ? 2 : 1);
        wml_nn_leave(b);
    }
    wml_nn_leave(b);
    return x;
}

struct wml_value *wml_resnet_backbone(struct wml_family_job *j, const struct wml_json_val *cfg, struct wml_value *x)
{
    const char *klass = j->nn->klass;
    const struct params p = params_of(j, cfg);
    j->nn->klass = "ResNet";
    x = body(j->nn, &p, x);
    j->nn->klass = klass;
    return x;
}

static void features(struct wml_family_job *j)
{
    const struct params p = params_of(j, j->cfg);
    wml_nn_output(j->nn, "last_hidden_state", body(j->nn, &p, wml_family_pixels(j, 224)));
}

static void classification(struct wml_family_job *j)
{
    struct wml_nn *b = j->nn;
    const struct params p = params_of(j, j->cfg);
    struct wml_value *x = wml_family_pixels(j, 224);
    wml_nn_enter(b, "*Model", "%s", j->type->base);
    x = wml_nn_global_mean(b, body(b, &p, x));
    wml_nn_leave(b);
    wml_nn_output(b, "logits", wml_nn_linear(b, wml_nn_flatten(b, x, 1), "classifier.1", wml_cfg_labels(j, j->cfg)));
}

static const struct wml_family_type types[] = {{"resnet", "ResNet", "resnet"}, {NULL, NULL, NULL}};
static const struct wml_family_task tasks[] = {
    {"image-classification", "ForImageClassification", classification},
    {"image-feature-extraction", "Model", features},
    {NULL, NULL, NULL},
};
const struct wml_family wml_family_resnet = {.name = "resnet", .type = types, .task = tasks};
