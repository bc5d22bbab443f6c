/* families/mobilenet_v1.c - MobileNet (Howard et al. 2017): convolutions per channel, then across channels. */
#include "families/mobilenet.h"

enum { STEPS = 13 };

static struct wml_value *body(struct wml_family_job *j, struct wml_value *x)
{
    static const int64_t strides[STEPS] = {1, 2, 1, 2, 1, 2, 1, 1, 1, 1, 1, 2, 1};
    struct wml_nn *b = j->nn;
    const double times = wml_cfg_num(j, j->cfg, "depth_multiplier", 1);
    const int64_t least = wml_cfg_size(j, j->cfg, "min_depth", 8);
    int64_t depth = 32;
    struct wml_mobilenet_conv c = {.kernel = 3, .stride = 2, .tf_padding = wml_json_get_bool(j->cfg, "tf_padding", true),
                                   .eps = wml_cfg_num(j, j->cfg, "layer_norm_eps", 1e-3), .act = wml_cfg_str(j, j->cfg, "hidden_act", "relu6")};
    c.out = wml_cfg_whole((double)depth * times) > least ? wml_cfg_whole((double)depth * times) : least;
    x = wml_mobilenet_conv(b, x, "conv_stem", &c);
    for (size_t i = 0; i < STEPS; i++) {
        char name[32];
        c.stride = strides[i];
        c.kernel = 3;
        c.depthwise = true; /* of as many channels as there are */
        snprintf(name, sizeof name, "layer.%zu", 2 * i);
        x = wml_mobilenet_conv(b, x, name, &c);
        if (c.stride == 2 || i == 0) depth *= 2;
        c.out = wml_cfg_whole((double)depth * times) > least ? wml_cfg_whole((double)depth * times) : least;
        c.kernel = c.stride = 1;
        c.depthwise = false;
        snprintf(name, sizeof name, "layer.%zu", 2 * i + 1);
        x = wml_mobilenet_conv(b, x, name, &c);
    }
    return x;
}

static void features(struct wml_family_job *j)
{
    wml_nn_output(j->nn, "last_hidden_state", body(j, wml_family_pixels(j, 224)));
}

static void classification(struct wml_family_job *j)
{
    struct wml_nn *b = j->nn;
    struct wml_value *x = wml_family_pixels(j, 224);
    wml_nn_enter(b, "*Model", "%s", j->type->base);
    x = wml_nn_flatten(b, wml_nn_global_mean(b, body(j, x)), 1);
    wml_nn_leave(b);
    wml_nn_output(b, "logits", wml_nn_linear(b, x, "classifier", wml_cfg_labels(j, j->cfg)));
}

static const struct wml_family_type types[] = {{"mobilenet_v1", "MobileNetV1", "mobilenet_v1"}, {NULL, NULL, NULL}};
static const struct wml_family_task tasks[] = {
    {"image-classification", "ForImageClassification", classification},
    {"image-feature-extraction", "Model", features},
    {NULL, NULL, NULL},
};
const struct wml_family wml_family_mobilenet_v1 = {.name = "mobilenet_v1", .type = types, .task = tasks};
