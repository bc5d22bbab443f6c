/* families/convnext.c - ConvNeXt (Liu et al. 2022) and ConvNeXt V2 (Woo et al. 2023), whose layers have a response
 * normalisation (GRN) in place of a scale. */
#include "families/family.h"

enum { MAX_STAGES = 16 };

struct params {
    int64_t width[MAX_STAGES], depth[MAX_STAGES], patch;
    size_t stages;
    double eps; /* of the last normalisation; inner ones have 1e-6 */
    bool v2;
    struct wml_str act;
};

static struct params params_of(struct wml_family_job *j)
{
    const struct wml_json_val *c = j->cfg;
    struct params p = {.patch = wml_cfg_size(j, c, "patch_size", 4), .eps = wml_cfg_num(j, c, "layer_norm_eps", 1e-12),
                       .act = wml_cfg_str(j, c, "hidden_act", "gelu"), .v2 = strcmp(j->type->model_type, "convnextv2") == 0};
    p.stages = wml_cfg_list(j, c, "hidden_sizes", 4, (const int64_t[]){96, 192, 384, 768}, p.width, MAX_STAGES);
    const size_t n = wml_cfg_list(j, c, "depths", 4, (const int64_t[]){3, 3, 9, 3}, p.depth, MAX_STAGES);
    if (!p.stages || n != p.stages)
        wml_nn_fail(j->nn, WML_E_FORMAT, "config.json: hidden_sizes has %zu stages, depths %zu", p.stages, n);
    return p;
}

/* Channels scaled by how strong they are over all places, x in [n,h,w,c]. */
static struct wml_value *response_norm(struct wml_nn *b, struct wml_value *x, int64_t channels)
{
    wml_nn_enter(b, "*GRN", "grn");
    struct wml_value *strength = wml_nn_reduce(b, "ReduceL2", x, WML_DIMS(1, 2), true);
    struct wml_value *mean = wml_nn_shift(b, wml_nn_reduce(b, "ReduceMean", strength, WML_DIMS(-1), true), 1e-6);
    struct wml_value *y = wml_nn_mul(b, wml_nn_param(b, "weight", WML_DIMS(1, 1, 1, channels)),
                                     wml_nn_mul(b, x, wml_nn_div(b, strength, mean)));
    y = wml_nn_add(b, wml_nn_add(b, y, wml_nn_param(b, "bias", WML_DIMS(1, 1, 1, channels))), x);
    wml_nn_leave(b);
    return y;
}

static struct wml_value *layer(struct wml_nn *b, const struct params *p, size_t i, struct wml_value *x, int64_t width)
{
    wml_nn_enter(b, "*Layer", "layers.%zu", i);
    struct wml_value *y = wml_nn_conv(b, x, "dwconv", width, &(struct wml_nn_window){.pad = 3, .groups = width});
    y = wml_nn_layer_norm(b, wml_nn_transpose(b, y, "0231"), "layernorm", 1e-6);
    y = wml_nn_act(b, wml_nn_linear(b, y, "pwconv1", 4 * width), p->act, "hidden_act");
    if (p->v2) y = response_norm(b, y, 4 * width);
    if (wml_nn_has(b, "layer_scale_parameter"))
        y = wml_nn_linear_scaled(b, y, "pwconv2", width, wml_nn_read(b, wml_nn_need(b, "layer_scale_parameter", WML_DIMS(width))));
    else y = wml_nn_linear(b, y, "pwconv2", width);
    x = wml_nn_add(b, x, wml_nn_transpose(b, y, "0312"));
    wml_nn_leave(b);
    return x;
}

/* The bare model, before the mean over places. */
static struct wml_value *body(struct wml_nn *b, const struct params *p, struct wml_value *x)
{
    wml_nn_enter(b, "*Embeddings", "embeddings");
    x = wml_nn_conv(b, x, "patch_embeddings", p->width[0], &(struct wml_nn_window){.stride = p->patch});
    x = wml_nn_layer_norm_channels(b, x, "layernorm", 1e-6);
    wml_nn_leave(b);
    wml_nn_enter(b, "*Encoder", "encoder");
    for (size_t s = 0; s < p->stages && wml_nn_ok(b); s++) {
        wml_nn_enter(b, "*Stage", "stages.%zu", s);
        if (s) {
            x = wml_nn_layer_norm_channels(b, x, "downsampling_layer.0", 1e-6);
            x = wml_nn_conv(b, x, "downsampling_layer.1", p->width[s], &(struct wml_nn_window){.stride = 2});
        }
        for (size_t i = 0; i < (size_t)p->depth[s] && wml_nn_ok(b); i++) x = layer(b, p, i, x, p->width[s]);
        wml_nn_leave(b);
    }
    wml_nn_leave(b);
    return x;
}

static void features(struct wml_family_job *j)
{
    const struct params p = params_of(j);
    wml_nn_output(j->nn, "last_hidden_state", body(j->nn, &p, wml_family_pixels(j, 224)));
}

static void classification(struct wml_family_job *j)
{
    struct wml_nn *b = j->nn;
    const struct params p = params_of(j);
    struct wml_value *x = wml_family_pixels(j, 224);
    wml_nn_enter(b, "*Model", "%s", j->type->base);
    x = wml_nn_flatten(b, wml_nn_global_mean(b, body(b, &p, x)), 1);
    x = wml_nn_layer_norm(b, x, "layernorm", p.eps);
    wml_nn_leave(b);
    wml_nn_output(b, "logits", wml_nn_linear(b, x, "classifier", wml_cfg_labels(j, j->cfg)));
}

static const struct wml_family_type types[] = {{"convnext", "ConvNext", "convnext"}, {"convnextv2", "ConvNextV2", "convnextv2"}, {NULL, NULL, NULL}};
static const struct wml_family_task tasks[] = {
    {"image-classification", "ForImageClassification", classification},
    {"image-feature-extraction", "Model", features},
    {NULL, NULL, NULL},
};
const struct wml_family wml_family_convnext = {.name = "convnext", .type = types, .task = tasks};
