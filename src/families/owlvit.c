/* families/owlvit.c - OWL-ViT (Minderer et al. 2022) and OWLv2: what texts name is found in pictures. CLIP's towers; every patch
 * of the picture is a box, which is compared with every text. */
#include <math.h>
#include "families/clip_body.h"

static struct wml_clip params(struct wml_family_job *j, bool text)
{
    const struct wml_json_val *c = wml_clip_config(j, text);
    struct wml_clip p = wml_clip_params(j, c, "quick_gelu", 1e-5);
    if (text) p.positions = wml_cfg_size(j, c, "max_position_embeddings", 16);
    else p.patch = wml_cfg_size(j, c, "patch_size", strcmp(j->type->model_type, "owlv2") == 0 ? 16 : 32);
    if (!text) wml_cfg_pair(j, c, "image_size", 768, p.image);
    return p;
}

/* The texts' embeddings, of length 1: [texts, projection]. */
static struct wml_value *text(struct wml_nn *b, const struct wml_clip *p, struct wml_value *ids, struct wml_value *mask)
{
    wml_nn_enter(b, "*TextTransformer", "text_model");
    struct wml_value *x = wml_clip_words(b, p, ids);
    x = wml_clip_encoder(b, p, x, wml_nn_causal_mask(b, ids, mask));
    x = wml_nn_layer_norm(b, x, "final_layer_norm", p->eps);
    x = wml_nn_pick_each(b, x, wml_nn_argmax(b, ids, 1, false)); /* the largest id ends a text */
    wml_nn_leave(b);
    return wml_clip_unit(b, wml_nn_linear(b, x, "text_projection", p->projection));
}

/* Every token of the picture, the first for the whole of it. */
static struct wml_value *vision(struct wml_nn *b, const struct wml_clip *p, struct wml_value *pixels)
{
    wml_nn_enter(b, "*VisionTransformer", "vision_model");
    struct wml_value *x = wml_clip_patches(b, p, pixels, true);
    x = wml_clip_encoder(b, p, wml_nn_layer_norm(b, x, "pre_layernorm", p->eps), NULL);
    x = wml_nn_layer_norm(b, x, "post_layernorm", p->eps);
    wml_nn_leave(b);
    return x;
}

/* x [texts, n] as [pictures, texts of each, n]: every picture has as many. */
static struct wml_value *for_pictures(struct wml_nn *b, struct wml_value *x, struct wml_value *pixels, int64_t n)
{
    const struct wml_axis batch = wml_nn_axis(pixels, 0), texts = wml_nn_axis(x, 0);
    const int64_t rest = -1;
    if (b->failed) return NULL;
    if (batch.size >= 0 && texts.size >= 0 && texts.size % WML_MAX(batch.size, 1))
        return wml_nn_fail(b, WML_E_USAGE, "input_ids: %lld texts for %lld pictures, but every picture must have as many", (long long)texts.size,
                           (long long)batch.size);
    if (batch.size >= 0) return wml_nn_reshape(b, x, WML_DIMS(batch.size, texts.size >= 0 ? texts.size / batch.size : -1, n));
    const struct wml_nn_shape s = {3, {batch, {.size = -1}, {.size = n}}};
    return wml_nn_reshape_to(b, x, WML_VALUES(wml_nn_extent(b, pixels, 0), wml_nn_ints(b, 1, &rest), wml_nn_ints(b, 1, &n)), &s);
}

/* x / (|x| + 1e-6) */
static struct wml_value *direction(struct wml_nn *b, struct wml_value *x)
{
    return wml_nn_div(b, x, wml_nn_shift(b, wml_nn_reduce(b, "ReduceL2", x, WML_DIMS(-1), true), 1e-6));
}

/* How well each text fits each place: [pictures, places, texts]. A text whose first id is 0 is there to fill up. */
static struct wml_value *scores(struct wml_nn *b, struct wml_value *places, struct wml_value *texts, struct wml_value *first, int64_t width)
{
    wml_nn_enter(b, "*ClassPredictionHead", "class_head");
    struct wml_value *x = direction(b, wml_nn_linear(b, places, "dense0", width));
    x = wml_nn_matmul(b, x, wml_nn_transpose(b, direction(b, texts), "021"));
    x = wml_nn_add(b, x, wml_nn_linear(b, places, "logit_shift", 1));
    x = wml_nn_mul(b, x, wml_nn_shift(b, wml_nn_unary(b, "Elu", wml_nn_linear(b, places, "logit_scale", 1)), 1));
    struct wml_value *filler = wml_nn_sub(b, wml_nn_float(b, 1), wml_nn_clip(b, wml_nn_cast(b, first, WML_F32), 0, 1));
    x = wml_nn_add(b, x, wml_nn_scale(b, wml_nn_transpose(b, filler, "021"), WML_NN_MASKED));
    wml_nn_leave(b);
    return x;
}

