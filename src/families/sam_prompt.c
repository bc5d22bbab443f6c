/* families/sam_prompt.c - SAM's and SAM 2's prompts and masks: points become tokens, tokens and picture attend to each other, and every
 * mask token draws its mask. Labels are read by arithmetic, not by Where, since NPUs lack it. */
#include <math.h>
#include "families/sam_body.h"

struct wml_sam_prompt wml_sam_prompt_params(struct wml_family_job *j)
{
    const struct wml_json_val *p = wml_json_get(j->cfg, "prompt_encoder_config"), *m = wml_json_get(j->cfg, "mask_decoder_config");
    const int64_t image = wml_cfg_size(j, p, "image_size", 1024), patch = wml_cfg_size(j, p, "patch_size", 16);
    return (struct wml_sam_prompt){
        .hidden = wml_cfg_size(j, p, "hidden_size", 256), .image = image, .side = image / patch > 0 ? image / patch : 1,
        .mask_channels = wml_cfg_size(j, p, "mask_input_channels", 16), .mask_act = wml_cfg_str(j, p, "hidden_act", "gelu"),
        .mask_eps = wml_cfg_num(j, p, "layer_norm_eps", 1e-6), .layers = wml_cfg_size(j, m, "num_hidden_layers", 2),
        .heads = wml_cfg_size(j, m, "num_attention_heads", 8), .inner = wml_cfg_size(j, m, "mlp_dim", 2048),
        .rate = wml_cfg_size(j, m, "attention_downsample_rate", 2), .masks = wml_cfg_size(j, m, "num_multimask_outputs", 3),
        .iou_depth = wml_cfg_size(j, m, "iou_head_depth", 3), .iou_hidden = wml_cfg_size(j, m, "iou_head_hidden_dim", 256),
        .eps = wml_cfg_num(j, m, "layer_norm_eps", 1e-6), .act = wml_cfg_str(j, m, "hidden_act", "relu")};
}

struct wml_sam_prompt wml_sam2_prompt_params(struct wml_family_job *j, int64_t image, int64_t patch)
{
    const struct wml_json_val *c = wml_json_get(j->cfg, "prompt_encoder_config");
    struct wml_sam_prompt p = wml_sam_prompt_params(j);
    p.image = wml_cfg_size(j, c, "image_size", image);
    p.side = WML_MAX(p.image / wml_cfg_size(j, c, "patch_size", patch), 1);
    p.labels = wml_cfg_size(j, c, "num_point_embeddings", 4);
    p.eps = 1e-5;
    p.act = WML_STR("relu"); /* whatever the config says */
    p.v2 = true;
    return p;
}

/* -------------------------------------------------------------------- places */

static const double whole = 6.283185307179586;

/* The random directions of the checkpoint, [2, hidden / 2]. */
static const struct wml_weight *directions(struct wml_nn *b, const struct wml_sam_prompt *p)
{
    return wml_nn_need(b, "/shared_image_embedding.positional_embedding", WML_DIMS(2, p->hidden / 2));
}

/* Sines and cosines for every place of the picture: [1, side * side, hidden]. */
static struct wml_value *image_places(struct wml_nn *b, const struct wml_sam_prompt *p)
{
    const int64_t n = p->side, half = p->hidden / 2;
    const float *d = wml_nn_read(b, directions(b, p));
    if (!d) return NULL;
    float *t = wml_nn_room(b, "places of the picture", sizeof *t, WML_DIMS(n, n, p->hidden));
    if (!t) return NULL;
    for (int64_t i = 0; i < n * n; i++)
        for (int64_t c = 0; c < half; c++) {
            const double x = 2 * ((double)(i % n) + 0.5) / (double)n - 1, y = 2 * ((double)(i / n) + 0.5) / (double)n - 1;
            const double angle = whole * (x * d[c] + y * d[half + c]);
            t[i * p->hidden + c] = (float)sin(angle);
            t[i * p->hidden + half + c] = (float)cos(angle);
        }
    return wml_nn_const(b, "image_places", WML_F32, WML_DIMS(1, n * n, p->hidden), t);
}

/* 1 where the label is that one, [.., 1] as float. */
static struct wml_value *labelled(struct wml_nn *b, struct wml_value *labels, int64_t which)
{
    if (b->failed || !labels) return NULL;
    return wml_nn_cast(b, wml_nn_compare(b, "Equal", labels, wml_nn_int(b, wml_value_elem(labels), which)), WML_F32);
}

