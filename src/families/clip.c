/* families/clip.c - CLIP (Radford et al. 2021): texts and pictures in one space; either tower alone, or both and how they
 * fit. */
#include <math.h>
#include "families/clip_body.h"

static struct wml_value *text_input(struct wml_family_job *j, const struct wml_clip *p, const char *name, double high)
{
    const int64_t length = j->size[WML_SIZE_SEQUENCE] ? j->size[WML_SIZE_SEQUENCE] : p->positions;
    return wml_family_input(j, name, WML_I32, WML_DIMS(j->batch, length), 0, high);
}

/* The token that stands for the whole text: the first end of text. Old configs name 2 there; then it is the largest id. */
static struct wml_value *last_token(struct wml_family_job *j, const struct wml_json_val *cfg, struct wml_value *x, struct wml_value *ids)
{
    struct wml_nn *b = j->nn;
    const int64_t eos = wml_cfg_int(j, cfg, "eos_token_id", 49407);
    if (eos != 2) {
        struct wml_value *is = wml_nn_compare(b, "Equal", ids, ids ? wml_nn_int(b, wml_value_elem(ids), eos) : NULL);
        ids = wml_nn_cast(b, is, WML_I32);
    }
    return wml_nn_pick_each(b, x, wml_nn_argmax(b, ids, 1, false));
}

/* "text_model" and "text_projection": the embedding; *hidden: every token. */
static struct wml_value *text(struct wml_family_job *j, const struct wml_clip *p, struct wml_value *ids, struct wml_value *mask,
                              struct wml_value **hidden)
{
    struct wml_nn *b = j->nn;
    wml_nn_enter(b, "*TextTransformer", "text_model");
    struct wml_value *x = wml_clip_words(b, p, ids);
    x = wml_clip_encoder(b, p, x, wml_nn_causal_mask(b, ids, mask));
    x = wml_nn_layer_norm(b, x, "final_layer_norm", p->eps);
    struct wml_value *pooled = last_token(j, wml_clip_config(j, true), x, ids);
    wml_nn_leave(b);
    if (hidden) *hidden = x;
    return wml_nn_linear(b, pooled, "text_projection", p->projection);
}

/* Every token of a picture; stays in the scope "vision_model". */
static struct wml_value *places(struct wml_nn *b, const struct wml_clip *p, struct wml_value *pixels)
{
    wml_nn_enter(b, "*VisionTransformer", "vision_model");
    struct wml_value *x = wml_clip_patches(b, p, pixels, true);
    return wml_clip_encoder(b, p, wml_nn_layer_norm(b, x, "pre_layrnorm", p->eps), NULL); /* so spelled in every checkpoint */
}

static struct wml_value *vision(struct wml_nn *b, const struct wml_clip *p, struct wml_value *pixels, struct wml_value **hidden)
{
    struct wml_value *x = places(b, p, pixels);
    struct wml_value *pooled = wml_nn_layer_norm(b, wml_nn_pick(b, x, 1, 0), "post_layernorm", p->eps);
    wml_nn_leave(b);
    if (hidden) *hidden = x;
    return wml_nn_linear(b, pooled, "visual_projection", p->projection);
}

static void features(struct wml_family_job *j)
{
    const bool pictures = wml_clip_is_vision(j);
    const struct wml_clip p = wml_clip_params(j, wml_clip_config(j, !pictures), "quick_gelu", 1e-5);
    struct wml_value *hidden = NULL, *x;
    if (pictures) {
        x = vision(j->nn, &p, wml_clip_pixels(j, &p), &hidden);
    } else {
        struct wml_value *ids = text_input(j, &p, "input_ids", (double)p.vocab);
        x = text(j, &p, ids, text_input(j, &p, "attention_mask", 2), &hidden);
    }
    wml_nn_output(j->nn, pictures ? "image_embeds" : "text_embeds", x);
    wml_nn_output(j->nn, "last_hidden_state", hidden);
}

static void fit(struct wml_family_job *j)
{
    struct wml_nn *b = j->nn;
    const struct wml_clip t = wml_clip_params(j, wml_clip_config(j, true), "quick_gelu", 1e-5);
    const struct wml_clip v = wml_clip_params(j, wml_clip_config(j, false), "quick_gelu", 1e-5);
    struct wml_value *ids = text_input(j, &t, "input_ids", (double)t.vocab);
    struct wml_value *pixels = wml_clip_pixels(j, &v), *mask = text_input(j, &t, "attention_mask", 2);
    struct wml_value *image = wml_clip_unit(b, vision(b, &v, pixels, NULL)), *words = wml_clip_unit(b, text(j, &t, ids, mask, NULL));
    const float *scale = wml_nn_read(b, wml_nn_need(b, "logit_scale", 0, NULL));
    struct wml_value *per_text = wml_nn_scale(b, wml_nn_matmul(b, words, wml_nn_transpose(b, image, "10")), scale ? exp((double)*scale) : 1);
    wml_nn_output(b, "logits_per_image", wml_nn_transpose(b, per_text, "10"));
    wml_nn_output(b, "logits_per_text", per_text);
    wml_nn_output(b, "text_embeds", words);
    wml_nn_output(b, "image_embeds", image);
}

/* The tower of pictures with a linear layer over the mean of its places. */
static void classification(struct wml_family_job *j)
{
    struct wml_nn *b = j->nn;
    const struct wml_clip p = wml_clip_params(j, wml_clip_config(j, false), "quick_gelu", 1e-5);
    struct wml_value *x = places(b, &p, wml_clip_pixels(j, &p));
    wml_nn_leave(b);
    x = wml_nn_reduce(b, "ReduceMean", wml_nn_slice(b, x, 1, 1, INT64_MAX), WML_DIMS(1), false);
    wml_nn_output(b, "logits", wml_nn_linear(b, x, "classifier", wml_cfg_labels(j, j->cfg)));
}

static const struct wml_family_type types[] = {
    {"clip", "CLIP", NULL}, {"clip_text_model", "CLIP", NULL}, {"clip_vision_model", "CLIP", NULL}, {NULL, NULL, NULL}};
static const struct wml_family_task tasks[] = {
    {"feature-extraction", "=CLIPTextModelWithProjection", features},
    {"image-feature-extraction", "=CLIPVisionModelWithProjection", features},
    {"zero-shot-image-classification", "Model", fit},
    {"image-classification", "ForImageClassification", classification},
    {NULL, NULL, NULL},
};
static const struct wml_family_composite composites[] = {
    {"zero-shot-image-classification", {{"image-encoder", "image-feature-extraction"}, {"text-encoder", "feature-extraction"}, {NULL, NULL}}},
    {NULL, {{NULL, NULL}}},
};
const struct wml_family wml_family_clip = {.name = "clip", .type = types, .task = tasks, .composite = composites};