static double logit(double x)
{
    return log(x + 1e-4) - log1p(-x + 1e-4);
}

/* A box is where its patch ends and as large as a patch, unless it says otherwise. */
static struct wml_value *boxes(struct wml_nn *b, struct wml_value *places, int64_t hidden, const int64_t grid[2])
{
    const int64_t n = grid[0] * grid[1];
    float *usual = wml_nn_room(b, "boxes", sizeof *usual, WML_DIMS(4, grid[0], grid[1]));
    if (!usual) return NULL;
    for (int64_t i = 0; i < n; i++) {
        usual[4 * i] = (float)logit((double)(i % grid[1] + 1) / (double)grid[1]);
        usual[4 * i + 1] = (float)logit((double)(i / grid[1] + 1) / (double)grid[0]);
        usual[4 * i + 2] = (float)logit(1 / (double)grid[1]);
        usual[4 * i + 3] = (float)logit(1 / (double)grid[0]);
    }
    wml_nn_enter(b, "*BoxPredictionHead", "box_head");
    struct wml_value *x = wml_nn_gelu(b, wml_nn_linear(b, places, "dense0", hidden));
    x = wml_nn_linear(b, wml_nn_gelu(b, wml_nn_linear(b, x, "dense1", hidden)), "dense2", 4);
    wml_nn_leave(b);
    return wml_nn_unary(b, "Sigmoid", wml_nn_add(b, x, wml_nn_const(b, "box_bias", WML_F32, WML_DIMS(n, 4), usual)));
}

static void detection(struct wml_family_job *j)
{
    struct wml_nn *b = j->nn;
    const struct wml_clip t = params(j, true), v = params(j, false);
    const int64_t length = j->size[WML_SIZE_SEQUENCE] ? j->size[WML_SIZE_SEQUENCE] : WML_MIN(t.positions, 16);
    struct wml_value *ids = wml_family_input(j, "input_ids", WML_I32, WML_DIMS(j->batch, length), 0, (double)t.vocab);
    struct wml_value *pixels = wml_clip_pixels(j, &v);
    struct wml_value *mask = wml_family_input(j, "attention_mask", WML_I32, WML_DIMS(j->batch, length), 0, 2);
    static const char *const what = "the height and width of pixel_values";
    const int64_t grid[2] = {wml_nn_size(b, pixels, 2, what) / v.patch, wml_nn_size(b, pixels, 3, what) / v.patch};
    wml_nn_enter(b, "*Model", "%s", j->type->base);
    struct wml_value *words = for_pictures(b, text(b, &t, ids, mask), pixels, t.projection), *x = vision(b, &v, pixels);
    wml_nn_leave(b);
    struct wml_value *part[2];
    wml_nn_split_sizes(b, x, 1, 2, (const int64_t[]){1, grid[0] * grid[1]}, part);
    x = wml_nn_mul(b, part[1], part[0]);
    x = wml_nn_layer_norm(b, x, "layer_norm", v.eps);
    struct wml_value *first = for_pictures(b, wml_nn_slice(b, ids, 1, 0, 1), pixels, 1);
    wml_nn_output(b, "logits", scores(b, x, words, first, t.hidden));
    wml_nn_output(b, "pred_boxes", boxes(b, x, v.hidden, grid));
    wml_nn_output(b, "text_embeds", words);
    wml_nn_output(b, "image_embeds", wml_nn_reshape(b, x, WML_DIMS(0, grid[0], grid[1], v.hidden)));
}

static const struct wml_family_type types[] = {{"owlvit", "OwlViT", "owlvit"}, {"owlv2", "Owlv2", "owlv2"}, {NULL, NULL, NULL}};
static const struct wml_family_task tasks[] = {
    {"zero-shot-object-detection", "ForObjectDetection", detection},
    {NULL, NULL, NULL},
};
const struct wml_family wml_family_owlvit = {.name = "owlvit", .type = types, .task = tasks};
