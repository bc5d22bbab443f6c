/* families/siglip.c - SigLIP (Zhai et al. 2023): as CLIP, but texts see both ways and end with their last token, and a
 * picture is read by attention of one learned query. */
#include <math.h>
#include "families/clip_body.h"

static struct wml_value *text(struct wml_nn *b, const struct wml_clip *p, struct wml_value *ids, int64_t out, struct wml_value **hidden)
{
    wml_nn_enter(b, "*TextTransformer", "text_model");
    struct wml_value *x = wml_clip_encoder(b, p, wml_clip_words(b, p, ids), NULL);
    x = wml_nn_layer_norm(b, x, "final_layer_norm", p->eps);
    if (hidden) *hidden = x;
    x = wml_nn_linear(b, wml_nn_pick(b, x, 1, -1), "head", out);
    wml_nn_leave(b);
    return x;
}

/* The query is a weight: what its projection gives is known, [1, heads, 1, size], scaled. */
static struct wml_value *projected_query(struct wml_nn *b, const struct wml_weight *probe, const struct wml_weight *weight,
                                         const struct wml_weight *bias, int64_t n, int64_t heads)
{
    const float *scale = wml_nn_query_scales(b, n, heads, n);
    const float *q = wml_nn_read(b, probe), *w = wml_nn_read(b, wml_nn_part(b, weight, 0, n)), *a = wml_nn_read(b, bias);
    if (b->failed || !q || !w || !a || !scale) return NULL;
    float *out = wml_nn_room(b, "pooling query", sizeof *out, WML_DIMS(n));
    if (!out) return NULL;
    for (int64_t i = 0; i < n; i++) {
        double sum = a[i];
        for (int64_t k = 0; k < n; k++) sum += (double)q[k] * w[i * n + k];
        out[i] = (float)(sum * scale[i]);
    }
    return wml_nn_const(b, "query", WML_F32, WML_DIMS(1, heads, 1, n / heads), out);
}

static struct wml_value *pooled(struct wml_nn *b, const struct wml_clip *p, struct wml_value *x)
{
    const int64_t n = p->hidden;
    wml_nn_enter(b, "*MultiheadAttentionPoolingHead", "head");
    const struct wml_weight *probe = wml_nn_need(b, "probe", WML_DIMS(1, 1, n));
    wml_nn_enter_layer(b, "MultiheadAttention", "attention");
    const struct wml_weight *w = wml_nn_need(b, "in_proj_weight", WML_DIMS(3 * n, n)), *bias = wml_nn_need(b, "in_proj_bias", WML_DIMS(3 * n));
    struct wml_value *k = wml_nn_linear_with(b, x, wml_nn_part(b, w, n, 2 * n), NULL); /* whose bias softmax would take away */
    struct wml_value *v = wml_nn_linear_with(b, x, wml_nn_part(b, w, 2 * n, 3 * n), wml_nn_part(b, bias, 2 * n, 3 * n));
    const struct wml_nn_attention a = {.q = projected_query(b, probe, w, bias, n, p->heads), .k = wml_nn_split_turned(b, k, p->heads),
                                       .v = wml_nn_split_heads(b, v, p->heads), .heads = p->heads, .scale = 1, .turned = true};
    x = wml_nn_linear(b, wml_nn_join_heads(b, wml_nn_attention_heads(b, &a)), "out_proj", n);
    wml_nn_leave(b);
    struct wml_value *y = wml_nn_layer_norm(b, x, "layernorm", p->eps);
    y = wml_clip_mlp(b, y, p->inner, n, p->act);
    x = wml_nn_pick(b, wml_nn_add(b, x, y), 1, 0);
    wml_nn_leave(b);
    return x;
}

static struct wml_value *vision(struct wml_nn *b, const struct wml_clip *p, struct wml_value *pixels, struct wml_value **hidden)
{
    wml_nn_enter(b, "*VisionTransformer", "vision_model");
    struct wml_value *x = wml_clip_encoder(b, p, wml_clip_patches(b, p, pixels, false), NULL);
    x = wml_nn_layer_norm(b, x, "post_layernorm", p->eps);
    if (hidden) *hidden = x;
    if (b->sketch ? p->pooled : wml_nn_has(b, "head.probe")) x = pooled(b, p, x);
    wml_nn_leave(b);
    return x;
}

