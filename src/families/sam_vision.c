/* families/sam_vision.c - SAM's picture encoder: a ViT whose attention stays within windows in most layers, with terms of the
 * distances along rows and columns. */
#include <math.h>
#include "families/sam_body.h"
#include "nn/windows.h"

struct wml_sam_vision wml_sam_vision_params(struct wml_family_job *j)
{
    const struct wml_json_val *c = wml_json_get(j->cfg, "vision_config");
    if (!c) c = j->cfg;
    struct wml_sam_vision p = {
        .hidden = wml_cfg_size(j, c, "hidden_size", 768), .layers = wml_cfg_size(j, c, "num_hidden_layers", 12),
        .heads = wml_cfg_size(j, c, "num_attention_heads", 12), .channels = wml_cfg_size(j, c, "num_channels", 3),
        .out = wml_cfg_size(j, c, "output_channels", 256), .patch = wml_cfg_size(j, c, "patch_size", 16),
        .image = wml_cfg_size(j, c, "image_size", 1024), .window = wml_cfg_size(j, c, "window_size", 14),
        .eps = wml_cfg_num(j, c, "layer_norm_eps", 1e-6), .relative = wml_json_get_bool(c, "use_rel_pos", true),
        .act = wml_cfg_str(j, c, "hidden_act", "gelu")};
    p.inner = wml_cfg_size(j, c, "mlp_dim", wml_cfg_whole((double)p.hidden * wml_cfg_num(j, c, "mlp_ratio", 4)));
    return p;
}

static bool is_global(struct wml_family_job *j, size_t i)
{
    const struct wml_json_val *c = wml_json_get(j->cfg, "vision_config"), *list = wml_json_get(c ? c : j->cfg, "global_attn_indexes");
    static const int64_t usual[] = {2, 5, 8, 11};
    for (size_t k = 0; k < (list ? wml_json_len(list) : 4); k++)
        if ((list ? wml_json_int(wml_json_at(list, k), -1) : usual[k]) == (int64_t)i) return true;
    return false;
}

/* Rows of the table for every pair of places: [n, size, n], size innermost but one, so that queries can be multiplied by it. A
 * table for another n is stretched. Queries are scaled already, which these scores are not. */
static struct wml_value *distances(struct wml_nn *b, const char *name, int64_t n, int64_t size)
{
    const struct wml_weight *w = wml_nn_need(b, name, WML_DIMS(-1, size));
    const float *table = wml_nn_read(b, w);
    if (!table) return NULL;
    const int64_t stored = w->dims[0], wanted = 2 * n - 1;
    const double unscaled = sqrt((double)size);
    float *out = wml_nn_room(b, "relative positions", sizeof *out, WML_DIMS(n, size, n));
    if (!out) return NULL;
    for (int64_t q = 0; q < n; q++)
        for (int64_t k = 0; k < n; k++) {
            double at = ((double)(q - k + n - 1) + 0.5) * (double)stored / (double)wanted - 0.5;
            if (at < 0) at = 0;
            const int64_t low = (int64_t)at < stored - 1 ? (int64_t)at : stored - 1, high = low + 1 < stored ? low + 1 : low;
            const double part = at - (double)low;
            for (int64_t c = 0; c < size; c++)
                out[(q * size + c) * n + k] = (float)(unscaled * ((1 - part) * table[low * size + c] + part * table[high * size + c]));
        }
    char hint[48];
    snprintf(hint, sizeof hint, "%s.pairs", name);
    return wml_nn_const(b, hint, WML_F32, WML_DIMS(n, size, n), out);
}

/* q [n, places, size] of rows x columns places -> terms [n, places, places]. */
static struct wml_value *relative_terms(struct wml_nn *b, struct wml_value *q, int64_t rows, int64_t columns, int64_t size)
{
    q = wml_nn_reshape(b, q, WML_DIMS(-1, rows, columns, size));
    struct wml_value *h = wml_nn_matmul(b, q, distances(b, "rel_pos_h", rows, size));
    struct wml_value *w = wml_nn_matmul(b, wml_nn_transpose(b, q, "0213"), distances(b, "rel_pos_w", columns, size));
    h = wml_nn_unsqueeze(b, h, WML_DIMS(4));
    w = wml_nn_unsqueeze(b, wml_nn_transpose(b, w, "0213"), WML_DIMS(3));
    return wml_nn_reshape(b, wml_nn_add(b, h, w), WML_DIMS(-1, rows * columns, rows * columns));
}

