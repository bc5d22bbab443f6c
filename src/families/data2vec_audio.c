/* families/data2vec_audio.c - data2vec over sound (Baevski et al. 2022): wav2vec 2.0 whose positions are made by several small
 * convolutions, one after the other. */
#include "families/wav2vec2_body.h"

static struct wml_value *positions(struct wml_family_job *j, const struct wml_speech *p, struct wml_value *x)
{
    struct wml_nn *b = j->nn;
    const int64_t kernel = wml_cfg_size(j, j->cfg, "conv_pos_kernel_size", 19), begin = kernel / 2;
    const int64_t layers = wml_cfg_count(j, j->cfg, "num_conv_pos_embeddings", 5);
    const struct wml_nn_window w = {.kernel = kernel, .pad = begin, .pad_end = kernel - 1 - begin, .uneven = true, .groups = p->position_groups};
    wml_nn_enter(b, "*PositionalConvEmbedding", "pos_conv_embed");
    for (size_t i = 0; i < (size_t)layers && wml_nn_ok(b); i++) {
        wml_nn_enter(b, "*PositionalConvLayer", "layers.%zu", i);
        x = wml_nn_transpose(b, wml_nn_conv(b, wml_nn_transpose(b, x, "021"), "conv", p->hidden, &w), "021");
        x = wml_nn_act(b, wml_nn_layer_norm_plain(b, x, "layer_norm", 1e-5), p->conv_act, "feat_extract_activation");
        wml_nn_leave(b);
    }
    wml_nn_leave(b);
    return x;
}

static struct wml_value *body(struct wml_family_job *j, struct wml_value **keep)
{
    struct wml_nn *b = j->nn;
    struct wml_speech p = wml_speech_params(j, NULL);
    p.norm_each = true;
    p.stable = false;
    struct wml_value *x = wml_speech_convs(b, &p, wml_speech_input(j));
    x = wml_speech_project(b, &p, x, true);
    wml_nn_enter(b, "*Encoder", "encoder");
    x = wml_nn_layer_norm(b, wml_nn_add(b, x, positions(j, &p, x)), "layer_norm", p.eps);
    x = wml_speech_layers(b, &p, x, keep);
    if (keep) keep[p.layers] = x;
    wml_nn_leave(b);
    return wml_speech_adapt(j, &p, x);
}

static const struct wml_audio_model model = {.body = body, .layers = 12, .projection = 256, .vocab = 32};

static const struct wml_family_type types[] = {{"data2vec-audio", "Data2VecAudio", "data2vec_audio"}, {NULL, NULL, NULL}};
const struct wml_family wml_family_data2vec_audio = {.name = "data2vec_audio", .type = types, .task = wml_audio_tasks, .own = &model};