/* What each label adds to a point that has it. */
static struct wml_value *add_labels(struct wml_nn *b, const struct wml_sam_prompt *p, struct wml_value *x, struct wml_value *labels)
{
    const struct wml_weight *table = p->v2 ? wml_nn_need(b, "point_embed.weight", WML_DIMS(p->labels, p->hidden)) : NULL;
    for (int64_t i = 0; i < (p->v2 ? p->labels : 2) && wml_nn_ok(b); i++) {
        struct wml_value *row = p->v2 ? wml_nn_rows(b, table, i, i + 1) :
                                wml_nn_param(b, i ? "point_embed.1.weight" : "point_embed.0.weight", WML_DIMS(1, p->hidden));
        x = wml_nn_add(b, x, wml_nn_mul(b, labelled(b, labels, i), row));
    }
    return x;
}

/* points [n, k, 2] in pixels and labels [n, k], with one more that is none -> [n, k + 1, hidden] */
static struct wml_value *point_tokens(struct wml_nn *b, const struct wml_sam_prompt *p, struct wml_value *points, struct wml_value *labels)
{
    points = wml_nn_pad(b, wml_nn_shift(b, points, 0.5), (const int64_t[]){0, 0, 0, 0, 1, 0}, 0);
    labels = wml_nn_unsqueeze(b, wml_nn_pad(b, labels, (const int64_t[]){0, 0, 0, 1}, -1), WML_DIMS(2));
    struct wml_value *c = wml_nn_shift(b, wml_nn_scale(b, points, 2 / (double)p->image), -1);
    c = wml_nn_scale(b, wml_nn_matmul(b, c, wml_nn_param_of(b, directions(b, p))), whole);
    struct wml_value *x = wml_nn_concat(b, -1, WML_VALUES(wml_nn_unary(b, "Sin", c), wml_nn_unary(b, "Cos", c)));
    struct wml_value *absent = labelled(b, labels, -1);
    struct wml_value *keep = wml_nn_sub(b, wml_nn_sub(b, wml_nn_float(b, 1), absent), labelled(b, labels, -10));
    x = wml_nn_mul(b, x, keep);
    x = wml_nn_add(b, x, wml_nn_mul(b, absent, wml_nn_param(b, "not_a_point_embed.weight", WML_DIMS(1, p->hidden))));
    return add_labels(b, p, x, labels);
}

/* What an earlier mask says of every place, or that there is none: [batch or 1, hidden, side, side]. */
static struct wml_value *dense(struct wml_nn *b, const struct wml_sam_prompt *p, const struct wml_sam_asked *a)
{
    const struct wml_weight *w = wml_nn_need(b, "no_mask_embed.weight", WML_DIMS(1, p->hidden));
    struct wml_value *none = wml_nn_reshaped(b, w, WML_DIMS(1, p->hidden, 1, 1));
    if (!a->mask) return none;
    wml_nn_enter(b, "*MaskEmbedding", "mask_embed");
    struct wml_value *x = wml_nn_conv(b, a->mask, "conv1", p->mask_channels / 4, &(struct wml_nn_window){.stride = 2});
    x = wml_nn_act(b, wml_nn_layer_norm_channels(b, x, "layer_norm1", p->mask_eps), p->mask_act, "hidden_act");
    x = wml_nn_conv(b, x, "conv2", p->mask_channels, &(struct wml_nn_window){.stride = 2});
    x = wml_nn_act(b, wml_nn_layer_norm_channels(b, x, "layer_norm2", p->mask_eps), p->mask_act, "hidden_act");
    x = wml_nn_conv(b, x, "conv3", p->hidden, &(struct wml_nn_window){0});
    wml_nn_leave(b);
    struct wml_value *use = wml_nn_reshape(b, a->use_mask, WML_DIMS(-1, 1, 1, 1));
    none = wml_nn_mul(b, wml_nn_sub(b, wml_nn_float(b, 1), use), none);
    return wml_nn_add(b, none, wml_nn_mul(b, use, x));
}

/* --------------------------------------------------------------- transformer */

static struct wml_value *attend(struct wml_nn *b, const struct wml_sam_prompt *p, const char *name, int64_t rate, struct wml_value *q,
                                struct wml_value *k, struct wml_value *v)
{
    const int64_t inner = p->hidden / rate;
    wml_nn_enter(b, "*Attention", "%s", name);
    const struct wml_nn_attention a = {.q = wml_nn_queries(b, q, "q_proj", inner, p->heads), .k = wml_nn_keys(b, k, "k_proj", inner),
                                       .v = wml_nn_linear(b, v, "v_proj", inner), .heads = p->heads, .scale = 1};
    q = wml_nn_linear(b, wml_nn_attention(b, &a), p->v2 ? "o_proj" : "out_proj", p->hidden);
    wml_nn_leave(b);
    return q;
}

