/* families/rt_detr_body.c - see rt_detr_body.h. */
#include <math.h>
#include "families/backbone.h"
#include "families/rt_detr_body.h"

struct wml_rt_detr wml_rt_detr_params(struct wml_family_job *j)
{
    const struct wml_json_val *c = j->cfg, *list = wml_json_get(c, "encode_proj_layers");
    struct wml_rt_detr p = {
        .width = wml_cfg_size(j, c, "encoder_hidden_dim", 256), .layers = wml_cfg_count(j, c, "encoder_layers", 1),
        .heads = wml_cfg_size(j, c, "encoder_attention_heads", 8), .inner = wml_cfg_size(j, c, "encoder_ffn_dim", 1024),
        .hidden = wml_cfg_size(j, c, "d_model", 256), .queries = wml_cfg_size(j, c, "num_queries", 300), .labels = wml_cfg_labels(j, c),
        .depth = wml_cfg_size(j, c, "decoder_layers", 6), .query_heads = wml_cfg_size(j, c, "decoder_attention_heads", 8),
        .query_inner = wml_cfg_size(j, c, "decoder_ffn_dim", 1024), .expansion = wml_cfg_num(j, c, "hidden_expansion", 1),
        .depth_mult = wml_cfg_num(j, c, "depth_mult", 1), .temperature = wml_cfg_num(j, c, "positional_encoding_temperature", 10000),
        .bn_eps = wml_cfg_num(j, c, "batch_norm_eps", 1e-5), .eps = wml_cfg_num(j, c, "layer_norm_eps", 1e-5),
        .before = wml_json_get_bool(c, "normalize_before", false), .act = wml_cfg_str(j, c, "activation_function", "silu"),
        .encoder_act = wml_cfg_str(j, c, "encoder_activation_function", "gelu"), .decoder_act = wml_cfg_str(j, c, "decoder_activation_function", "relu")};
    const int64_t levels = wml_cfg_size(j, c, "num_feature_levels", 3);
    p.n_attended = wml_json_is_array(list) ? WML_MIN(wml_json_len(list), (size_t)WML_DEFORMABLE_LEVELS) : 1;
    for (size_t i = 0; i < p.n_attended; i++) p.attended[i] = (size_t)wml_json_int(wml_json_at(list, i), 2);
    if (levels > WML_DEFORMABLE_LEVELS) wml_nn_fail(j->nn, WML_E_UNSUPPORTED, "config.json: num_feature_levels is %lld", (long long)levels);
    else p.levels = (size_t)levels;
    return p;
}

struct wml_value *wml_rt_detr_pixels(struct wml_family_job *j, const struct wml_rt_detr *p)
{
    int64_t side = WML_MAX((p->queries + 31) / 32 * 32, 64);
    for (int64_t places = 0; p->levels && places < p->queries; side += places < p->queries ? 32 : 0) { /* enough of them in all levels */
        places = 0;
        for (size_t i = 0; i < p->levels; i++) places += (side / 32 << i) * (side / 32 << i);
    }
    wml_backbone_channels(j, wml_json_get(j->cfg, "backbone_config"));
    return wml_family_pixels(j, side);
}

/* -------------------------------------------------------------------- layers */

struct wml_value *wml_rt_detr_conv(struct wml_nn *b, const struct wml_rt_detr *p, struct wml_value *x, const char *name, int64_t out,
                                   const struct wml_nn_window *w, struct wml_str act)
{
    wml_nn_enter(b, "*ConvNormLayer", "%s", name);
    x = wml_nn_conv_bn(b, x, "conv", "norm", p->bn_eps, out, w);
    if (act.len) x = wml_nn_act(b, x, act, "activation_function");
    wml_nn_leave(b);
    return x;
}

static struct wml_value *rep_vgg(struct wml_nn *b, const struct wml_rt_detr *p, struct wml_value *x, size_t i, int64_t width)
{
    static const char *const conv[2] = {"conv1.conv", "conv2.conv"}, *const norm[2] = {"conv1.norm", "conv2.norm"};
    wml_nn_enter(b, "*RepVggBlock", "bottlenecks.%zu", i);
    x = wml_nn_conv_bn_both(b, x, conv, norm, p->bn_eps, width, &(struct wml_nn_window){.kernel = 3, .pad = 1});
    x = wml_nn_act(b, x, p->act, "activation_function");
    wml_nn_leave(b);
    return x;
}

