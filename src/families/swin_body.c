/* families/swin_body.c - see swin_body.h. */
#include "families/swin_body.h"
#include "families/vit_body.h"
#include "nn/windows.h"

struct wml_swin wml_swin_params(struct wml_family_job *j)
{
    const struct wml_json_val *c = j->cfg;
    struct wml_swin p = {.width = wml_cfg_size(j, c, "embed_dim", 96), .window = wml_cfg_size(j, c, "window_size", 7),
                         .ratio = wml_cfg_num(j, c, "mlp_ratio", 4), .eps = wml_cfg_num(j, c, "layer_norm_eps", 1e-5),
                         .act = wml_cfg_str(j, c, "hidden_act", "gelu")};
    p.stages = wml_cfg_list(j, c, "depths", 4, (const int64_t[]){2, 2, 6, 2}, p.depth, WML_SWIN_STAGES);
    const size_t n = wml_cfg_list(j, c, "num_heads", 4, (const int64_t[]){3, 6, 12, 24}, p.heads, WML_SWIN_STAGES);
    if (!p.stages || n != p.stages) wml_nn_fail(j->nn, WML_E_FORMAT, "config.json: depths has %zu stages, num_heads %zu", p.stages, n);
    if (wml_json_get_bool(c, "use_absolute_embeddings", false)) /* a table of one row too many: transformers fails, too */
        wml_nn_fail(j->nn, WML_E_UNSUPPORTED, "config.json: use_absolute_embeddings of %s", j->type->model_type);
    wml_cfg_pair(j, c, "patch_size", 4, p.patch);
    wml_cfg_pair(j, c, "image_size", 224, p.image);
    for (size_t i = 0; i < WML_SWIN_STAGES; i++)
        p.pretrained[i] = wml_json_int(wml_json_at(wml_json_get(c, "pretrained_window_sizes"), i), 0);
    return p;
}

int64_t wml_swin_last_width(const struct wml_swin *p)
{
    return p->width << (p->stages - 1);
}

static struct wml_value *pad_to(struct wml_nn *b, struct wml_value *x, size_t rows_axis, int64_t rows, int64_t columns)
{
    int64_t pads[8] = {0};
    pads[4 + rows_axis] = rows - wml_nn_axis(x, (int)rows_axis).size;
    pads[4 + rows_axis + 1] = columns - wml_nn_axis(x, (int)rows_axis + 1).size;
    return wml_nn_pad(b, x, pads, 0);
}

static int64_t up_to(int64_t n, int64_t multiple)
{
    return (n + multiple - 1) / multiple * multiple;
}

/* -------------------------------------------------------------------- windows */

/* 0 between places of one piece of the picture, -100 between those of pieces that the shift put side by side. */
static struct wml_value *shift_mask(struct wml_nn *b, const struct wml_swin_block *k, int64_t rows, int64_t columns)
{
    const int64_t side = k->side, places = side * side, across = columns / side, windows = rows / side * across;
    const int64_t dims[4] = {windows, 1, places, places};
    float *mask = wml_nn_room(b, "mask of shifted windows", sizeof *mask, WML_DIMS(windows, places, places));
    if (!mask) return NULL;
    const float apart = k->p->v2 ? -200.0f : -100.0f; /* Swin V2's code adds its mask twice */
    int64_t *piece = wml_nn_room(b, "places of a window", sizeof *piece, WML_DIMS(places));
    if (!piece) return NULL;
    for (int64_t w = 0; w < windows; w++) {
        for (int64_t i = 0; i < places; i++) {
            const int64_t y = w / across * side + i / side, x = w % across * side + i % side;
            const int64_t py = y < rows - side ? 0 : y < rows - k->shift ? 1 : 2, px = x < columns - side ? 0 : x < columns - k->shift ? 1 : 2;
            piece[i] = 3 * py + px;
        }
        for (int64_t i = 0; i < places; i++)
            for (int64_t l = 0; l < places; l++) mask[(w * places + i) * places + l] = piece[i] == piece[l] ? 0.0f : apart;
    }
    return wml_nn_const(b, "shift_mask", WML_F32, 4, dims, mask);
}

struct wml_value *wml_swin_add_mask(struct wml_nn *b, struct wml_value *scores, struct wml_value *mask)
{
    if (b->failed || !mask) return scores;
    const int64_t windows = wml_nn_axis(mask, 0).size, heads = wml_nn_axis(scores, 1).size, places = wml_nn_axis(mask, 2).size;
    if (wml_nn_axis(scores, 0).size == windows) return wml_nn_add(b, scores, mask);
    scores = wml_nn_reshape(b, scores, WML_DIMS(-1, windows, heads, places, places));
    return wml_nn_reshape(b, wml_nn_add(b, scores, mask), WML_DIMS(-1, heads, places, places));
}