/* Linear layers with ReLU between them. */
static struct wml_value *mlp(struct wml_nn *b, const char *name, struct wml_value *x, int64_t depth, int64_t inner, int64_t out)
{
    wml_nn_enter(b, "*FeedForward", "%s", name);
    x = wml_nn_unary(b, "Relu", wml_nn_linear(b, x, "proj_in", inner));
    for (int64_t i = 0; i + 2 < depth; i++) {
        char layer[32];
        snprintf(layer, sizeof layer, "layers.%lld", (long long)i);
        x = wml_nn_unary(b, "Relu", wml_nn_linear(b, x, layer, inner));
    }
    x = wml_nn_linear(b, x, "proj_out", out);
    wml_nn_leave(b);
    return x;
}

static struct wml_value *feed_forward(struct wml_nn *b, const struct wml_sam_prompt *p, struct wml_value *x)
{
    if (p->v2) return mlp(b, "mlp", x, p->layers, p->inner, p->hidden); /* as many layers as the transformer has: so it is in the class */
    wml_nn_enter(b, "*MLPBlock", "mlp");
    x = wml_nn_linear(b, wml_nn_act(b, wml_nn_linear(b, x, "lin1", p->inner), p->act, "hidden_act"), "lin2", p->hidden);
    wml_nn_leave(b);
    return x;
}

struct both { /* tokens and places of the picture, and where they are */
    struct wml_value *tokens, *token_at, *image, *image_at;
};

static void two_ways(struct wml_nn *b, const struct wml_sam_prompt *p, size_t i, struct both *s)
{
    wml_nn_enter(b, "*TwoWayAttentionBlock", "layers.%zu", i);
    const int64_t rate = p->v2 ? p->rate : 2; /* SAM's blocks do not ask the config */
    struct wml_value *q = i ? wml_nn_add(b, s->tokens, s->token_at) : s->tokens, *k;
    struct wml_value *y = attend(b, p, "self_attn", 1, q, q, s->tokens);
    s->tokens = wml_nn_layer_norm(b, i ? wml_nn_add(b, s->tokens, y) : y, "layer_norm1", p->eps);
    q = wml_nn_add(b, s->tokens, s->token_at);
    k = wml_nn_add(b, s->image, s->image_at);
    y = attend(b, p, "cross_attn_token_to_image", rate, q, k, s->image);
    s->tokens = wml_nn_layer_norm(b, wml_nn_add(b, s->tokens, y), "layer_norm2", p->eps);
    s->tokens = wml_nn_layer_norm(b, wml_nn_add(b, s->tokens, feed_forward(b, p, s->tokens)), "layer_norm3", p->eps);
    q = wml_nn_add(b, s->tokens, s->token_at);
    y = attend(b, p, "cross_attn_image_to_token", rate, k, q, s->tokens);
    s->image = wml_nn_layer_norm(b, wml_nn_add(b, s->image, y), "layer_norm4", p->eps);
    wml_nn_leave(b);
}

static void transformer(struct wml_nn *b, const struct wml_sam_prompt *p, struct both *s)
{
    wml_nn_enter(b, "*TwoWayTransformer", "transformer");
    for (size_t i = 0; i < (size_t)p->layers && wml_nn_ok(b); i++) two_ways(b, p, i, s);
    struct wml_value *q = wml_nn_add(b, s->tokens, s->token_at), *k = wml_nn_add(b, s->image, s->image_at);
    struct wml_value *y = attend(b, p, "final_attn_token_to_image", p->rate, q, k, s->image);
    s->tokens = wml_nn_layer_norm(b, wml_nn_add(b, s->tokens, y), "layer_norm_final_attn", 1e-5);
    wml_nn_leave(b);
}

/* A picture serves all groups of points asked about it. */
static struct wml_value *for_groups(struct wml_nn *b, struct wml_value *x, int64_t groups)
{
    if (groups == 1 || !x) return x;
    const struct wml_axis batch = wml_nn_axis(x, 0), places = wml_nn_axis(x, 1), wide = wml_nn_axis(x, 2);
    const struct wml_nn_shape s = {4, {batch, {.size = groups}, places, wide}};
    const int64_t one = 1;
    struct wml_value *keep = wml_nn_ints(b, 1, &one);
    x = wml_nn_expand(b, wml_nn_unsqueeze(b, x, WML_DIMS(1)), WML_VALUES(keep, wml_nn_ints(b, 1, &groups), keep, keep), &s);
    return wml_nn_reshape(b, x, WML_DIMS(-1, places.size, wide.size));
}