struct wml_value *wml_rt_detr_csp(struct wml_nn *b, const struct wml_rt_detr *p, struct wml_value *x, const char *name, int64_t out, double expansion,
                                  int64_t blocks)
{
    const struct wml_nn_window point = {.kernel = 1};
    const int64_t inner = wml_cfg_whole((double)out * expansion);
    wml_nn_enter(b, "*CSPRepLayer", "%s", name);
    struct wml_value *y = wml_rt_detr_conv(b, p, x, "conv1", inner, &point, p->act);
    for (size_t i = 0; i < (size_t)blocks && wml_nn_ok(b); i++) y = rep_vgg(b, p, y, i, inner);
    y = wml_nn_add(b, y, wml_rt_detr_conv(b, p, x, "conv2", inner, &point, p->act));
    if (inner != out) y = wml_rt_detr_conv(b, p, y, "conv3", out, &point, p->act);
    wml_nn_leave(b);
    return y;
}

struct wml_value *wml_rt_detr_attend(struct wml_nn *b, int64_t hidden, int64_t heads, struct wml_value *x, struct wml_value *at)
{
    struct wml_value *q = wml_nn_add(b, x, at);
    wml_nn_enter(b, "*MultiheadAttention", "self_attn");
    const struct wml_nn_attention a = {.q = wml_nn_queries(b, q, "q_proj", hidden, heads), .k = wml_nn_keys(b, q, "k_proj", hidden),
                                       .v = wml_nn_linear(b, x, "v_proj", hidden), .heads = heads, .scale = 1};
    x = wml_nn_linear(b, wml_nn_attention(b, &a), "out_proj", hidden);
    wml_nn_leave(b);
    return x;
}

struct wml_value *wml_rt_detr_mlp(struct wml_nn *b, const char *name, struct wml_value *x, int64_t inner, int64_t out, int64_t depth)
{
    wml_nn_enter(b, "*MLPPredictionHead", "%s", name);
    for (int64_t i = 0; i < depth && wml_nn_ok(b); i++) {
        char layer[32];
        snprintf(layer, sizeof layer, "layers.%lld", (long long)i);
        x = wml_nn_linear(b, x, layer, i + 1 < depth ? inner : out);
        if (i + 1 < depth) x = wml_nn_unary(b, "Relu", x);
    }
    wml_nn_leave(b);
    return x;
}

struct wml_value *wml_rt_detr_refine(struct wml_nn *b, struct wml_value *delta, struct wml_value *box)
{
    struct wml_value *x = wml_nn_clip(b, box, 1e-5, 1 - 1e-5);
    x = wml_nn_unary(b, "Log", wml_nn_div(b, x, wml_nn_sub(b, wml_nn_float(b, 1), x)));
    return wml_nn_unary(b, "Sigmoid", wml_nn_add(b, delta, x));
}

/* ------------------------------------------------------------------- encoder */

struct wml_rt_detr_pictures wml_rt_detr_see(struct wml_family_job *j, const struct wml_rt_detr *p, struct wml_value *pixels)
{
    struct wml_nn *b = j->nn;
    const struct wml_json_val *c = wml_json_get(j->cfg, "backbone_config");
    const struct wml_str kind = wml_cfg_str(j, c, "model_type", "rt_detr_resnet");
    struct wml_rt_detr_pictures s = {{NULL}, 0};
    const char *klass = b->klass;
    wml_nn_enter(b, "*ConvEncoder", "backbone");
    if (wml_str_is(kind, "rt_detr_resnet") && wml_json_is_object(c)) {
        b->klass = "RTDetrResNet";
        wml_nn_enter(b, "*Backbone", "model");
        wml_rt_detr_resnet(j, c, pixels, &s);
        wml_nn_leave(b);
    } else {
        wml_nn_fail(b, WML_E_UNSUPPORTED, "config.json: the backbone is '%.*s'", WML_ARG(kind));
        wml_nn_hint(b, "known is rt_detr_resnet");
    }
    b->klass = klass;
    wml_nn_leave(b);
    if (wml_nn_ok(b) && s.n != p->levels)
        wml_nn_fail(b, WML_E_FORMAT, "config.json: the backbone gives %zu pictures, num_feature_levels is %zu", s.n, p->levels);
    for (size_t i = 0; i < s.n && wml_nn_ok(b); i++) {
        char conv[40], norm[40];
        snprintf(conv, sizeof conv, "encoder_input_proj.%zu.0", i);
        snprintf(norm, sizeof norm, "encoder_input_proj.%zu.1", i);
        s.level[i] = wml_nn_conv_bn(b, s.level[i], conv, norm, 1e-5, p->width, &(struct wml_nn_window){0});
    }
    return s;
}