struct wml_value *wml_swin_in_windows(struct wml_nn *b, const struct wml_swin_block *k, struct wml_value *x)
{
    if (b->failed || !x) return NULL;
    const int64_t rows = up_to(k->rows, k->side), columns = up_to(k->columns, k->side);
    const bool moved = k->shift || rows != k->rows || columns != k->columns;
    if (moved) {
        x = pad_to(b, wml_nn_reshape(b, x, WML_DIMS(-1, k->rows, k->columns, k->width)), 1, rows, columns);
        x = wml_nn_roll(b, wml_nn_roll(b, x, 1, k->shift), 2, k->shift);
    }
    x = wml_nn_to_windows(b, x, k->side, rows, columns);
    x = k->kind->attend(b, k, x, k->shift ? shift_mask(b, k, rows, columns) : NULL);
    x = wml_nn_from_windows(b, x, k->side, rows, columns, !moved);
    if (!moved) return x;
    x = wml_nn_roll(b, wml_nn_roll(b, x, 1, -k->shift), 2, -k->shift);
    x = wml_nn_crop(b, x, 1, k->rows, k->columns);
    return wml_nn_reshape(b, x, WML_DIMS(-1, k->width));
}

struct wml_value *wml_swin_bias(struct wml_nn *b, const struct wml_swin_block *k, const float *table, int64_t window)
{
    if (b->failed || !table) return NULL;
    const int64_t side = k->side, places = side * side, span = 2 * window - 1, dims[4] = {1, k->heads, places, places};
    float *bias = wml_nn_room(b, "relative positions", sizeof *bias, WML_DIMS(k->heads, places, places));
    if (!bias) return NULL;
    for (int64_t i = 0; i < places; i++)
        for (int64_t l = 0; l < places; l++) {
            const int64_t dy = i / side - l / side + window - 1, dx = i % side - l % side + window - 1;
            for (int64_t h = 0; h < k->heads; h++)
                bias[(h * places + i) * places + l] = table[(dy * span + dx) * k->heads + h];
        }
    return wml_nn_const(b, "relative_position_bias", WML_F32, 4, dims, bias);
}

struct wml_value *wml_swin_feed_forward(struct wml_nn *b, const struct wml_swin_block *k, struct wml_value *x)
{
    wml_nn_enter(b, "*Intermediate", "intermediate");
    x = wml_nn_act(b, wml_nn_linear(b, x, "dense", wml_cfg_whole(k->p->ratio * (double)k->width)), k->p->act, "hidden_act");
    wml_nn_leave(b);
    wml_nn_enter(b, "*Output", "output");
    x = wml_nn_linear(b, x, "dense", k->width);
    wml_nn_leave(b);
    return x;
}

/* -------------------------------------------------------------------- stages */

/* Four neighbours become one place of twice the width. The order is that of the checkpoint: down, then right. */
static struct wml_value *merge(struct wml_nn *b, const struct wml_swin *p, struct wml_value *x, int64_t width, int64_t grid[2])
{
    wml_nn_enter(b, "*PatchMerging", "downsample");
    const int64_t rows = up_to(grid[0], 2), columns = up_to(grid[1], 2);
    if (rows != grid[0] || columns != grid[1]) x = pad_to(b, wml_nn_reshape(b, x, WML_DIMS(-1, grid[0], grid[1], width)), 1, rows, columns);
    x = wml_nn_merge_four(b, x, columns);
    grid[0] = rows / 2;
    grid[1] = columns / 2;
    if (!p->v2) x = wml_nn_layer_norm(b, x, "norm", 1e-5);
    x = wml_nn_linear(b, x, "reduction", 2 * width);
    if (p->v2) x = wml_nn_layer_norm(b, x, "norm", 1e-5);
    wml_nn_leave(b);
    return x;
}

static struct wml_value *stage(struct wml_nn *b, const struct wml_swin *p, size_t s, struct wml_value *x, int64_t grid[2], const struct wml_swin_kind *kind)
{
    struct wml_swin_block k = {.p = p, .kind = kind, .stage = s, .width = p->width << s, .heads = p->heads[s], .rows = grid[0], .columns = grid[1]};
    /* Swin V2's windows fit the rows of the config's picture, whatever the size of this one. */
    const int64_t rows = p->image[0] / p->patch[0] >> s;
    const int64_t least = p->v2 ? rows : grid[0] < grid[1] ? grid[0] : grid[1];
    if (least < 1) {
        wml_nn_fail(b, WML_E_FORMAT, "config.json: image_size is too small for %zu stages", p->stages);
        return NULL;
    }
    k.side = least <= p->window ? least : p->window;
    wml_nn_enter(b, "*Stage", "layers.%zu", s);
    for (size_t i = 0; i < (size_t)p->depth[s] && wml_nn_ok(b); i++) {
        k.shift = i % 2 && least > p->window ? p->window / 2 : 0;
        wml_nn_enter(b, "*Layer", "blocks.%zu", i);
        x = kind->block(b, &k, x);
        wml_nn_leave(b);
    }
    if (s + 1 < p->stages) x = merge(b, p, x, k.width, grid);
    wml_nn_leave(b);
    return x;
}