/* A finer picture [batch, hidden, n, n] for every group: [n, channels, n, n]. */
static struct wml_value *finer(struct wml_nn *b, const char *name, struct wml_value *x, int64_t channels, int64_t n, int64_t groups)
{
    x = wml_nn_conv(b, x, name, channels, &(struct wml_nn_window){0});
    if (groups == 1) return x;
    x = for_groups(b, wml_nn_reshape(b, x, WML_DIMS(0, channels, n * n)), groups);
    return wml_nn_reshape(b, x, WML_DIMS(0, channels, n, n));
}

/* The picture four times as large, [n, hidden / 8, 16 side^2]. */
static struct wml_value *upscaled(struct wml_nn *b, const struct wml_sam_prompt *p, const struct wml_sam_asked *a, struct wml_value *image, int64_t groups)
{
    const int64_t n = p->side, wide = p->hidden / 8;
    struct wml_value *x = wml_nn_reshape(b, wml_nn_transpose(b, image, "021"), WML_DIMS(0, p->hidden, n, n));
    x = wml_nn_conv_transpose(b, x, "upscale_conv1", p->hidden / 4, &(struct wml_nn_window){.stride = 2});
    if (p->v2) x = wml_nn_add(b, x, finer(b, "conv_s1", a->fine[1], p->hidden / 4, 2 * n, groups));
    x = wml_nn_gelu(b, wml_nn_layer_norm_channels(b, x, "upscale_layer_norm", 1e-6));
    x = wml_nn_conv_transpose(b, x, "upscale_conv2", wide, &(struct wml_nn_window){.stride = 2});
    if (p->v2) x = wml_nn_add(b, x, finer(b, "conv_s0", a->fine[0], wide, 4 * n, groups));
    return wml_nn_reshape(b, wml_nn_gelu(b, x), WML_DIMS(0, wide, 16 * n * n));
}

/* One mask for every mask token but the first, which is for prompts without doubt; image: upscaled. */
static struct wml_value *draw(struct wml_nn *b, const struct wml_sam_prompt *p, struct wml_value *tokens, struct wml_value *image)
{
    struct wml_value *row[16] = {NULL};
    const int64_t first = p->v2 ? 3 : 2; /* behind the other tokens and that one */
    if (p->masks > 15) return wml_nn_fail(b, WML_E_UNSUPPORTED, "config.json: %lld masks", (long long)p->masks);
    for (int64_t i = 0; i < p->masks; i++) {
        char name[48];
        snprintf(name, sizeof name, "output_hypernetworks_mlps.%lld", (long long)i + 1);
        row[i] = mlp(b, name, wml_nn_slice(b, tokens, 1, first + i, first + i + 1), 3, p->hidden, p->hidden / 8);
    }
    struct wml_value *x = wml_nn_matmul(b, wml_nn_concat(b, 1, (size_t)p->masks, row), image);
    return wml_nn_reshape(b, x, WML_DIMS(0, p->masks, 4 * p->side, 4 * p->side));
}

/* The tokens that ask for a score, for masks, and (SAM 2) whether there is an object: [1, n, hidden]. */
static struct wml_value *own_tokens(struct wml_nn *b, const struct wml_sam_prompt *p)
{
    struct wml_value *part[3] = {p->v2 ? wml_nn_param(b, "obj_score_token.weight", WML_DIMS(1, p->hidden)) : NULL,
                                 wml_nn_param(b, "iou_token.weight", WML_DIMS(1, p->hidden)),
                                 wml_nn_param(b, "mask_tokens.weight", WML_DIMS(p->masks + 1, p->hidden))};
    return wml_nn_unsqueeze(b, wml_nn_concat(b, 0, p->v2 ? 3 : 2, p->v2 ? part : part + 1), WML_DIMS(0));
}