/* Sines and cosines of columns and of rows; where the checkpoints' code counts places along columns first, so does this. */
static struct wml_value *sine(struct wml_nn *b, const struct wml_rt_detr *p, int64_t rows, int64_t columns)
{
    const int64_t part = p->width / 4;
    if (p->width % 4) return wml_nn_fail(b, WML_E_FORMAT, "config.json: encoder_hidden_dim %lld is no multiple of 4", (long long)p->width);
    float *t = wml_nn_room(b, "positions", sizeof *t, WML_DIMS(rows, columns, p->width));
    if (!t) return NULL;
    for (int64_t i = 0; i < rows * columns; i++)
        for (int64_t c = 0; c < p->width; c++) {
            const double at = c < 2 * part ? (double)(i / rows) : (double)(i % rows);
            const double angle = at / pow(p->temperature, (double)(c % part) / (double)part);
            t[i * p->width + c] = (float)(c / part % 2 ? cos(angle) : sin(angle));
        }
    return wml_nn_const(b, "position_embedding", WML_F32, WML_DIMS(rows * columns, p->width), t);
}

static struct wml_value *encoder_layer(struct wml_nn *b, const struct wml_rt_detr *p, size_t i, struct wml_value *x, struct wml_value *at)
{
    wml_nn_enter(b, "*EncoderLayer", "layers.%zu", i);
    struct wml_value *y = p->before ? wml_nn_layer_norm(b, x, "self_attn_layer_norm", p->eps) : x;
    x = wml_nn_add(b, x, wml_rt_detr_attend(b, p->width, p->heads, y, at));
    x = wml_nn_layer_norm(b, x, p->before ? "final_layer_norm" : "self_attn_layer_norm", p->eps);
    y = wml_nn_linear(b, wml_nn_act(b, wml_nn_linear(b, x, "fc1", p->inner), p->encoder_act, "encoder_activation_function"), "fc2", p->width);
    x = wml_nn_add(b, x, y);
    if (!p->before) x = wml_nn_layer_norm(b, x, "final_layer_norm", p->eps);
    wml_nn_leave(b);
    return x;
}

/* "encoder.<i>": every place of one picture attends to every other. */
static struct wml_value *attended(struct wml_nn *b, const struct wml_rt_detr *p, size_t i, struct wml_value *x)
{
    static const char *const what = "the height and width of pixel_values";
    const int64_t rows = wml_nn_size(b, x, 2, what), columns = wml_nn_size(b, x, 3, what);
    if (b->failed) return NULL;
    wml_nn_enter(b, "*Encoder", "encoder.%zu", i);
    struct wml_value *at = sine(b, p, rows, columns);
    x = wml_nn_transpose(b, wml_nn_reshape(b, x, WML_DIMS(0, p->width, rows * columns)), "021");
    for (size_t l = 0; l < (size_t)p->layers && wml_nn_ok(b); l++) x = encoder_layer(b, p, l, x, at);
    x = wml_nn_reshape(b, wml_nn_transpose(b, x, "021"), WML_DIMS(0, p->width, rows, columns));
    wml_nn_leave(b);
    return x;
}

static struct wml_value *numbered(struct wml_nn *b, const struct wml_rt_detr *p, struct wml_value *x, const char *list, size_t i,
                                  struct wml_value *(*make)(struct wml_nn *b, const struct wml_rt_detr *p, struct wml_value *x, const char *name))
{
    char name[40];
    snprintf(name, sizeof name, "%s.%zu", list, i);
    return make(b, p, x, name);
}

