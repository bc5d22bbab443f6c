/* families/vit_body.c - see vit_body.h. */
#include "families/vit_body.h"
#include "nn/grid.h"

struct wml_vit wml_vit_params(struct wml_family_job *j)
{
    const struct wml_json_val *c = j->cfg;
    struct wml_vit p = {
        .hidden = wml_cfg_size(j, c, "hidden_size", 768),
        .layers = wml_cfg_size(j, c, "num_hidden_layers", 12),
        .heads = wml_cfg_size(j, c, "num_attention_heads", 12),
        .inner = wml_cfg_size(j, c, "intermediate_size", 3072),
        .channels = wml_cfg_size(j, c, "num_channels", 3),
        .eps = wml_cfg_num(j, c, "layer_norm_eps", 1e-12),
        .act = wml_cfg_str(j, c, "hidden_act", "gelu"),
    };
    wml_cfg_pair(j, c, "patch_size", 16, p.patch);
    wml_cfg_pair(j, c, "image_size", 224, p.image);
    return p;
}

struct wml_value *wml_vit_patches(struct wml_nn *b, const struct wml_vit *p, struct wml_value *pixels, int64_t grid[2])
{
    static const char *const what = "the height and width of pixel_values";
    grid[0] = wml_nn_size(b, pixels, 2, what) / p->patch[0];
    grid[1] = wml_nn_size(b, pixels, 3, what) / p->patch[1];
    wml_nn_enter(b, "*PatchEmbeddings", "patch_embeddings");
    struct wml_value *x = wml_nn_conv(b, pixels, "projection", p->hidden, &(struct wml_nn_window){.stride = p->patch[0], .last_stride = p->patch[1]});
    x = wml_nn_transpose(b, wml_nn_reshape(b, x, WML_DIMS(0, p->hidden, grid[0] * grid[1])), "021");
    wml_nn_leave(b);
    return x;
}

struct wml_value *wml_vit_prepend(struct wml_nn *b, const char *const *name, size_t n, struct wml_value *x)
{
    struct wml_value *part[4] = {NULL};
    const int64_t width = wml_nn_size(b, x, 2, "the width of a token");
    for (size_t i = 0; i < n && i < 3; i++)
        part[i] = wml_nn_repeat(b, wml_nn_param(b, name[i], WML_DIMS(1, -1, width)), 0, x, 0);
    part[n] = x;
    return wml_nn_concat(b, 1, n + 1, part);
}

struct wml_value *wml_vit_add_positions_named(struct wml_nn *b, struct wml_value *x, const char *name, int64_t front, int64_t back,
                                              const int64_t stored[2], const int64_t grid[2], int64_t hidden)
{
    const int64_t places = stored[0] * stored[1], now = grid[0] * grid[1];
    const struct wml_weight *w = wml_nn_need(b, name, WML_DIMS(1, front + places + back, hidden));
    if (stored[0] == grid[0] && stored[1] == grid[1]) return wml_nn_add(b, x, wml_nn_param_of(b, w));
    const float *all = wml_nn_resize_places(b, wml_nn_read(b, w), front, back, stored, grid, hidden, WML_NN_BICUBIC);
    if (!all) return NULL;
    return wml_nn_add(b, x, wml_nn_const(b, "position_embeddings.resized", WML_F32, WML_DIMS(1, front + now + back, hidden), all));
}

struct wml_value *wml_vit_add_positions(struct wml_nn *b, struct wml_value *x, int64_t front, int64_t back, const int64_t stored[2],
                                        const int64_t grid[2], int64_t hidden)
{
    return wml_vit_add_positions_named(b, x, "position_embeddings", front, back, stored, grid, hidden);
}

struct wml_value *wml_vit_attention(struct wml_nn *b, const struct wml_vit *p, struct wml_value *x)
{
    wml_nn_enter(b, "*Attention", "attention");
    wml_nn_enter(b, "*SelfAttention", "attention");
    const struct wml_nn_attention a = {.q = wml_nn_queries(b, x, "query", p->hidden, p->heads), .k = wml_nn_keys(b, x, "key", p->hidden),
                                       .v = wml_nn_linear(b, x, "value", p->hidden), .heads = p->heads,
                                       .length = p->length, .kv_length = p->length, .scale = 1};
    x = wml_nn_attention(b, &a);
    wml_nn_leave(b);
    wml_nn_enter(b, "*SelfOutput", "output");
    x = wml_nn_linear(b, x, "dense", p->hidden);
    wml_nn_leave(b);
    wml_nn_leave(b);
    return x;
}

struct wml_value *wml_vit_layer(struct wml_nn *b, const struct wml_vit *p, size_t i, struct wml_value *x)
{
    wml_nn_enter(b, "*Layer", "layer.%zu", i);
    x = wml_nn_add(b, wml_vit_attention(b, p, wml_nn_layer_norm(b, x, "layernorm_before", p->eps)), x);
    struct wml_value *y = wml_nn_layer_norm(b, x, "layernorm_after", p->eps);
    wml_nn_enter(b, "*Intermediate", "intermediate");
    y = wml_nn_act(b, wml_nn_linear(b, y, "dense", p->inner), p->act, "hidden_act");
    wml_nn_leave(b);
    wml_nn_enter(b, "*Output", "output");
    x = wml_nn_add(b, wml_nn_linear(b, y, "dense", p->hidden), x);
    wml_nn_leave(b);
    wml_nn_leave(b);
    return x;
}

struct wml_value *wml_vit_encoder(struct wml_nn *b, const struct wml_vit *p, struct wml_value *x)
{
    wml_nn_enter(b, "*Encoder", "encoder");
    for (size_t i = 0; i < (size_t)p->layers && wml_nn_ok(b); i++) x = wml_vit_layer(b, p, i, x);
    wml_nn_leave(b);
    return x;
}

struct wml_value *wml_vit_to_image(struct wml_nn *b, struct wml_value *x, const int64_t grid[2], int64_t hidden)
{
    return wml_nn_reshape(b, wml_nn_transpose(b, x, "021"), WML_DIMS(0, hidden, grid[0], grid[1]));
}
