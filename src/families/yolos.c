/* families/yolos.c - YOLOS (Fang et al. 2021): a ViT whose last tokens are detections. */
#include "families/box_head.h"
#include "families/vit_body.h"
#include "nn/grid.h"

struct yolos {
    struct wml_vit vit;
    int64_t detections, stored[2], grid[2];
    bool mid; /* positions are added after every layer, too */
};

/* Positions of layer i: one table for all layers, [layers - 1, 1, tokens, hidden]. */
static struct wml_value *add_mid(struct wml_nn *b, const struct yolos *p, size_t i, struct wml_value *x)
{
    const int64_t places = p->stored[0] * p->stored[1], now = p->grid[0] * p->grid[1], wide = p->vit.hidden;
    const int64_t tokens = 1 + places + p->detections, dims[3] = {1, 1 + now + p->detections, wide};
    const float *all = wml_nn_read(b, wml_nn_need(b, "mid_position_embeddings", WML_DIMS(p->vit.layers - 1, 1, tokens, wide)));
    if (!all) return NULL;
    const float *out = wml_nn_resize_places(b, all + (int64_t)i * tokens * wide, 1, p->detections, p->stored, p->grid, wide, WML_NN_BICUBIC);
    if (!out) return NULL;
    return wml_nn_add(b, x, wml_nn_const(b, "mid_position_embeddings", WML_F32, 3, dims, out));
}

static struct wml_value *body(struct wml_nn *b, struct yolos *p, struct wml_value *pixels)
{
    wml_nn_enter(b, "*Embeddings", "embeddings");
    struct wml_value *x = wml_vit_patches(b, &p->vit, pixels, p->grid);
    struct wml_value *first = wml_nn_repeat(b, wml_nn_param(b, "cls_token", WML_DIMS(1, 1, p->vit.hidden)), 0, x, 0);
    struct wml_value *last = wml_nn_repeat(b, wml_nn_param(b, "detection_tokens", WML_DIMS(1, p->detections, p->vit.hidden)), 0, x, 0);
    x = wml_nn_concat(b, 1, WML_VALUES(first, x, last));
    x = wml_vit_add_positions(b, x, 1, p->detections, p->stored, p->grid, p->vit.hidden);
    wml_nn_leave(b);
    wml_nn_enter(b, "*Encoder", "encoder");
    for (size_t i = 0; i < (size_t)p->vit.layers && wml_nn_ok(b); i++) {
        x = wml_vit_layer(b, &p->vit, i, x);
        if (p->mid && i + 1 < (size_t)p->vit.layers) x = add_mid(b, p, i, x);
    }
    wml_nn_leave(b);
    return wml_nn_layer_norm(b, x, "layernorm", p->vit.eps);
}

static struct yolos params_of(struct wml_family_job *j)
{
    struct yolos p = {.vit = wml_vit_params(j), .detections = wml_cfg_size(j, j->cfg, "num_detection_tokens", 100),
                      .mid = wml_json_get_bool(j->cfg, "use_mid_position_embeddings", true)};
    for (size_t i = 0; i < 2; i++) p.stored[i] = p.vit.image[i] / p.vit.patch[i];
    return p;
}

static void features(struct wml_family_job *j)
{
    struct yolos p = params_of(j);
    wml_nn_output(j->nn, "last_hidden_state", body(j->nn, &p, wml_family_pixels(j, 512)));
}

static void detection(struct wml_family_job *j)
{
    struct wml_nn *b = j->nn;
    struct yolos p = params_of(j);
    struct wml_value *x = wml_family_pixels(j, 512);
    wml_nn_enter(b, "*Model", "%s", j->type->base);
    x = wml_nn_slice(b, body(b, &p, x), 1, -p.detections, INT64_MAX);
    wml_nn_leave(b);
    const int64_t labels = wml_cfg_labels(j, j->cfg) + 1;
    x = wml_nn_reshape(b, x, WML_DIMS(-1, p.vit.hidden));
    struct wml_value *kind = wml_box_head(b, "class_labels_classifier", x, p.vit.hidden, labels);
    struct wml_value *box = wml_nn_unary(b, "Sigmoid", wml_box_head(b, "bbox_predictor", x, p.vit.hidden, 4));
    wml_nn_output(b, "logits", wml_nn_reshape(b, kind, WML_DIMS(-1, p.detections, labels)));
    wml_nn_output(b, "pred_boxes", wml_nn_reshape(b, box, WML_DIMS(-1, p.detections, 4)));
}

static const struct wml_family_type types[] = {{"yolos", "Yolos", "vit"}, {NULL, NULL, NULL}};
static const struct wml_family_task tasks[] = {
    {"object-detection", "ForObjectDetection", detection},
    {"image-feature-extraction", "Model", features},
    {NULL, NULL, NULL},
};
const struct wml_family wml_family_yolos = {.name = "yolos", .type = types, .task = tasks};
