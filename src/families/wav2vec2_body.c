/* families/wav2vec2_body.c - see wav2vec2_body.h. */
#include "families/wav2vec2_body.h"

static const double conv_eps = 1e-5; /* of norms whose epsilon no config says */

static void conv_params(struct wml_family_job *j, const struct wml_speech_lists *lists, struct wml_speech *p)
{
    static const struct wml_speech_lists usual = {7, {512, 512, 512, 512, 512, 512, 512}, {5, 2, 2, 2, 2, 2, 2}, {10, 3, 3, 3, 3, 2, 2}};
    const struct wml_speech_lists *d = lists ? lists : &usual;
    const struct wml_json_val *c = j->cfg;
    p->convs = wml_cfg_list(j, c, "conv_dim", d->n, d->width, p->width, WML_SPEECH_CONVS);
    const size_t strides = wml_cfg_list(j, c, "conv_stride", d->n, d->stride, p->stride, WML_SPEECH_CONVS);
    const size_t kernels = wml_cfg_list(j, c, "conv_kernel", d->n, d->kernel, p->kernel, WML_SPEECH_CONVS);
    if (strides != p->convs || kernels != p->convs || !p->convs)
        wml_nn_fail(j->nn, WML_E_FORMAT, "config.json: conv_dim has %zu convolutions, conv_stride %zu, conv_kernel %zu", p->convs, strides, kernels);
}

struct wml_speech wml_speech_params(struct wml_family_job *j, const struct wml_speech_lists *lists)
{
    const struct wml_json_val *c = j->cfg;
    const struct wml_str norm = wml_cfg_str(j, c, "feat_extract_norm", "group");
    struct wml_speech p = {
        .hidden = wml_cfg_size(j, c, "hidden_size", 768),
        .layers = wml_cfg_count(j, c, "num_hidden_layers", 12),
        .heads = wml_cfg_size(j, c, "num_attention_heads", 12),
        .inner = wml_cfg_size(j, c, "intermediate_size", 3072),
        .eps = wml_cfg_num(j, c, "layer_norm_eps", 1e-5),
        .act = wml_cfg_str(j, c, "hidden_act", "gelu"),
        .conv_act = wml_cfg_str(j, c, "feat_extract_activation", "gelu"),
        .norm_each = wml_str_is(norm, "layer"),
        .stable = wml_json_get_bool(c, "do_stable_layer_norm", false),
        .position_groups = wml_cfg_size(j, c, "num_conv_pos_embedding_groups", 16),
        .position_kernel = wml_cfg_size(j, c, "num_conv_pos_embeddings", 128),
        .position_stride = 1,
        .adapter = wml_cfg_count(j, c, "adapter_attn_dim", 0),
    };
    if (!p.norm_each && !wml_str_is(norm, "group"))
        wml_nn_fail(j->nn, WML_E_UNSUPPORTED, "config.json: feat_extract_norm is '%.*s', known are 'group' and 'layer'", WML_ARG(norm));
    conv_params(j, lists, &p);
    return p;
}

struct wml_value *wml_speech_input(struct wml_family_job *j)
{
    const int64_t samples = j->size[WML_SIZE_AUDIO] ? j->size[WML_SIZE_AUDIO] : 16000;
    return wml_family_input(j, "input_values", WML_F32, WML_DIMS(j->batch, samples), -1, 1);
}

/* ------------------------------------------------------------ from samples */

/* Channels are the second axis, but the last behind the last convolution, where they are normalised anyway. */
struct wml_value *wml_speech_convs(struct wml_nn *b, const struct wml_speech *p, struct wml_value *samples)
{
    wml_nn_enter(b, "*FeatureEncoder", "feature_extractor");
    struct wml_value *x = wml_nn_unsqueeze(b, samples, WML_DIMS(1));
    for (size_t i = 0; i < p->convs && wml_nn_ok(b); i++) {
        const bool last = i + 1 == p->convs;
        wml_nn_enter(b, p->norm_each ? "*LayerNormConvLayer" : i ? "*NoLayerNormConvLayer" : "*GroupNormConvLayer", "conv_layers.%zu", i);
        x = wml_nn_conv(b, x, "conv", p->width[i], &(struct wml_nn_window){.kernel = p->kernel[i], .stride = p->stride[i]});
        if (!p->norm_each && !i) x = wml_nn_group_norm(b, x, "layer_norm", p->width[i], conv_eps);
        if (p->norm_each && !last) x = wml_nn_layer_norm_channels(b, x, "layer_norm", conv_eps);
        if (last) x = wml_nn_transpose(b, x, "021");
        if (p->norm_each && last) x = wml_nn_layer_norm(b, x, "layer_norm", conv_eps);
        x = wml_nn_act(b, x, p->conv_act, "feat_extract_activation");
        wml_nn_leave(b);
    }
    wml_nn_leave(b);
    return x;
}

