/* families/dpt.c - DPT (Ranftl et al. 2021): depth, or classes of pixels, from the states of four layers of a ViT, or of a DINOv2. */
#include "families/backbone.h"
#include "families/dinov2_body.h"
#include "families/dpt_neck.h"
#include "families/vit_body.h"
#include "nn/grid.h"

enum { MAX_LAYERS = 512 };

static struct wml_dpt_neck neck_of(struct wml_family_job *j)
{
    struct wml_dpt_neck p = {.n = 4, .width = {96, 192, 384, 768}, .fusion = 256, .act = wml_cfg_str(j, j->cfg, "hidden_act", "gelu")};
    const struct wml_str readout = wml_cfg_str(j, j->cfg, "readout_type", "project");
    wml_dpt_neck_params(j, &p);
    if (wml_str_is(readout, "project")) p.readout = WML_DPT_PROJECT;
    else if (wml_str_is(readout, "add")) p.readout = WML_DPT_ADD;
    else if (!wml_str_is(readout, "ignore"))
        wml_nn_fail(j->nn, WML_E_UNSUPPORTED, "config.json: readout_type '%.*s' is none of ignore, add, project", WML_ARG(readout));
    int64_t at = wml_cfg_int(j, j->cfg, "head_in_index", -1);
    if (at < 0) at += (int64_t)p.n;
    if (at < 0 || at >= (int64_t)p.n) wml_nn_fail(j->nn, WML_E_FORMAT, "config.json: head_in_index is beyond the %zu states", p.n);
    else p.fused = (size_t)at + 1;
    return p;
}

/* x with its table of positions, which are of a square: resized without the cubes of other families. */
static struct wml_value *add_positions(struct wml_nn *b, const struct wml_vit *p, struct wml_value *x, const int64_t grid[2])
{
    const int64_t n = p->image[0] / p->patch[0] * (p->image[1] / p->patch[1]), c = p->hidden;
    const struct wml_weight *w = wml_nn_need(b, "position_embeddings", WML_DIMS(1, n + 1, c));
    int64_t side = 1;
    while ((side + 1) * (side + 1) <= n) side++;
    if (side == grid[0] && side == grid[1]) return wml_nn_add(b, x, wml_nn_param_of(b, w));
    if (side * side != n) return wml_nn_fail(b, WML_E_UNSUPPORTED, "config.json: positions of a picture that is not square");
    const float *table = wml_nn_read(b, w);
    if (!table) return NULL;
    const float *places = wml_nn_resize_grid(b, table + c, (const int64_t[]){side, side}, grid, c, WML_NN_BILINEAR);
    if (!places) return NULL;
    const size_t rest = (size_t)(grid[0] * grid[1] * c);
    float *all = wml_nn_room(b, "positions", sizeof *all, WML_DIMS(1 + grid[0] * grid[1], c));
    if (!all) return NULL;
    memcpy(all, table, (size_t)c * sizeof *all);
    memcpy(all + c, places, rest * sizeof *all);
    return wml_nn_add(b, x, wml_nn_const(b, "position_embeddings.resized", WML_F32, WML_DIMS(1, 1 + grid[0] * grid[1], c), all));
}

static void not_hybrid(struct wml_family_job *j)
{
    if (wml_json_get_bool(j->cfg, "is_hybrid", false))
        wml_nn_fail(j->nn, WML_E_UNSUPPORTED, "config.json: is_hybrid, a DPT over a convolutional backbone, is not known yet");
}

/* Its encoder in the scope: the layers that backbone_out_indices names (from 0), and what the last gives. */
static struct wml_value *own_encoder(struct wml_family_job *j, const struct wml_vit *p, struct wml_value *pixels, size_t n, struct wml_dpt_states *s)
{
    struct wml_nn *b = j->nn;
    int64_t at[WML_DPT_STATES] = {2, 5, 8, 11};
    const struct wml_json_val *list = wml_json_get(j->cfg, "backbone_out_indices");
    if (n && wml_json_is_array(list) && wml_json_len(list) != n) return wml_nn_fail(b, WML_E_FORMAT, "config.json: backbone_out_indices has not %zu layers", n);
    for (size_t i = 0; i < n && wml_json_is_array(list); i++) at[i] = wml_json_int(wml_json_at(list, i), -1);
    for (size_t i = 0; i < n; i++)
        if (at[i] < 0 || at[i] >= p->layers || (i && at[i] <= at[i - 1]))
            return wml_nn_fail(b, WML_E_FORMAT, "config.json: backbone_out_indices are not layers of %lld, in order", (long long)p->layers);
    wml_nn_enter(b, "*ViTEmbeddings", "embeddings");
    struct wml_value *x = wml_vit_patches(b, p, pixels, s->grid);
    x = add_positions(b, p, wml_vit_prepend(b, (const char *const[]){"cls_token"}, 1, x), s->grid);
    wml_nn_leave(b);
    wml_nn_enter(b, "*ViTEncoder", "encoder");
    for (size_t i = 0, k = 0; i < (size_t)p->layers && (k < n || !n) && wml_nn_ok(b); i++) {
        x = wml_vit_layer(b, p, i, x);
        if (n && at[k] == (int64_t)i) s->state[k++] = x;
    }
    wml_nn_leave(b);
    s->hidden = p->hidden;
    return x;
}

