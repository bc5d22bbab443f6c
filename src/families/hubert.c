/* families/hubert.c - HuBERT (Hsu et al. 2021) and UniSpeech (Wang et al. 2021): wav2vec 2.0 without heads for speakers. */
#include "families/wav2vec2_body.h"

static struct wml_value *body(struct wml_family_job *j, struct wml_value **keep)
{
    const struct wml_speech p = wml_speech_params(j, NULL);
    struct wml_value *x = wml_speech_convs(j->nn, &p, wml_speech_input(j));
    x = wml_speech_project(j->nn, &p, x, wml_json_get_bool(j->cfg, "feat_proj_layer_norm", true));
    return wml_speech_encoder(j->nn, &p, x, keep);
}

static const struct wml_audio_model model = {.body = body, .layers = 12, .projection = 256, .vocab = 32};

static const struct wml_family_type types[] = {
    {"hubert", "Hubert", "hubert"},
    {"unispeech", "UniSpeech", "unispeech"},
    {NULL, NULL, NULL},
};
const struct wml_family wml_family_hubert = {.name = "hubert", .type = types, .task = wml_audio_basic_tasks, .own = &model};