struct wml_value *wml_speech_project(struct wml_nn *b, const struct wml_speech *p, struct wml_value *x, bool norm)
{
    wml_nn_enter(b, "*FeatureProjection", "feature_projection");
    if (norm) x = wml_nn_layer_norm(b, x, "layer_norm", p->eps);
    x = wml_nn_linear(b, x, "projection", p->hidden);
    wml_nn_leave(b);
    return x;
}

/* The original pads both sides alike and drops what is too many at the end: here it is not padded in the first place. */
struct wml_value *wml_speech_positions(struct wml_nn *b, const struct wml_speech *p, struct wml_value *x)
{
    const int64_t begin = p->position_kernel / 2, end = p->position_kernel - p->position_stride - begin;
    const struct wml_nn_window w = {.kernel = p->position_kernel, .stride = p->position_stride, .pad = begin, .pad_end = end, .uneven = true, .groups = p->position_groups};
    if (end < 0)
        return wml_nn_fail(b, WML_E_UNSUPPORTED, "config.json: num_conv_pos_embeddings %lld is too small for squeeze_factor %lld",
                           (long long)p->position_kernel, (long long)p->position_stride);
    wml_nn_enter(b, "*PositionalConvEmbedding", "pos_conv_embed");
    x = wml_nn_transpose(b, x, "021");
    if (wml_nn_has(b, "batch_norm.running_mean")) x = wml_nn_batch_norm(b, x, "batch_norm", conv_eps);
    x = wml_nn_act(b, wml_nn_conv(b, x, "conv", p->hidden, &w), p->conv_act, "feat_extract_activation");
    wml_nn_leave(b);
    return x;
}

/* ------------------------------------------------------------- transformer */

static struct wml_value *attention(struct wml_nn *b, const struct wml_speech *p, struct wml_value *x, struct wml_value **kept)
{
    wml_nn_enter(b, "*Attention", "attention");
    struct wml_nn_attention a = {.q = wml_nn_queries(b, x, "q_proj", p->hidden, p->heads), .k = wml_nn_keys(b, x, "k_proj", p->hidden),
                                 .v = wml_nn_linear(b, x, "v_proj", p->hidden), .heads = p->heads, .scale = 1};
    if (p->bias) a.bias = p->bias(b, p, x, kept);
    x = wml_nn_linear(b, wml_nn_attention(b, &a), "out_proj", p->hidden);
    wml_nn_leave(b);
    return x;
}

static struct wml_value *feed_forward(struct wml_nn *b, const struct wml_speech *p, struct wml_value *x)
{
    wml_nn_enter(b, "*FeedForward", "feed_forward");
    x = wml_nn_act(b, wml_nn_linear(b, x, "intermediate_dense", p->inner), p->act, "hidden_act");
    x = wml_nn_linear(b, x, "output_dense", p->hidden);
    wml_nn_leave(b);
    return x;
}

/* What a language adds to a layer of a model for many. */
static struct wml_value *adapter(struct wml_nn *b, const struct wml_speech *p, struct wml_value *x)
{
    wml_nn_enter(b, "*AttnAdapterLayer", "adapter_layer");
    struct wml_value *y = wml_nn_linear(b, wml_nn_layer_norm(b, x, "norm", conv_eps), "linear_1", p->adapter);
    y = wml_nn_linear(b, wml_nn_unary(b, "Relu", y), "linear_2", p->hidden);
    wml_nn_leave(b);
    return wml_nn_add(b, x, y);
}