/* Pictures whose sides are no multiples of a patch get zeros at the end. */
static struct wml_value *embeddings(struct wml_nn *b, const struct wml_swin *p, struct wml_value *x, int64_t grid[2])
{
    static const char *const what = "the height and width of pixel_values";
    const int64_t h = up_to(wml_nn_size(b, x, 2, what), p->patch[0]), w = up_to(wml_nn_size(b, x, 3, what), p->patch[1]);
    const struct wml_vit v = {.hidden = p->width, .patch = {p->patch[0], p->patch[1]}};
    wml_nn_enter(b, "*Embeddings", "embeddings");
    x = wml_vit_patches(b, &v, wml_nn_ok(b) ? pad_to(b, x, 2, h, w) : NULL, grid);
    x = wml_nn_layer_norm(b, x, "norm", 1e-5);
    wml_nn_find(b, "mask_token"); /* of training */
    wml_nn_leave(b);
    return x;
}

struct wml_value *wml_swin_body(struct wml_nn *b, const struct wml_swin *p, struct wml_value *pixels, const struct wml_swin_kind *kind)
{
    int64_t grid[2] = {1, 1};
    struct wml_value *x = wml_nn_reshape(b, embeddings(b, p, pixels, grid), WML_DIMS(-1, p->width));
    wml_nn_enter(b, "*Encoder", "encoder");
    for (size_t s = 0; s < p->stages && wml_nn_ok(b); s++) x = stage(b, p, s, x, grid, kind);
    wml_nn_leave(b);
    if (!p->bare) x = wml_nn_layer_norm(b, x, "layernorm", p->eps);
    return wml_nn_reshape(b, x, WML_DIMS(-1, grid[0] * grid[1], wml_swin_last_width(p)));
}

/* ---------------------------------------------------------------------- tasks */

static struct wml_swin params_for(struct wml_family_job *j)
{
    struct wml_swin p = wml_swin_params(j);
    p.v2 = strcmp(j->type->model_type, "swinv2") == 0;
    p.bare = strcmp(j->type->model_type, "donut-swin") == 0;
    return p;
}

static struct wml_value *encoder(struct wml_family_job *j, const struct wml_swin *p, const struct wml_swin_kind *kind)
{
    struct wml_value *x = wml_family_pixels(j, 224);
    wml_nn_enter(j->nn, "*Model", "%s", j->type->base);
    x = wml_swin_body(j->nn, p, x, kind);
    wml_nn_leave(j->nn);
    return x;
}

void wml_swin_features(struct wml_family_job *j)
{
    const struct wml_swin_kind *kind = j->family->own;
    const struct wml_swin p = params_for(j);
    wml_nn_output(j->nn, "last_hidden_state", wml_swin_body(j->nn, &p, wml_family_pixels(j, 224), kind));
}

void wml_swin_classification(struct wml_family_job *j)
{
    const struct wml_swin_kind *kind = j->family->own;
    struct wml_nn *b = j->nn;
    const struct wml_swin p = params_for(j);
    struct wml_value *x = wml_nn_reduce(b, "ReduceMean", encoder(j, &p, kind), WML_DIMS(1), false);
    wml_nn_output(b, "logits", wml_nn_linear(b, x, "classifier", wml_cfg_labels(j, j->cfg)));
}

void wml_swin_masked_image(struct wml_family_job *j)
{
    const struct wml_swin_kind *kind = j->family->own;
    struct wml_nn *b = j->nn;
    const struct wml_swin p = params_for(j);
    const int64_t stride = wml_cfg_size(j, j->cfg, "encoder_stride", 32), channels = wml_cfg_size(j, j->cfg, "num_channels", 3);
    struct wml_value *x = encoder(j, &p, kind);
    const int64_t places = wml_nn_size(b, x, 1, "the number of places");
    int64_t side = 1;
    while (side * side < places) side++;
    if (side * side != places) wml_nn_fail(b, WML_E_UNSUPPORTED, "masked-im needs square pictures");
    x = wml_vit_to_image(b, x, (const int64_t[]){side, side}, wml_swin_last_width(&p));
    x = wml_nn_conv(b, x, "decoder.0", stride * stride * channels, &(struct wml_nn_window){0});
    wml_nn_output(b, "reconstruction", wml_nn_pixel_shuffle(b, x, stride));
}
