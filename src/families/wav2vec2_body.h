/* families/wav2vec2_body.h - what encoders of sound built as wav2vec 2.0 (Baevski et al. 2020) share: convolutions that make places
 * of samples, positions from a convolution over places, a transformer. */
#ifndef WML_FAMILIES_WAV2VEC2_BODY_H
#define WML_FAMILIES_WAV2VEC2_BODY_H

#include "families/audio_tasks.h"
#include "nn/relative.h"

enum { WML_SPEECH_CONVS = 64 };

struct wml_speech {
    int64_t hidden, layers, heads, inner;
    double eps;
    struct wml_str act, conv_act;
    int64_t width[WML_SPEECH_CONVS], stride[WML_SPEECH_CONVS], kernel[WML_SPEECH_CONVS]; /* of the convolutions over samples */
    size_t convs;
    bool norm_each; /* LayerNorm after each of them, else a norm of channels after the first */
    bool stable;    /* layers are normalised before their parts, else after */
    int64_t position_groups, position_kernel;
    int64_t position_stride; /* places that become one */
    int64_t adapter;         /* width of the adapters of layers; 0: none */
    /* Biases of scores, in the scope of "attention"; NULL: none. `kept` is the same for all layers, NULL in the first. */
    struct wml_value *(*bias)(struct wml_nn *b, const struct wml_speech *p, struct wml_value *x, struct wml_value **kept);
    const struct wml_nn_buckets *buckets; /* of `bias` */
};

struct wml_speech_lists { /* the convolutions of configs that do not say */
    size_t n;
    int64_t width[16], stride[16], kernel[16];
};
/* lists NULL: those of wav2vec 2.0. */
struct wml_speech wml_speech_params(struct wml_family_job *j, const struct wml_speech_lists *lists);
/* input_values [batch, samples] */
struct wml_value *wml_speech_input(struct wml_family_job *j);
/* "feature_extractor": [batch, places, width of the last convolution]. */
struct wml_value *wml_speech_convs(struct wml_nn *b, const struct wml_speech *p, struct wml_value *samples);
/* "feature_projection": a norm, where there is one, and a linear layer. */
struct wml_value *wml_speech_project(struct wml_nn *b, const struct wml_speech *p, struct wml_value *x, bool norm);
/* "pos_conv_embed": [batch, places, hidden] -> [batch, hidden, places / position_stride]. */
struct wml_value *wml_speech_positions(struct wml_nn *b, const struct wml_speech *p, struct wml_value *x);
/* "layers" on x. keep: see audio_tasks.h; the last one is left to the caller. */
struct wml_value *wml_speech_layers(struct wml_nn *b, const struct wml_speech *p, struct wml_value *x, struct wml_value **keep);
/* "encoder": positions, layers, norms. */
struct wml_value *wml_speech_encoder(struct wml_nn *b, const struct wml_speech *p, struct wml_value *x, struct wml_value **keep);
/* "adapter", where add_adapter is true: convolutions that make fewer places. */
struct wml_value *wml_speech_adapt(struct wml_family_job *j, const struct wml_speech *p, struct wml_value *x);
/* The whole of a model without peculiarities, as wml_audio_model wants it. */
struct wml_value *wml_speech_body(struct wml_family_job *j, struct wml_value **keep);

#endif
