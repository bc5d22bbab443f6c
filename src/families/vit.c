/* families/vit.c - ViT (Dosovitskiy et al. 2020) and DeiT (Touvron et al. 2020), which has a second token for a teacher. */
#include "families/vit_body.h"

static bool is_deit(const struct wml_family_job *j)
{
    return strcmp(j->type->model_type, "deit") == 0;
}

static const char *const tokens[] = {"cls_token", "distillation_token"};

/* The bare model: [batch, tokens + places, hidden]. */
static struct wml_value *body(struct wml_family_job *j, const struct wml_vit *p, struct wml_value *pixels, int64_t grid[2])
{
    struct wml_nn *b = j->nn;
    const size_t front = is_deit(j) ? 2 : 1;
    const int64_t stored[2] = {p->image[0] / p->patch[0], p->image[1] / p->patch[1]};
    wml_nn_enter(b, "*Embeddings", "embeddings");
    struct wml_value *x = wml_vit_prepend(b, tokens, front, wml_vit_patches(b, p, pixels, grid));
    x = wml_vit_add_positions(b, x, (int64_t)front, 0, stored, grid, p->hidden);
    wml_nn_leave(b);
    return wml_nn_layer_norm(b, wml_vit_encoder(b, p, x), "layernorm", p->eps);
}

static struct wml_value *encoder(struct wml_family_job *j, const struct wml_vit *p, int64_t grid[2])
{
    struct wml_value *x = wml_family_pixels(j, 224);
    wml_nn_enter(j->nn, "*Model", "%s", j->type->base);
    x = body(j, p, x, grid);
    wml_nn_leave(j->nn);
    return x;
}

static void features(struct wml_family_job *j)
{
    int64_t grid[2];
    const struct wml_vit p = wml_vit_params(j);
    wml_nn_output(j->nn, "last_hidden_state", body(j, &p, wml_family_pixels(j, 224), grid));
}

/* DeiT with a teacher: the mean of a head on each token. */
static void classification(struct wml_family_job *j)
{
    struct wml_nn *b = j->nn;
    int64_t grid[2];
    const struct wml_vit p = wml_vit_params(j);
    const int64_t labels = wml_cfg_labels(j, j->cfg);
    struct wml_value *x = encoder(j, &p, grid), *first = wml_nn_pick(b, x, 1, 0);
    if (!is_deit(j) || !wml_nn_has(b, "cls_classifier.weight")) {
        wml_nn_output(b, "logits", wml_nn_linear(b, first, "classifier", labels));
        return;
    }
    struct wml_value *y = wml_nn_linear(b, first, "cls_classifier", labels);
    y = wml_nn_add(b, y, wml_nn_linear(b, wml_nn_pick(b, x, 1, 1), "distillation_classifier", labels));
    wml_nn_output(b, "logits", wml_nn_scale(b, y, 0.5));
}

/* Every place becomes a square of pixels; in DeiT's class what comes behind the first token, as many as there are places. */
static void masked_image(struct wml_family_job *j)
{
    struct wml_nn *b = j->nn;
    int64_t grid[2];
    const struct wml_vit p = wml_vit_params(j);
    const int64_t stride = wml_cfg_size(j, j->cfg, "encoder_stride", 16);
    struct wml_value *x = encoder(j, &p, grid);
    if (b->failed) return;
    x = wml_nn_slice(b, x, 1, 1, 1 + grid[0] * grid[1]);
    x = wml_nn_conv(b, wml_vit_to_image(b, x, grid, p.hidden), "decoder.0", stride * stride * p.channels, &(struct wml_nn_window){0});
    wml_nn_output(b, "reconstruction", wml_nn_pixel_shuffle(b, x, stride));
}

static const struct wml_family_type types[] = {{"vit", "ViT", "vit"}, {"deit", "DeiT", "deit"}, {NULL, NULL, NULL}};
static const struct wml_family_task tasks[] = {
    {"image-classification", "ForImageClassification", classification},
    {"image-feature-extraction", "Model", features},
    {"masked-im", "ForMaskedImageModeling", masked_image},
    {NULL, NULL, NULL},
};
const struct wml_family wml_family_vit = {.name = "vit", .type = types, .task = tasks};
