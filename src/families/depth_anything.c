/* families/depth_anything.c - Depth Anything (Yang et al. 2024): depth from the states of four layers of DINOv2, joined from the
 * last to the first as in DPT. */
#include "families/backbone.h"
#include "families/dinov2_body.h"
#include "families/dpt_neck.h"

struct params {
    struct wml_dpt_neck neck;
    int64_t head;
    double max_depth;
    bool metric;
};

static struct params params_of(struct wml_family_job *j)
{
    const struct wml_json_val *c = j->cfg;
    struct params p = {.neck = {.n = 4, .width = {48, 96, 192, 384}, .fusion = 64, .to_next = true},
                       .head = wml_cfg_size(j, c, "head_hidden_size", 32), .max_depth = wml_cfg_num(j, c, "max_depth", 1),
                       .metric = wml_str_is(wml_cfg_str(j, c, "depth_estimation_type", "relative"), "metric")};
    wml_dpt_neck_params(j, &p.neck);
    return p;
}

static void depth(struct wml_family_job *j)
{
    struct wml_nn *b = j->nn;
    const struct params p = params_of(j);
    const struct wml_json_val *backbone = wml_json_get(j->cfg, "backbone_config");
    struct wml_dinov2_states s = {.n = p.neck.n};
    const struct wml_str kind = wml_json_get_str(backbone, "model_type");
    if (!wml_str_is(kind, "dinov2")) {
        wml_nn_fail(b, WML_E_UNSUPPORTED, "config.json: the backbone is '%.*s', not dinov2", WML_ARG(kind));
        return;
    }
    wml_backbone_channels(j, backbone);
    struct wml_value *x = wml_family_pixels_by_preprocessor(j, 518);
    wml_nn_enter(b, "Dinov2Backbone", "backbone");
    if (!wml_dinov2_backbone(j, backbone, x, &s)) return;
    wml_nn_leave(b);
    struct wml_dpt_states states = {.grid = {s.grid[0], s.grid[1]}, .hidden = s.hidden};
    for (size_t i = 0; i < s.n; i++) states.state[i] = s.state[i];
    x = wml_dpt_neck(b, &p.neck, &states);
    wml_nn_enter(b, "*DepthEstimationHead", "head");
    x = wml_nn_conv(b, x, "conv1", p.neck.fusion / 2, &(struct wml_nn_window){.pad = 1});
    x = wml_nn_resize(b, x, "linear", true, s.grid[0] * s.patch, s.grid[1] * s.patch);
    x = wml_nn_unary(b, "Relu", wml_nn_conv(b, x, "conv2", p.head, &(struct wml_nn_window){.pad = 1}));
    x = wml_nn_unary(b, p.metric ? "Sigmoid" : "Relu", wml_nn_conv(b, x, "conv3", 1, &(struct wml_nn_window){0}));
    wml_nn_leave(b);
    wml_nn_output(b, "predicted_depth", wml_nn_squeeze(b, wml_nn_scale(b, x, p.max_depth), WML_DIMS(1)));
}

static const struct wml_family_type types[] = {{"depth_anything", "DepthAnything", NULL}, {NULL, NULL, NULL}};
static const struct wml_family_task tasks[] = {{"depth-estimation", "ForDepthEstimation", depth}, {NULL, NULL, NULL}};
const struct wml_family wml_family_depth_anything = {.name = "depth_anything", .type = types, .task = tasks};