static struct wml_value *layer(struct wml_nn *b, const struct wml_speech *p, size_t i, struct wml_value *x, struct wml_value **kept)
{
    wml_nn_enter(b, p->stable ? "*EncoderLayerStableLayerNorm" : "*EncoderLayer", "layers.%zu", i);
    if (p->stable) {
        x = wml_nn_add(b, x, attention(b, p, wml_nn_layer_norm(b, x, "layer_norm", p->eps), kept));
        x = wml_nn_add(b, x, feed_forward(b, p, wml_nn_layer_norm(b, x, "final_layer_norm", p->eps)));
        if (p->adapter) x = adapter(b, p, x);
    } else {
        x = wml_nn_layer_norm(b, wml_nn_add(b, x, attention(b, p, x, kept)), "layer_norm", p->eps);
        x = wml_nn_layer_norm(b, wml_nn_add(b, x, feed_forward(b, p, x)), "final_layer_norm", p->eps);
    }
    wml_nn_leave(b);
    return x;
}

struct wml_value *wml_speech_layers(struct wml_nn *b, const struct wml_speech *p, struct wml_value *x, struct wml_value **keep)
{
    struct wml_value *kept = NULL;
    for (size_t i = 0; i < (size_t)p->layers && wml_nn_ok(b); i++) {
        if (keep) keep[i] = x;
        x = layer(b, p, i, x, &kept);
    }
    return x;
}

struct wml_value *wml_speech_encoder(struct wml_nn *b, const struct wml_speech *p, struct wml_value *x, struct wml_value **keep)
{
    wml_nn_enter(b, p->stable ? "*EncoderStableLayerNorm" : "*Encoder", "encoder");
    x = wml_nn_add(b, x, wml_nn_transpose(b, wml_speech_positions(b, p, x), "021"));
    if (!p->stable) x = wml_nn_layer_norm(b, x, "layer_norm", p->eps);
    x = wml_speech_layers(b, p, x, keep);
    if (p->stable) x = wml_nn_layer_norm(b, x, "layer_norm", p->eps);
    if (keep) keep[p->layers] = x;
    wml_nn_leave(b);
    return x;
}

/* ------------------------------------------------------------------ adapter */

/* x [batch, width, places]: a convolution to twice the width, whose second half opens and closes the first. */
static struct wml_value *adapter_conv(struct wml_nn *b, struct wml_value *x, size_t i, int64_t width, const struct wml_nn_window *w)
{
    struct wml_value *part[2] = {NULL, NULL};
    wml_nn_enter(b, "*AdapterLayer", "layers.%zu", i);
    wml_nn_split(b, wml_nn_conv(b, x, "conv", 2 * width, w), 1, 2, part);
    x = wml_nn_mul(b, part[0], wml_nn_unary(b, "Sigmoid", part[1]));
    wml_nn_leave(b);
    return x;
}

struct wml_value *wml_speech_adapt(struct wml_family_job *j, const struct wml_speech *p, struct wml_value *x)
{
    struct wml_nn *b = j->nn;
    if (!wml_json_get_bool(j->cfg, "add_adapter", false)) return x;
    const int64_t width = wml_cfg_size(j, j->cfg, "output_hidden_size", p->hidden);
    const struct wml_nn_window w = {.kernel = wml_cfg_size(j, j->cfg, "adapter_kernel_size", 3),
                                    .stride = wml_cfg_size(j, j->cfg, "adapter_stride", 2), .pad = 1};
    const int64_t layers = wml_cfg_count(j, j->cfg, "num_adapter_layers", 3);
    wml_nn_enter(b, "*Adapter", "adapter");
    if (width != p->hidden) x = wml_nn_layer_norm(b, wml_nn_linear(b, x, "proj", width), "proj_layer_norm", conv_eps);
    if (layers) {
        x = wml_nn_transpose(b, x, "021");
        for (size_t i = 0; i < (size_t)layers && wml_nn_ok(b); i++) x = adapter_conv(b, x, i, width, &w);
        x = wml_nn_transpose(b, x, "021");
    }
    wml_nn_leave(b);
    return x;
}

struct wml_value *wml_speech_body(struct wml_family_job *j, struct wml_value **keep)
{
    const struct wml_speech p = wml_speech_params(j, NULL);
    struct wml_value *x = wml_speech_convs(j->nn, &p, wml_speech_input(j));
    x = wml_speech_project(j->nn, &p, x, true);
    return wml_speech_adapt(j, &p, wml_speech_encoder(j->nn, &p, x, keep));
}
