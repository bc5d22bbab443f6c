/* families/wav2vec2.c - wav2vec 2.0 (Baevski et al. 2020), with the adapters of models for many languages; UniSpeech-SAT
 * (Chen et al. 2021), which is built as it is. */
#include "families/wav2vec2_body.h"

static const struct wml_audio_model model = {.body = wml_speech_body, .layers = 12, .projection = 256, .vocab = 32};

static const struct wml_family_type types[] = {
    {"wav2vec2", "Wav2Vec2", "wav2vec2"},
    {"wav2vec2-emotion-regression", "Wav2Vec2", "wav2vec2"},
    {"unispeech-sat", "UniSpeechSat", "unispeech_sat"},
    {NULL, NULL, NULL},
};
const struct wml_family wml_family_wav2vec2 = {.name = "wav2vec2", .type = types, .task = wml_audio_tasks, .own = &model};
