/* families/sam2_vision.c - SAM 2's picture encoder: Hiera (Ryali et al. 2023), a transformer in stages. The first block of a stage
 * asks with queries of two by two places, so that what it gives is half as large; most blocks stay within windows. */
#include "families/sam_body.h"
#include "nn/grid.h"
#include "nn/windows.h"

enum { MAX_STAGES = 8 };

struct hiera {
    int64_t hidden, kernel, stride, pad, pool, background[2], channels, image[2];
    int64_t depth[MAX_STAGES], width[MAX_STAGES], heads[MAX_STAGES], window[MAX_STAGES];
    size_t stages, pooled;
    const struct wml_json_val *whole; /* global_attention_blocks */
    double ratio, eps;
    struct wml_str act;
};

/* A list of two that must be equal. */
static int64_t square(struct wml_family_job *j, const struct wml_json_val *c, const char *key, int64_t fallback)
{
    int64_t pair[2];
    if (fallback) {
        wml_cfg_pair(j, c, key, fallback, pair);
    } else { /* a count */
        const struct wml_json_val *v = wml_json_get(c, key);
        pair[0] = wml_json_int(wml_json_is_array(v) ? wml_json_at(v, 0) : v, 0);
        pair[1] = wml_json_int(wml_json_is_array(v) ? wml_json_at(v, 1) : v, 0);
    }
    if (pair[0] != pair[1] || pair[0] < 0 || pair[0] > 1 << 12) wml_nn_fail(j->nn, WML_E_UNSUPPORTED, "config.json: %s is no square", key);
    return pair[0];
}

static struct hiera params_of(struct wml_family_job *j, const struct wml_json_val *c)
{
    static const int64_t depth[] = {1, 2, 7, 2}, width[] = {96, 192, 384, 768}, heads[] = {1, 2, 4, 8}, window[] = {8, 4, 14, 7};
    struct hiera p = {.hidden = wml_cfg_size(j, c, "hidden_size", 96), .kernel = square(j, c, "patch_kernel_size", 7),
                      .stride = square(j, c, "patch_stride", 4), .pad = wml_json_get(c, "patch_padding") ? square(j, c, "patch_padding", 0) : 3,
                      .pool = square(j, c, "query_stride", 2), .channels = wml_cfg_size(j, c, "num_channels", 3),
                      .pooled = (size_t)wml_cfg_count(j, c, "num_query_pool_stages", 3), .whole = wml_json_get(c, "global_attention_blocks"),
                      .ratio = wml_cfg_num(j, c, "mlp_ratio", 4), .eps = wml_cfg_num(j, c, "layer_norm_eps", 1e-6),
                      .act = wml_cfg_str(j, c, "hidden_act", "gelu")};
    wml_cfg_pair(j, c, "image_size", 1024, p.image);
    wml_cfg_pair(j, c, "window_positional_embedding_background_size", 7, p.background);
    p.stages = wml_cfg_list(j, c, "blocks_per_stage", 4, depth, p.depth, MAX_STAGES);
    const size_t n[3] = {wml_cfg_list(j, c, "embed_dim_per_stage", 4, width, p.width, MAX_STAGES),
                         wml_cfg_list(j, c, "num_attention_heads_per_stage", 4, heads, p.heads, MAX_STAGES),
                         wml_cfg_list(j, c, "window_size_per_stage", 4, window, p.window, MAX_STAGES)};
    if (!p.stages || n[0] != p.stages || n[1] != p.stages || n[2] != p.stages)
        wml_nn_fail(j->nn, WML_E_FORMAT, "config.json: blocks_per_stage has %zu stages, embed_dim_per_stage %zu, num_attention_heads_per_stage %zu, "
                    "window_size_per_stage %zu", p.stages, n[0], n[1], n[2]);
    return p;
}

static bool is_whole(const struct hiera *p, int64_t block)
{
    static const int64_t usual[] = {5, 7, 9};
    const bool listed = wml_json_is_array(p->whole);
    for (size_t k = 0; k < (listed ? wml_json_len(p->whole) : 3); k++)
        if ((listed ? wml_json_int(wml_json_at(p->whole, k), -1) : usual[k]) == block) return true;
    return false;
}

/* -------------------------------------------------------------------- places */

/* [channels, n, m] as [n, m, channels] */
static const float *channels_last(struct wml_nn *b, const char *name, int64_t channels, const int64_t size[2])
{
    const float *from = wml_nn_read(b, wml_nn_need(b, name, WML_DIMS(1, channels, size[0], size[1])));
    if (!from) return NULL;
    const int64_t n = size[0] * size[1];
    float *to = wml_nn_room(b, name, sizeof *to, WML_DIMS(n, channels));
    if (!to) return NULL;
    for (int64_t c = 0; c < channels; c++)
        for (int64_t i = 0; i < n; i++) to[i * channels + c] = from[c * n + i];
    return to;
}

