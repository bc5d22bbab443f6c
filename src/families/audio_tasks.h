/* families/audio_tasks.h - the tasks of encoders of sound. Families differ in their body, which each names in a struct
 * wml_audio_model, which its descriptor has as `own`:
 *
 *     static const struct wml_audio_model model = {.body = body, .layers = 12, .projection = 256, .vocab = 32};
 *     const struct wml_family wml_family_hubert = {.name = "hubert", .type = types, .task = wml_audio_basic_tasks, .own = &model};
 */
#ifndef WML_FAMILIES_AUDIO_TASKS_H
#define WML_FAMILIES_AUDIO_TASKS_H

#include "families/family.h"

struct wml_audio_model {
    /* Declares the input and gives [batch, places, width], in the scope of the bare model. keep: NULL, or room for what every
     * layer gets and the last one gives. */
    struct wml_value *(*body)(struct wml_family_job *j, struct wml_value **keep);
    int64_t layers, projection, vocab; /* of configs that do not say; vocab 0: they must */
};

/* automatic-speech-recognition, audio-classification, feature-extraction */
extern const struct wml_family_task wml_audio_basic_tasks[];
/* The same and those of single places and of speakers: audio-frame-classification, audio-xvector */
extern const struct wml_family_task wml_audio_tasks[];

/* The sum of n values by shares that are the softmax of "layer_weights" [n]. */
struct wml_value *wml_audio_weighted(struct wml_nn *b, struct wml_value *const *kept, size_t n);

#endif