void wml_rt_detr_mix(struct wml_nn *b, const struct wml_rt_detr *p, const struct wml_rt_detr_kind *kind, struct wml_rt_detr_pictures *s)
{
    wml_nn_enter(b, "*HybridEncoder", "encoder");
    for (size_t i = 0; p->layers && i < p->n_attended && wml_nn_ok(b); i++) {
        const size_t at = p->attended[i];
        if (at >= s->n) wml_nn_fail(b, WML_E_FORMAT, "config.json: encode_proj_layers names a picture beyond the %zu that there are", s->n);
        else s->level[at] = attended(b, p, i, s->level[at]);
    }
    for (size_t i = s->n; i-- > 1 && wml_nn_ok(b);) { /* from coarse to fine */
        const size_t k = s->n - 1 - i;
        char name[32];
        snprintf(name, sizeof name, "lateral_convs.%zu", k);
        s->level[i] = wml_rt_detr_conv(b, p, s->level[i], name, p->width, &(struct wml_nn_window){.kernel = 1}, kind->lateral_act ? p->act : WML_STR(""));
        struct wml_value *up = wml_nn_resize_by(b, s->level[i], "nearest", false, 2);
        s->level[i - 1] = numbered(b, p, wml_nn_concat(b, 1, WML_VALUES(up, s->level[i - 1])), "fpn_blocks", k, kind->fuse);
    }
    for (size_t i = 1; i < s->n && wml_nn_ok(b); i++) { /* and back */
        struct wml_value *down = numbered(b, p, s->level[i - 1], "downsample_convs", i - 1, kind->down);
        s->level[i] = numbered(b, p, wml_nn_concat(b, 1, WML_VALUES(down, s->level[i])), "pan_blocks", i - 1, kind->fuse);
    }
    wml_nn_leave(b);
}

/* ----------------------------------------------------------------- selection */

/* Logits of a box around every place [places, 4]; beyond all where the box would touch an edge. *valid: 1, or 0 there. */
static float *anchors(struct wml_nn *b, const struct wml_rt_detr *p, int64_t (*size)[2], int64_t places, float **valid)
{
    float *out = wml_nn_room(b, "anchors", sizeof *out, WML_DIMS(4, places)), *at = out;
    *valid = wml_nn_room(b, "anchors", sizeof **valid, WML_DIMS(places));
    if (!out || !*valid) return NULL;
    for (size_t l = 0, k = 0; l < p->levels; l++)
        for (int64_t i = 0; i < size[l][0] * size[l][1]; i++, k++) {
            const double wide = 0.05 * (double)(1 << l);
            const double box[4] = {((double)(i % size[l][1]) + 0.5) / (double)size[l][1], ((double)(i / size[l][1]) + 0.5) / (double)size[l][0], wide, wide};
            bool inside = true;
            for (size_t e = 0; e < 4; e++) inside = inside && box[e] > 1e-2 && box[e] < 1 - 1e-2;
            (*valid)[k] = inside ? 1.0f : 0.0f;
            for (size_t e = 0; e < 4; e++) *at++ = inside ? (float)log(box[e] / (1 - box[e])) : 3.4028234663852886e38f;
        }
    return out;
}

static struct wml_value *flattened(struct wml_nn *b, const struct wml_rt_detr *p, const struct wml_rt_detr_pictures *s, struct wml_rt_detr_start *out)
{
    static const char *const what = "the height and width of pixel_values";
    struct wml_value *part[WML_DEFORMABLE_LEVELS] = {NULL};
    for (size_t i = 0; i < s->n; i++) {
        char conv[40], norm[40], weight[48];
        snprintf(conv, sizeof conv, "decoder_input_proj.%zu.0", i);
        snprintf(norm, sizeof norm, "decoder_input_proj.%zu.1", i);
        snprintf(weight, sizeof weight, "%s.weight", conv);
        struct wml_value *x = s->level[i];
        if (p->hidden != p->width || wml_nn_has(b, weight)) x = wml_nn_conv_bn(b, x, conv, norm, p->bn_eps, p->hidden, &(struct wml_nn_window){0});
        for (size_t k = 0; k < 2; k++) out->size[i][k] = wml_nn_size(b, x, (int)k + 2, what);
        part[i] = wml_nn_transpose(b, wml_nn_reshape(b, x, WML_DIMS(0, p->hidden, out->size[i][0] * out->size[i][1])), "021");
    }
    return s->n > 1 ? wml_nn_concat(b, 1, s->n, part) : part[0];
}