static struct wml_vit vit_of(struct wml_family_job *j)
{
    struct wml_vit p = wml_vit_params(j);
    if (!wml_json_get(j->cfg, "image_size")) p.image[0] = p.image[1] = 384;
    return p;
}

static void other_backbone(struct wml_family_job *j, const struct wml_json_val *cfg, size_t n, struct wml_dpt_states *s)
{
    struct wml_dinov2_states d = {.n = n};
    const struct wml_str kind = wml_json_get_str(cfg, "model_type");
    if (!wml_str_is(kind, "dinov2")) {
        wml_nn_fail(j->nn, WML_E_UNSUPPORTED, "config.json: the backbone is '%.*s', but only dinov2 is known", WML_ARG(kind));
        return;
    }
    wml_backbone_channels(j, cfg);
    struct wml_value *x = wml_family_pixels_by_preprocessor(j, wml_cfg_size(j, cfg, "image_size", 224));
    wml_nn_enter(j->nn, "Dinov2Backbone", "backbone");
    if (!wml_dinov2_backbone(j, cfg, x, &d)) return;
    wml_nn_leave(j->nn);
    *s = (struct wml_dpt_states){.grid = {d.grid[0], d.grid[1]}, .hidden = d.hidden};
    for (size_t i = 0; i < n; i++) s->state[i] = d.state[i];
}

/* [batch, fusion, height, width] */
static struct wml_value *joined(struct wml_family_job *j, const struct wml_dpt_neck *p, bool may_be_other)
{
    struct wml_dpt_states s = {.hidden = 1};
    const struct wml_json_val *backbone = wml_json_get(j->cfg, "backbone_config");
    not_hybrid(j);
    if (j->nn->failed) return NULL;
    if (may_be_other && wml_json_is_object(backbone)) {
        other_backbone(j, backbone, p->n, &s);
    } else {
        const struct wml_vit v = vit_of(j);
        struct wml_value *x = wml_family_pixels(j, 384);
        wml_nn_enter(j->nn, "*Model", "%s", j->type->base);
        own_encoder(j, &v, x, p->n, &s);
        wml_nn_leave(j->nn);
    }
    return wml_nn_ok(j->nn) ? wml_dpt_neck(j->nn, p, &s) : NULL;
}

static void depth(struct wml_family_job *j)
{
    struct wml_nn *b = j->nn;
    const struct wml_dpt_neck p = neck_of(j);
    const struct wml_nn_window same = {.pad = 1};
    struct wml_value *x = joined(j, &p, true);
    wml_nn_enter(b, "*DepthEstimationHead", "head");
    if (wml_json_get_bool(j->cfg, "add_projection", false)) x = wml_nn_unary(b, "Relu", wml_nn_conv(b, x, "projection", 256, &same));
    x = wml_nn_resize_by(b, wml_nn_conv(b, x, "head.0", p.fusion / 2, &same), "linear", true, 2);
    x = wml_nn_unary(b, "Relu", wml_nn_conv(b, x, "head.2", 32, &same));
    x = wml_nn_unary(b, "Relu", wml_nn_conv(b, x, "head.4", 1, &(struct wml_nn_window){0}));
    wml_nn_leave(b);
    wml_nn_output(b, "predicted_depth", wml_nn_squeeze(b, x, WML_DIMS(1)));
}

static void segmentation(struct wml_family_job *j)
{
    struct wml_nn *b = j->nn;
    const struct wml_dpt_neck p = neck_of(j);
    struct wml_value *x = joined(j, &p, false);
    wml_nn_enter(b, "*SemanticSegmentationHead", "head");
    x = wml_nn_unary(b, "Relu", wml_nn_conv_bn(b, x, "head.0", "head.1", 1e-5, p.fusion, &(struct wml_nn_window){.pad = 1}));
    x = wml_nn_conv(b, x, "head.4", wml_cfg_labels(j, j->cfg), &(struct wml_nn_window){0});
    x = wml_nn_resize_by(b, x, "linear", true, 2);
    wml_nn_leave(b);
    wml_nn_output(b, "logits", x);
}

static void features(struct wml_family_job *j)
{
    struct wml_dpt_states s = {.hidden = 1};
    const struct wml_vit p = vit_of(j);
    not_hybrid(j);
    struct wml_value *x = own_encoder(j, &p, wml_family_pixels(j, 384), 0, &s);
    wml_nn_output(j->nn, "last_hidden_state", wml_nn_layer_norm(j->nn, x, "layernorm", p.eps));
}

static const struct wml_family_type types[] = {{"dpt", "DPT", "dpt"}, {NULL, NULL, NULL}};
static const struct wml_family_task tasks[] = {
    {"depth-estimation", "ForDepthEstimation", depth},
    {"image-segmentation", "ForSemanticSegmentation", segmentation},
    {"image-feature-extraction", "Model", features},
    {NULL, NULL, NULL},
};
const struct wml_family wml_family_dpt = {.name = "dpt", .type = types, .task = tasks};