/* A coarse table of the picture, stretched, and one of a window, repeated: [1, rows, columns, hidden]. */
static struct wml_value *places(struct wml_nn *b, const struct hiera *p, const int64_t grid[2])
{
    const int64_t c = p->hidden, side = p->window[0], window[2] = {side, side};
    const float *coarse = wml_nn_resize_grid(b, channels_last(b, "pos_embed", c, p->background), p->background, grid, c, WML_NN_BICUBIC);
    const float *fine = channels_last(b, "pos_embed_window", c, window);
    if (!coarse || !fine) return NULL;
    if (grid[0] % side || grid[1] % side)
        return wml_nn_fail(b, WML_E_UNSUPPORTED, "%lld x %lld places of the picture are no multiple of the windows of %lld", (long long)grid[0],
                           (long long)grid[1], (long long)side);
    float *t = wml_nn_room(b, "positions", sizeof *t, WML_DIMS(grid[0], grid[1], c));
    if (!t) return NULL;
    for (int64_t i = 0; i < grid[0] * grid[1]; i++)
        for (int64_t k = 0; k < c; k++)
            t[i * c + k] = coarse[i * c + k] + fine[(i / grid[1] % side * side + i % grid[1] % side) * c + k];
    return wml_nn_const(b, "positions", WML_F32, WML_DIMS(1, grid[0], grid[1], c), t);
}

/* -------------------------------------------------------------------- blocks */

struct block {
    const struct hiera *p;
    int64_t in, width, heads, pool; /* pool: 1 for none */
    int64_t window;                 /* 0: the whole picture */
};

/* The largest of pool x pool places: [n, rows, columns, c] -> [n, c, rows / pool, columns / pool]. */
static struct wml_value *largest(struct wml_nn *b, struct wml_value *x, int64_t pool)
{
    return wml_nn_pool(b, "MaxPool", wml_nn_transpose(b, x, "0312"), &(struct wml_nn_window){.kernel = pool, .stride = pool});
}

/* x: rows, [n * rows * columns, in] -> [n * places, width] */
static struct wml_value *attention(struct wml_nn *b, const struct block *k, struct wml_value *x, int64_t rows, int64_t columns)
{
    struct wml_value *part[3];
    if (k->width % k->heads)
        return wml_nn_fail(b, WML_E_FORMAT, "config.json: a width of %lld does not divide into %lld attention heads", (long long)k->width, (long long)k->heads);
    const int64_t places = rows * columns;
    wml_nn_enter(b, "*MultiScaleAttention", "attn");
    wml_nn_split(b, wml_nn_queries_packed(b, x, "qkv", k->width, k->heads), -1, 3, part);
    struct wml_nn_attention a = {.k = wml_nn_split_rows(b, part[1], k->heads, places), .v = wml_nn_split_rows(b, part[2], k->heads, places),
                                 .heads = k->heads, .scale = 1};
    if (k->pool > 1) {
        x = largest(b, wml_nn_reshape(b, part[0], WML_DIMS(-1, rows, columns, k->width)), k->pool);
        x = wml_nn_reshape(b, x, WML_DIMS(0, k->heads, k->width / k->heads, rows / k->pool * (columns / k->pool)));
        a.q = wml_nn_transpose(b, x, "0132");
    } else {
        a.q = wml_nn_split_rows(b, part[0], k->heads, places);
    }
    x = wml_nn_linear(b, wml_nn_join_rows(b, wml_nn_attention_heads(b, &a)), "proj", k->width);
    wml_nn_leave(b);
    return x;
}

/* x [batch, grid, in] -> [batch, grid / pool, width] */
static struct wml_value *in_windows(struct wml_nn *b, const struct block *k, struct wml_value *x, const int64_t grid[2])
{
    const int64_t rows = grid[0] / k->pool, columns = grid[1] / k->pool, side = k->window;
    if (!side) {
        x = attention(b, k, wml_nn_reshape(b, x, WML_DIMS(-1, k->in)), grid[0], grid[1]);
        return wml_nn_reshape(b, x, WML_DIMS(-1, rows, columns, k->width));
    }
    const int64_t across[2] = {(grid[0] + side - 1) / side, (grid[1] + side - 1) / side}, small = side / k->pool;
    if (!small) return wml_nn_fail(b, WML_E_FORMAT, "config.json: windows of %lld places are smaller than query_stride", (long long)side);
    x = wml_nn_pad(b, x, (const int64_t[]){0, 0, 0, 0, 0, across[0] * side - grid[0], across[1] * side - grid[1], 0}, 0);
    x = attention(b, k, wml_nn_to_windows(b, x, side, across[0] * side, across[1] * side), side, side);
    x = wml_nn_from_windows(b, x, small, across[0] * small, across[1] * small, false);
    return wml_nn_crop(b, x, 1, rows, columns);
}