/* Where the config names a picture's size, its anchors are that picture's. */
static void anchor_sizes(struct wml_family_job *j, const struct wml_rt_detr *p, const struct wml_rt_detr_start *s)
{
    const struct wml_json_val *image = wml_json_get(j->cfg, "anchor_image_size"), *strides = wml_json_get(j->cfg, "feat_strides");
    for (size_t l = 0; wml_json_is_array(image) && l < p->levels; l++)
        for (size_t k = 0; k < 2; k++)
            if (wml_json_int(wml_json_at(image, k), 0) / WML_MAX(wml_json_int(wml_json_at(strides, l), 8 << l), 1) != s->size[l][k]) {
                wml_nn_fail(j->nn, WML_E_UNSUPPORTED, "config.json: anchor_image_size is another than that of pixel_values");
                wml_nn_hint(j->nn, "give height and width as anchor_image_size has them with --shape-config");
            }
}

struct wml_rt_detr_start wml_rt_detr_select(struct wml_family_job *j, const struct wml_rt_detr *p, const struct wml_rt_detr_pictures *s)
{
    struct wml_nn *b = j->nn;
    struct wml_rt_detr_start out = {0};
    if (b->failed) return out;
    out.memory = flattened(b, p, s, &out);
    if (b->failed) return out;
    anchor_sizes(j, p, &out);
    int64_t places = 0;
    for (size_t i = 0; i < p->levels; i++) places += out.size[i][0] * out.size[i][1];
    if (places < p->queries) {
        wml_nn_fail(b, WML_E_UNSUPPORTED, "the picture has %lld places, but the model asks for %lld of them", (long long)places, (long long)p->queries);
        wml_nn_hint(b, "give a larger height and width with --shape-config");
        return out;
    }
    float *valid;
    const float *boxes = anchors(b, p, out.size, places, &valid);
    struct wml_value *x = wml_nn_mul(b, out.memory, wml_nn_const(b, "valid_mask", WML_F32, WML_DIMS(places, 1), valid));
    x = wml_nn_layer_norm(b, wml_nn_linear(b, x, "enc_output.0", p->hidden), "enc_output.1", p->eps);
    struct wml_value *best = wml_nn_reduce(b, "ReduceMax", wml_nn_linear(b, x, "enc_score_head", p->labels), WML_DIMS(-1), false);
    best = wml_nn_largest(b, best, p->queries);
    x = wml_nn_pick_rows(b, x, best);
    struct wml_value *around = wml_nn_gather(b, wml_nn_const(b, "anchors", WML_F32, WML_DIMS(places, 4), boxes), best, 0);
    out.box = wml_nn_unary(b, "Sigmoid", wml_nn_add(b, wml_rt_detr_mlp(b, "enc_bbox_head", x, p->hidden, 4, 3), around));
    out.query = x;
    if (wml_json_get_bool(j->cfg, "learn_initial_query", false))
        out.query = wml_nn_repeat(b, wml_nn_unsqueeze(b, wml_nn_param(b, "weight_embedding.weight", WML_DIMS(p->queries, p->hidden)), WML_DIMS(0)), 0, x, 0);
    return out;
}

/* --------------------------------------------------------------------- heads */

bool wml_rt_detr_enter(struct wml_family_job *j)
{
    wml_nn_enter(j->nn, "*Model", "%s", j->type->base);
    wml_nn_enter(j->nn, "*Decoder", "decoder");
    return wml_nn_has(j->nn, "class_embed.0.weight");
}

void wml_rt_detr_leave(struct wml_nn *b)
{
    wml_nn_leave(b);
    wml_nn_leave(b);
}
