/* families/clip_body.c - see clip_body.h. */
#include "families/clip_body.h"
#include "nn/grid.h"

const struct wml_json_val *wml_clip_config(const struct wml_family_job *j, bool text)
{
    const struct wml_json_val *part = wml_json_get(j->cfg, text ? "text_config" : "vision_config");
    return wml_json_is_object(part) ? part : j->cfg;
}

struct wml_clip wml_clip_params(struct wml_family_job *j, const struct wml_json_val *c, const char *act, double eps)
{
    const bool text = wml_json_get(c, "vocab_size") || wml_str_ends(wml_json_get_str(c, "model_type"), "_text_model");
    struct wml_clip p = {
        .hidden = wml_cfg_size(j, c, "hidden_size", text ? 512 : 768), .layers = wml_cfg_size(j, c, "num_hidden_layers", 12),
        .heads = wml_cfg_size(j, c, "num_attention_heads", text ? 8 : 12), .inner = wml_cfg_size(j, c, "intermediate_size", text ? 2048 : 3072),
        .vocab = wml_cfg_size(j, c, "vocab_size", 49408), .positions = wml_cfg_size(j, c, "max_position_embeddings", 77),
        .patch = wml_cfg_size(j, c, "patch_size", 32), .channels = wml_cfg_size(j, c, "num_channels", 3),
        .projection = wml_cfg_size(j, wml_json_get(j->cfg, "projection_dim") ? j->cfg : c, "projection_dim", 512), /* the whole model's first */
        .eps = wml_cfg_num(j, c, "layer_norm_eps", eps), .act = wml_cfg_str(j, c, "hidden_act", act)};
    wml_cfg_pair(j, c, "image_size", 224, p.image);
    return p;
}

bool wml_clip_is_vision(const struct wml_family_job *j)
{
    return strcmp(j->task->task, "image-feature-extraction") == 0 || wml_str_ends(wml_str(j->type->model_type), "_vision_model");
}

struct wml_value *wml_clip_mlp(struct wml_nn *b, struct wml_value *x, int64_t inner, int64_t out, struct wml_str act)
{
    wml_nn_enter(b, "*MLP", "mlp");
    x = wml_nn_linear(b, wml_nn_act(b, wml_nn_linear(b, x, "fc1", inner), act, "hidden_act"), "fc2", out);
    wml_nn_leave(b);
    return x;
}

static struct wml_value *layer(struct wml_nn *b, const struct wml_clip *p, size_t i, struct wml_value *x, struct wml_value *mask)
{
    wml_nn_enter(b, "*EncoderLayer", "layers.%zu", i);
    struct wml_value *y = wml_nn_layer_norm(b, x, "layer_norm1", p->eps);
    wml_nn_enter(b, "*Attention", "self_attn");
    const struct wml_nn_attention a = {.q = wml_nn_queries(b, y, "q_proj", p->hidden, p->heads), .k = wml_nn_keys(b, y, "k_proj", p->hidden),
                                       .v = wml_nn_linear(b, y, "v_proj", p->hidden), .heads = p->heads, .scale = 1, .mask = mask};
    y = wml_nn_linear(b, wml_nn_attention(b, &a), "out_proj", p->hidden);
    wml_nn_leave(b);
    x = wml_nn_add(b, x, y);
    y = wml_nn_layer_norm(b, x, "layer_norm2", p->eps);
    y = wml_clip_mlp(b, y, p->inner, p->hidden, p->act);
    wml_nn_leave(b);
    return wml_nn_add(b, x, y);
}

struct wml_value *wml_clip_encoder(struct wml_nn *b, const struct wml_clip *p, struct wml_value *x, struct wml_value *mask)
{
    wml_nn_enter(b, "*Encoder", "encoder");
    for (size_t i = 0; i < (size_t)p->layers && wml_nn_ok(b); i++) x = layer(b, p, i, x, mask);
    wml_nn_leave(b);
    return x;
}

struct wml_value *wml_clip_words(struct wml_nn *b, const struct wml_clip *p, struct wml_value *ids)
{
    wml_nn_enter(b, "*TextEmbeddings", "embeddings");
    struct wml_value *x = wml_nn_embedding(b, ids, "token_embedding", p->vocab, p->hidden);
    const struct wml_weight *table = wml_nn_need(b, "position_embedding.weight", WML_DIMS(p->positions, p->hidden));
    x = wml_nn_add(b, x, wml_nn_position_rows(b, table, ids, 1, 0));
    wml_nn_find(b, "position_ids");
    wml_nn_leave(b);
    return x;
}

/* The table of places, [front + rows * columns, hidden], for the picture's grid. */
static struct wml_value *positions(struct wml_nn *b, const struct wml_clip *p, int64_t front, const int64_t grid[2])
{
    const int64_t stored[2] = {p->image[0] / p->patch, p->image[1] / p->patch}, now = grid[0] * grid[1];
    const struct wml_weight *w = wml_nn_need(b, "position_embedding.weight", WML_DIMS(front + stored[0] * stored[1], p->hidden));
    if (stored[0] == grid[0] && stored[1] == grid[1]) return wml_nn_param_of(b, w);
    const float *all = wml_nn_resize_places(b, wml_nn_read(b, w), front, 0, stored, grid, p->hidden, WML_NN_BICUBIC);
    if (!all) return NULL;
    return wml_nn_const(b, "position_embedding.resized", WML_F32, WML_DIMS(front + now, p->hidden), all);
}

struct wml_value *wml_clip_patches(struct wml_nn *b, const struct wml_clip *p, struct wml_value *pixels, bool token)
{
    static const char *const what = "the height and width of pixel_values";
    wml_nn_enter(b, "*VisionEmbeddings", "embeddings");
    struct wml_value *x = wml_nn_conv(b, pixels, "patch_embedding", p->hidden, &(struct wml_nn_window){.stride = p->patch});
    const int64_t grid[2] = {wml_nn_size(b, x, 2, what), wml_nn_size(b, x, 3, what)};
    x = wml_nn_transpose(b, wml_nn_reshape(b, x, WML_DIMS(0, p->hidden, grid[0] * grid[1])), "021");
    if (token) {
        const struct wml_weight *w = wml_nn_need(b, "class_embedding", WML_DIMS(p->hidden));
        struct wml_value *first = wml_nn_repeat(b, wml_nn_reshaped(b, w, WML_DIMS(1, 1, p->hidden)), 0, x, 0);
        x = wml_nn_concat(b, 1, WML_VALUES(first, x));
    }
    x = wml_nn_add(b, x, positions(b, p, token, grid));
    wml_nn_find(b, "position_ids");
    wml_nn_leave(b);
    return x;
}

struct wml_value *wml_clip_pixels(struct wml_family_job *j, const struct wml_clip *p)
{
    const int64_t h = j->size[WML_SIZE_HEIGHT] ? j->size[WML_SIZE_HEIGHT] : p->image[0];
    const int64_t w = j->size[WML_SIZE_WIDTH] ? j->size[WML_SIZE_WIDTH] : p->image[1];
    return wml_family_input(j, "pixel_values", WML_F32, WML_DIMS(j->batch, p->channels, h, w), 0, 1);
}

struct wml_value *wml_clip_unit(struct wml_nn *b, struct wml_value *x)
{
    return wml_nn_div(b, x, wml_nn_reduce(b, "ReduceL2", x, WML_DIMS(-1), true));
}