/* x [batch, grid, in]; grid becomes the result's. */
static struct wml_value *block(struct wml_nn *b, const struct block *k, size_t i, struct wml_value *x, int64_t grid[2])
{
    wml_nn_enter(b, "*MultiScaleBlock", "blocks.%zu", i);
    struct wml_value *y = wml_nn_layer_norm(b, x, "layer_norm1", k->p->eps);
    if (k->in != k->width) {
        x = wml_nn_linear(b, y, "proj", k->width);
        if (k->pool > 1) x = wml_nn_transpose(b, largest(b, x, k->pool), "0231");
    }
    x = wml_nn_add(b, x, in_windows(b, k, y, grid));
    grid[0] /= k->pool;
    grid[1] /= k->pool;
    y = wml_nn_layer_norm(b, x, "layer_norm2", k->p->eps);
    wml_nn_enter(b, "*FeedForward", "mlp");
    y = wml_nn_act(b, wml_nn_linear(b, y, "proj_in", wml_cfg_whole((double)k->width * k->p->ratio)), k->p->act, "hidden_act");
    y = wml_nn_linear(b, y, "proj_out", k->width);
    wml_nn_leave(b);
    wml_nn_leave(b);
    return wml_nn_add(b, x, y);
}

/* "backbone": what every stage gives, [batch, rows, columns, width]. */
static void backbone(struct wml_nn *b, const struct hiera *p, struct wml_value *x, struct wml_value *stage[MAX_STAGES])
{
    static const char *const what = "the height and width of pixel_values";
    wml_nn_enter(b, "*HieraDetModel", "backbone");
    wml_nn_enter(b, "*PatchEmbeddings", "patch_embed");
    x = wml_nn_conv(b, x, "projection", p->hidden, &(struct wml_nn_window){.kernel = p->kernel, .stride = p->stride, .pad = p->pad});
    x = wml_nn_transpose(b, x, "0231");
    wml_nn_leave(b);
    int64_t grid[2] = {wml_nn_size(b, x, 1, what), wml_nn_size(b, x, 2, what)};
    x = wml_nn_add(b, x, places(b, p, grid));
    size_t i = 0;
    for (size_t s = 0; s < p->stages; s++) {
        for (int64_t n = 0; n < p->depth[s] && wml_nn_ok(b); n++, i++) {
            const size_t from = s && !n ? s - 1 : s; /* the first block of a stage begins as the one before it was */
            const struct block k = {.p = p, .in = p->width[from], .width = p->width[s], .heads = p->heads[s],
                                    .pool = s && s <= p->pooled && !n ? p->pool : 1, .window = is_whole(p, (int64_t)i) ? 0 : p->window[from]};
            x = block(b, &k, i, x, grid);
        }
        stage[s] = x;
    }
    wml_nn_leave(b);
}

/* ---------------------------------------------------------------------- neck */

static bool joins(const struct wml_json_val *list, size_t stage)
{
    if (!wml_json_is_array(list)) return stage == 2 || stage == 3;
    for (size_t k = 0; k < wml_json_len(list); k++)
        if (wml_json_int(wml_json_at(list, k), -1) == (int64_t)stage) return true;
    return false;
}

static struct wml_sam_levels neck(struct wml_family_job *j, const struct wml_json_val *c, size_t stages, struct wml_value *const *stage)
{
    struct wml_nn *b = j->nn;
    struct wml_sam_levels out = {{NULL}};
    const int64_t width = wml_cfg_size(j, c, "fpn_hidden_size", 256), levels = wml_cfg_size(j, c, "num_feature_levels", 3);
    const struct wml_nn_window w = {.kernel = wml_cfg_size(j, c, "fpn_kernel_size", 1), .stride = wml_cfg_size(j, c, "fpn_stride", 1),
                                    .pad = wml_cfg_count(j, c, "fpn_padding", 0)};
    if (levels != 3 || stages < 3) {
        wml_nn_fail(b, WML_E_UNSUPPORTED, "config.json: %lld levels of %zu stages, but masks are drawn over 3", (long long)levels, stages);
        return out;
    }
    wml_nn_enter(b, "*VisionNeck", "neck");
    struct wml_value *above = NULL;
    for (size_t i = stages; i-- > 0 && wml_nn_ok(b);) {
        char name[32];
        snprintf(name, sizeof name, "convs.%zu", stages - 1 - i);
        struct wml_value *x = wml_nn_conv(b, wml_nn_transpose(b, stage[i], "0312"), name, width, &w);
        above = above && joins(wml_json_get(c, "fpn_top_down_levels"), i) ? wml_nn_add(b, x, wml_nn_resize_by(b, above, "nearest", false, 2)) : x;
        if (i < 3) out.level[i] = above;
    }
    wml_nn_leave(b);
    return out;
}

struct wml_sam_levels wml_sam2_see(struct wml_family_job *j)
{
    struct wml_nn *b = j->nn;
    const struct wml_json_val *c = wml_json_get(j->cfg, "vision_config");
    struct wml_value *stage[MAX_STAGES] = {NULL};
    const struct hiera p = params_of(j, wml_json_get(c, "backbone_config"));
    struct wml_value *x = wml_family_input(j, "pixel_values", WML_F32, WML_DIMS(j->batch, p.channels, p.image[0], p.image[1]), 0, 1);
    wml_nn_enter(b, "*VisionModel", "vision_encoder");
    backbone(b, &p, x, stage);
    const struct wml_sam_levels out = neck(j, c, p.stages, stage);
    wml_nn_leave(b);
    return out;
}
