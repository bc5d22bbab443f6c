/* families/audio_spectrogram_transformer.c - AST (Gong et al. 2021): ViT's layers over a spectrum of sound, cut into patches that
 * overlap. Frequencies are rows, times are columns. */
#include "families/vit_body.h"

struct params {
    struct wml_vit vit;
    int64_t stride[2], bins, frames;
};

static struct params params_of(struct wml_family_job *j)
{
    struct params p = {.vit = wml_vit_params(j)};
    p.stride[0] = wml_cfg_size(j, j->cfg, "frequency_stride", 10);
    p.stride[1] = wml_cfg_size(j, j->cfg, "time_stride", 10);
    p.bins = wml_cfg_size(j, j->cfg, "num_mel_bins", 128);
    p.frames = wml_cfg_size(j, j->cfg, "max_length", 1024);
    return p;
}

static struct wml_value *spectrum(struct wml_family_job *j, const struct params *p)
{
    const int64_t frames = j->size[WML_SIZE_FRAMES] ? j->size[WML_SIZE_FRAMES] : p->frames;
    const int64_t bins = j->size[WML_SIZE_FEATURES] ? j->size[WML_SIZE_FEATURES] : p->bins;
    return wml_family_input(j, "input_values", WML_F32, WML_DIMS(j->batch, frames, bins), -1, 1);
}

static const char *const tokens[] = {"cls_token", "distillation_token"};

static struct wml_value *embed(struct wml_nn *b, const struct params *p, struct wml_value *x)
{
    const int64_t frames = wml_nn_size(b, x, 1, "the number of frames of input_values");
    const int64_t bins = wml_nn_size(b, x, 2, "the number of frequencies of input_values");
    const int64_t patch = p->vit.patch[0];
    if (frames != p->frames || bins != p->bins)
        return wml_nn_fail(b, WML_E_UNSUPPORTED, "input_values of %lld frames of %lld frequencies: the model has places for %lld of %lld",
                           (long long)frames, (long long)bins, (long long)p->frames, (long long)p->bins);
    wml_nn_enter(b, "*Embeddings", "embeddings");
    wml_nn_enter(b, "*PatchEmbeddings", "patch_embeddings");
    x = wml_nn_unsqueeze(b, wml_nn_transpose(b, x, "021"), WML_DIMS(1));
    x = wml_nn_conv(b, x, "projection", p->vit.hidden, &(struct wml_nn_window){.kernel = patch, .stride = p->stride[0], .last_stride = p->stride[1]});
    x = wml_nn_transpose(b, wml_nn_reshape(b, x, WML_DIMS(0, p->vit.hidden, -1)), "021");
    wml_nn_leave(b);
    x = wml_vit_prepend(b, tokens, 2, x);
    const int64_t places = bins < patch || frames < patch ? 2 : ((bins - patch) / p->stride[0] + 1) * ((frames - patch) / p->stride[1] + 1) + 2;
    x = wml_nn_add(b, x, wml_nn_param(b, "position_embeddings", WML_DIMS(1, places, p->vit.hidden)));
    wml_nn_leave(b);
    return x;
}

static struct wml_value *body(struct wml_nn *b, const struct params *p, struct wml_value *x)
{
    return wml_nn_layer_norm(b, wml_vit_encoder(b, &p->vit, embed(b, p, x)), "layernorm", p->vit.eps);
}

static void features(struct wml_family_job *j)
{
    const struct params p = params_of(j);
    wml_nn_output(j->nn, "last_hidden_state", body(j->nn, &p, spectrum(j, &p)));
}

/* The mean of the two tokens. */
static void classes(struct wml_family_job *j)
{
    struct wml_nn *b = j->nn;
    const struct params p = params_of(j);
    struct wml_value *x = spectrum(j, &p);
    wml_nn_enter(b, "*Model", "%s", j->type->base);
    x = body(b, &p, x);
    wml_nn_leave(b);
    x = wml_nn_reduce(b, "ReduceMean", wml_nn_slice(b, x, 1, 0, 2), WML_DIMS(1), false);
    wml_nn_enter(b, "*MLPHead", "classifier");
    x = wml_nn_linear(b, wml_nn_layer_norm(b, x, "layernorm", p.vit.eps), "dense", wml_cfg_labels(j, j->cfg));
    wml_nn_leave(b);
    wml_nn_output(b, "logits", x);
}

static const struct wml_family_type types[] = {
    {"audio-spectrogram-transformer", "AST", "audio_spectrogram_transformer"}, {NULL, NULL, NULL}};
static const struct wml_family_task tasks[] = {
    {"audio-classification", "ForAudioClassification", classes},
    {"feature-extraction", "Model", features},
    {NULL, NULL, NULL},
};
const struct wml_family wml_family_audio_spectrogram_transformer = {
    .name = "audio_spectrogram_transformer", .type = types, .task = tasks};