/* x: rows, [n * rows * columns, hidden] */
static struct wml_value *attention(struct wml_nn *b, const struct wml_sam_vision *p, struct wml_value *x, int64_t rows, int64_t columns)
{
    struct wml_value *part[3];
    const int64_t size = p->hidden / p->heads, places = rows * columns;
    wml_nn_enter(b, "*VisionAttention", "attn");
    wml_nn_split(b, wml_nn_queries_packed(b, x, "qkv", p->hidden, p->heads), -1, 3, part);
    struct wml_value *q = wml_nn_split_rows(b, part[0], p->heads, places), *k = wml_nn_split_rows(b, part[1], p->heads, places);
    struct wml_nn_attention a = {.q = q, .k = k, .v = wml_nn_split_rows(b, part[2], p->heads, places), .heads = p->heads, .scale = 1};
    if (p->relative) a.bias = wml_nn_reshape(b, relative_terms(b, q, rows, columns, size), WML_DIMS(-1, p->heads, places, places));
    x = wml_nn_linear(b, wml_nn_join_rows(b, wml_nn_attention_heads(b, &a)), "proj", p->hidden);
    wml_nn_leave(b);
    return x;
}

/* x [batch, rows, columns, hidden] */
static struct wml_value *layer(struct wml_nn *b, const struct wml_sam_vision *p, size_t i, struct wml_value *x, int64_t side, bool whole)
{
    wml_nn_enter(b, "*VisionLayer", "layers.%zu", i);
    struct wml_value *y = wml_nn_layer_norm(b, x, "layer_norm1", p->eps);
    if (whole) {
        y = wml_nn_reshape(b, y, WML_DIMS(-1, p->hidden));
        y = wml_nn_reshape(b, attention(b, p, y, side, side), WML_DIMS(-1, side, side, p->hidden));
    } else {
        const int64_t up = (side + p->window - 1) / p->window * p->window;
        y = wml_nn_pad(b, y, (const int64_t[]){0, 0, 0, 0, 0, up - side, up - side, 0}, 0);
        y = attention(b, p, wml_nn_to_windows(b, y, p->window, up, up), p->window, p->window);
        y = wml_nn_from_windows(b, y, p->window, up, up, false);
        y = wml_nn_crop(b, y, 1, side, side);
    }
    x = wml_nn_add(b, x, y);
    y = wml_nn_layer_norm(b, x, "layer_norm2", p->eps);
    wml_nn_enter(b, "*MLPBlock", "mlp");
    y = wml_nn_linear(b, wml_nn_act(b, wml_nn_linear(b, y, "lin1", p->inner), p->act, "hidden_act"), "lin2", p->hidden);
    wml_nn_leave(b);
    wml_nn_leave(b);
    return wml_nn_add(b, x, y);
}

struct wml_value *wml_sam_see(struct wml_family_job *j, const struct wml_sam_vision *p, struct wml_value *pixels)
{
    struct wml_nn *b = j->nn;
    static const char *const what = "the height and width of pixel_values";
    wml_nn_enter(b, "*VisionEncoder", "vision_encoder");
    wml_nn_enter(b, "*PatchEmbeddings", "patch_embed");
    struct wml_value *x = wml_nn_conv(b, pixels, "projection", p->hidden, &(struct wml_nn_window){.stride = p->patch});
    x = wml_nn_transpose(b, x, "0231");
    wml_nn_leave(b);
    const int64_t side = wml_nn_size(b, x, 1, what);
    if (side != wml_nn_size(b, x, 2, what)) wml_nn_fail(b, WML_E_UNSUPPORTED, "pictures must be square");
    if (wml_nn_has(b, "pos_embed")) x = wml_nn_add(b, x, wml_nn_param(b, "pos_embed", WML_DIMS(1, side, side, p->hidden)));
    for (size_t i = 0; i < (size_t)p->layers && wml_nn_ok(b); i++) x = layer(b, p, i, x, side, is_global(j, i));
    wml_nn_enter(b, "*VisionNeck", "neck");
    x = wml_nn_conv(b, wml_nn_transpose(b, x, "0312"), "conv1", p->out, &(struct wml_nn_window){0});
    x = wml_nn_layer_norm_channels(b, x, "layer_norm1", 1e-6);
    x = wml_nn_conv(b, x, "conv2", p->out, &(struct wml_nn_window){.pad = 1});
    x = wml_nn_layer_norm_channels(b, x, "layer_norm2", 1e-6);
    wml_nn_leave(b);
    wml_nn_leave(b);
    return x;
}