struct wml_sam_answer wml_sam_answer(struct wml_family_job *j, const struct wml_sam_prompt *p, const struct wml_sam_asked *a)
{
    struct wml_nn *b = j->nn;
    static const char *const what = "the number of points";
    const int64_t groups = wml_nn_size(b, a->points, 1, what), k = wml_nn_size(b, a->points, 2, what), n = p->side;
    wml_nn_enter(b, "*PromptEncoder", "prompt_encoder");
    struct wml_value *sparse = point_tokens(b, p, wml_nn_reshape(b, a->points, WML_DIMS(-1, k, 2)), wml_nn_reshape(b, a->labels, WML_DIMS(-1, k)));
    struct wml_value *image = wml_nn_add(b, a->image, dense(b, p, a));
    wml_nn_leave(b);
    wml_nn_enter(b, "*MaskDecoder", "mask_decoder");
    struct wml_value *own = wml_nn_repeat(b, own_tokens(b, p), 0, sparse, 0);
    image = wml_nn_transpose(b, wml_nn_reshape(b, image, WML_DIMS(0, p->hidden, n * n)), "021");
    struct both s = {.tokens = wml_nn_concat(b, 1, WML_VALUES(own, sparse)), .image = for_groups(b, image, groups), .image_at = image_places(b, p)};
    s.token_at = s.tokens;
    transformer(b, p, &s);
    struct wml_sam_answer out = {.masks = draw(b, p, s.tokens, upscaled(b, p, a, s.image, groups))};
    out.scores = mlp(b, "iou_prediction_head", wml_nn_pick(b, s.tokens, 1, p->v2), p->iou_depth, p->iou_hidden, p->masks + 1);
    out.scores = wml_nn_slice(b, out.scores, 1, 1, INT64_MAX);
    if (p->v2) {
        out.scores = wml_nn_unary(b, "Sigmoid", out.scores);
        out.object = mlp(b, "pred_obj_score_head", wml_nn_pick(b, s.tokens, 1, 0), 3, p->hidden, 1);
    }
    wml_nn_leave(b);
    return out;
}

/* ---------------------------------------------------------- inputs and outputs */

void wml_sam_ask_points(struct wml_family_job *j, const struct wml_sam_prompt *p, struct wml_sam_asked *a)
{
    const int64_t groups = j->size[WML_SIZE_POINT_BATCH] ? j->size[WML_SIZE_POINT_BATCH] : 1, k = j->size[WML_SIZE_POINTS] ? j->size[WML_SIZE_POINTS] : 5;
    a->points = wml_family_input(j, "input_points", WML_F32, WML_DIMS(j->batch, groups, k, 2), 0, (double)p->image);
    a->labels = wml_family_input(j, "input_labels", WML_I32, WML_DIMS(j->batch, groups, k), 1, 2);
}

void wml_sam_ask_embedded(struct wml_family_job *j, const struct wml_sam_prompt *p, struct wml_sam_asked *a)
{
    const int64_t n = p->side;
    a->image = wml_family_input(j, "image_embeddings", WML_F32, WML_DIMS(j->batch, p->hidden, n, n), 0, 1);
    if (p->v2) {
        a->fine[0] = wml_family_input(j, "high_res_features0", WML_F32, WML_DIMS(j->batch, p->hidden, 4 * n, 4 * n), 0, 1);
        a->fine[1] = wml_family_input(j, "high_res_features1", WML_F32, WML_DIMS(j->batch, p->hidden, 2 * n, 2 * n), 0, 1);
    }
    a->mask = wml_family_input(j, "mask_input", WML_F32, WML_DIMS(j->batch, 1, 4 * n, 4 * n), 0, 0);
    a->use_mask = wml_family_input(j, "use_mask_input", WML_F32, WML_DIMS(j->batch), 0, 0);
}

void wml_sam_output(struct wml_nn *b, const struct wml_sam_answer *y, int64_t side)
{
    wml_nn_output(b, "masks", wml_nn_resize(b, y->masks, "linear", false, side, side));
    wml_nn_output(b, "iou_scores", y->scores);
    wml_nn_output(b, "low_res_masks", y->masks);
}

void wml_sam_output_groups(struct wml_nn *b, const struct wml_sam_prompt *p, const struct wml_sam_asked *a, const struct wml_sam_answer *y)
{
    const int64_t groups = wml_nn_size(b, a->points, 1, "the number of points"), side = 4 * p->side;
    wml_nn_output(b, "iou_scores", wml_nn_reshape(b, y->scores, WML_DIMS(-1, groups, p->masks)));
    wml_nn_output(b, "pred_masks", wml_nn_reshape(b, y->masks, WML_DIMS(-1, groups, p->masks, side, side)));
    if (p->v2) wml_nn_output(b, "object_score_logits", wml_nn_reshape(b, y->object, WML_DIMS(-1, groups, 1)));
}
