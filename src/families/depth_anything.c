/* families/depth_anything.c - Depth Anything (Yang et al. 2024): depth from the states of four layers of DINOv2, joined from the
 * last to the first as in DPT. */
#include "families/dinov2_body.h"

enum { STATES = 4 };

struct params {
    int64_t neck[STATES], fusion, head;
    double factor[STATES], max_depth;
    bool metric;
};

static struct params params_of(struct wml_family_job *j)
{
    const struct wml_json_val *c = j->cfg, *factors = wml_json_get(c, "reassemble_factors");
    static const double usual[STATES] = {4, 2, 1, 0.5};
    struct params p = {.neck = {48, 96, 192, 384}, .fusion = wml_cfg_size(j, c, "fusion_hidden_size", 64), .head = wml_cfg_size(j, c, "head_hidden_size", 32),
                       .metric = wml_str_is(wml_cfg_str(j, c, "depth_estimation_type", "relative"), "metric")};
    const size_t n = wml_cfg_sizes(j, c, "neck_hidden_sizes", p.neck, STATES);
    if (n && n != STATES) wml_nn_fail(j->nn, WML_E_FORMAT, "config.json: neck_hidden_sizes has %zu values, not %d", n, STATES);
    for (size_t i = 0; i < STATES; i++) p.factor[i] = wml_json_num(wml_json_at(factors, i), usual[i]);
    p.max_depth = wml_cfg_num(j, c, "max_depth", 1);
    return p;
}

/* A state without its first token, as a picture `factor` times as large. */
static struct wml_value *reassemble(struct wml_nn *b, const struct params *p, size_t i, const struct wml_dinov2_states *s)
{
    struct wml_value *x = wml_nn_transpose(b, wml_nn_slice(b, s->state[i], 1, 1, INT64_MAX), "021");
    x = wml_nn_reshape(b, x, WML_DIMS(0, s->hidden, s->grid[0], s->grid[1]));
    wml_nn_enter(b, "*ReassembleLayer", "layers.%zu", i);
    x = wml_nn_conv(b, x, "projection", p->neck[i], &(struct wml_nn_window){0});
    if (p->factor[i] > 1) x = wml_nn_conv_transpose(b, x, "resize", p->neck[i], &(struct wml_nn_window){.stride = (int64_t)p->factor[i]});
    else if (p->factor[i] < 1) x = wml_nn_conv(b, x, "resize", p->neck[i], &(struct wml_nn_window){.stride = (int64_t)(1 / p->factor[i]), .pad = 1});
    wml_nn_leave(b);
    return x;
}

static struct wml_value *residual(struct wml_nn *b, const struct params *p, const char *name, struct wml_value *x)
{
    const struct wml_nn_window w = {.pad = 1};
    wml_nn_enter(b, "*PreActResidualLayer", "%s", name);
    struct wml_value *y = wml_nn_conv(b, wml_nn_unary(b, "Relu", x), "convolution1", p->fusion, &w);
    y = wml_nn_conv(b, wml_nn_unary(b, "Relu", y), "convolution2", p->fusion, &w);
    wml_nn_leave(b);
    return wml_nn_add(b, y, x);
}

/* What is known so far (NULL: nothing) and a state, at the size of the next one (NULL: twice as large). */
static struct wml_value *fuse(struct wml_nn *b, const struct params *p, size_t i, struct wml_value *known, struct wml_value *state,
                              const struct wml_value *next)
{
    static const char *const what = "the height and width of pixel_values";
    wml_nn_enter(b, "*FeatureFusionLayer", "layers.%zu", i);
    struct wml_value *x = known ? known : state;
    const int64_t h = wml_nn_size(b, x, 2, what), w = wml_nn_size(b, x, 3, what);
    if (known) {
        const bool same = wml_nn_axis(state, 2).size == h && wml_nn_axis(state, 3).size == w;
        x = wml_nn_add(b, x, residual(b, p, "residual_layer1", same ? state : wml_nn_resize(b, state, "linear", false, h, w)));
    }
    x = residual(b, p, "residual_layer2", x);
    x = wml_nn_resize(b, x, "linear", true, next ? wml_nn_axis(next, 2).size : 2 * h, next ? wml_nn_axis(next, 3).size : 2 * w);
    x = wml_nn_conv(b, x, "projection", p->fusion, &(struct wml_nn_window){0});
    wml_nn_leave(b);
    return x;
}

static struct wml_value *neck(struct wml_nn *b, const struct params *p, const struct wml_dinov2_states *s)
{
    struct wml_value *state[STATES], *x = NULL;
    wml_nn_enter(b, "*Neck", "neck");
    wml_nn_enter(b, "*ReassembleStage", "reassemble_stage");
    for (size_t i = 0; i < STATES; i++) state[i] = reassemble(b, p, i, s);
    wml_nn_leave(b);
    for (size_t i = 0; i < STATES; i++) {
        char name[32];
        snprintf(name, sizeof name, "convs.%zu", i);
        state[i] = wml_nn_conv(b, state[i], name, p->fusion, &(struct wml_nn_window){.pad = 1});
    }
    wml_nn_enter(b, "*FeatureFusionStage", "fusion_stage");
    for (size_t i = 0; i < STATES && wml_nn_ok(b); i++) {
        const size_t at = STATES - 1 - i;
        x = fuse(b, p, i, x, state[at], at ? state[at - 1] : NULL);
    }
    wml_nn_leave(b);
    wml_nn_leave(b);
    return x;
}

static void depth(struct wml_family_job *j)
{
    struct wml_nn *b = j->nn;
    const struct params p = params_of(j);
    const struct wml_json_val *backbone = wml_json_get(j->cfg, "backbone_config");
    struct wml_dinov2_states s = {.n = STATES};
    const struct wml_str kind = wml_json_get_str(backbone, "model_type");
    if (!wml_str_is(kind, "dinov2")) {
        wml_nn_fail(b, WML_E_UNSUPPORTED, "config.json: the backbone is '%.*s', not dinov2", WML_ARG(kind));
        return;
    }
    struct wml_value *x = wml_family_pixels_by_preprocessor(j, 518);
    wml_nn_enter(b, "Dinov2Backbone", "backbone");
    if (!wml_dinov2_backbone(j, backbone, x, &s)) return;
    wml_nn_leave(b);
    x = neck(b, &p, &s);
    wml_nn_enter(b, "*DepthEstimationHead", "head");
    x = wml_nn_conv(b, x, "conv1", p.fusion / 2, &(struct wml_nn_window){.pad = 1});
    x = wml_nn_resize(b, x, "linear", true, s.grid[0] * s.patch, s.grid[1] * s.patch);
    x = wml_nn_unary(b, "Relu", wml_nn_conv(b, x, "conv2", p.head, &(struct wml_nn_window){.pad = 1}));
    x = wml_nn_unary(b, p.metric ? "Sigmoid" : "Relu", wml_nn_conv(b, x, "conv3", 1, &(struct wml_nn_window){0}));
    wml_nn_leave(b);
    wml_nn_output(b, "predicted_depth", wml_nn_squeeze(b, wml_nn_scale(b, x, p.max_depth), WML_DIMS(1)));
}

static const struct wml_family_type types[] = {{"depth_anything", "DepthAnything", NULL}, {NULL, NULL, NULL}};
static const struct wml_family_task tasks[] = {{"depth-estimation", "ForDepthEstimation", depth}, {NULL, NULL, NULL}};
const struct wml_family wml_family_depth_anything = {.name = "depth_anything", .type = types, .task = tasks};