static struct wml_clip params_of(struct wml_family_job *j, bool words)
{
    const struct wml_json_val *c = wml_clip_config(j, words);
    struct wml_clip p = wml_clip_params(j, c, "gelu_pytorch_tanh", 1e-6);
    if (words && !wml_json_get(c, "max_position_embeddings")) p.positions = 64;
    if (!words && !wml_json_get(c, "patch_size")) p.patch = 16;
    p.projection = wml_cfg_size(j, c, "projection_size", p.hidden);
    p.pooled = wml_json_get_bool(c, "vision_use_head", true);
    return p;
}

static struct wml_value *text_input(struct wml_family_job *j, const struct wml_clip *p)
{
    const int64_t length = j->size[WML_SIZE_SEQUENCE] ? j->size[WML_SIZE_SEQUENCE] : p->positions;
    return wml_family_input(j, "input_ids", WML_I32, WML_DIMS(j->batch, length), 0, (double)p->vocab);
}

static void features(struct wml_family_job *j)
{
    struct wml_nn *b = j->nn;
    const bool pictures = wml_clip_is_vision(j);
    const struct wml_clip p = params_of(j, !pictures);
    struct wml_value *hidden = NULL, *x;
    if (pictures) x = vision(b, &p, wml_clip_pixels(j, &p), &hidden);
    else x = text(b, &p, text_input(j, &p), p.projection, &hidden);
    wml_nn_output(b, "last_hidden_state", hidden);
    if (x != hidden) wml_nn_output(b, "pooler_output", x);
}

static void fit(struct wml_family_job *j)
{
    struct wml_nn *b = j->nn;
    const struct wml_clip t = params_of(j, true), v = params_of(j, false);
    struct wml_value *ids = text_input(j, &t), *pixels = wml_clip_pixels(j, &v);
    struct wml_value *image = wml_clip_unit(b, vision(b, &v, pixels, NULL)), *words = wml_clip_unit(b, text(b, &t, ids, t.projection, NULL));
    const float *scale = wml_nn_read(b, wml_nn_need(b, "logit_scale", WML_DIMS(1))), *bias = wml_nn_read(b, wml_nn_need(b, "logit_bias", WML_DIMS(1)));
    struct wml_value *per_text = wml_nn_scale(b, wml_nn_matmul(b, words, wml_nn_transpose(b, image, "10")), scale ? exp((double)*scale) : 1);
    per_text = wml_nn_shift(b, per_text, bias ? (double)*bias : 0);
    wml_nn_output(b, "logits_per_image", wml_nn_transpose(b, per_text, "10"));
    wml_nn_output(b, "logits_per_text", per_text);
    wml_nn_output(b, "text_embeds", words);
    wml_nn_output(b, "image_embeds", image);
}

/* The tower of pictures with a linear layer over the mean of its places. */
static void classification(struct wml_family_job *j)
{
    struct wml_nn *b = j->nn;
    const struct wml_clip p = params_of(j, false);
    struct wml_value *hidden = NULL;
    struct wml_value *pixels = wml_clip_pixels(j, &p);
    wml_nn_enter(b, "*VisionTransformer", "vision_model");
    hidden = wml_clip_encoder(b, &p, wml_clip_patches(b, &p, pixels, false), NULL);
    hidden = wml_nn_layer_norm(b, hidden, "post_layernorm", p.eps);
    wml_nn_leave(b);
    hidden = wml_nn_reduce(b, "ReduceMean", hidden, WML_DIMS(1), false);
    wml_nn_output(b, "logits", wml_nn_linear(b, hidden, "classifier", wml_cfg_labels(j, j->cfg)));
}

static const struct wml_family_type types[] = {
    {"siglip", "Siglip", NULL}, {"siglip_text_model", "Siglip", NULL}, {"siglip_vision_model", "Siglip", NULL}, {NULL, NULL, NULL}};
static const struct wml_family_task tasks[] = {
    {"feature-extraction", "TextModel", features},
    {"image-feature-extraction", "VisionModel", features},
    {"zero-shot-image-classification", "Model", fit},
    {"image-classification", "ForImageClassification", classification},
    {NULL, NULL, NULL},
};
static const struct wml_family_composite composites[] = {
    {"zero-shot-image-classification", {{"image-encoder", "image-feature-extraction"}, {"text-encoder", "feature-extraction"}, {NULL, NULL}}},
    {NULL, {{NULL, NULL}}},
};
const struct wml_family wml_family_siglip = {.name = "siglip", .type = types, .task = tasks, .composite = composites};
