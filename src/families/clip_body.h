/* families/clip_body.h - the towers of CLIP and of its kin (SigLIP): transformers whose layers are normalised before their
 * parts, over texts and over pictures. */
#ifndef WML_FAMILIES_CLIP_BODY_H
#define WML_FAMILIES_CLIP_BODY_H

#include "families/family.h"

struct wml_clip { /* one tower */
    int64_t hidden, layers, heads, inner, vocab, positions, patch, image[2], channels, projection;
    double eps;
    struct wml_str act;
    bool pooled; /* SigLIP's pictures: the config speaks of a head that pools */
};

/* The config of a tower: text_config or vision_config of the whole model's, or the tower's own. */
const struct wml_json_val *wml_clip_config(const struct wml_family_job *j, bool text);
struct wml_clip wml_clip_params(struct wml_family_job *j, const struct wml_json_val *cfg, const char *act, double eps);
/* The user is asked for pictures: the type is a tower of pictures, or the task says so. */
bool wml_clip_is_vision(const struct wml_family_job *j);
/* "encoder"; mask may be NULL. */
struct wml_value *wml_clip_encoder(struct wml_nn *b, const struct wml_clip *p, struct wml_value *x, struct wml_value *mask);
/* "mlp": fc1, the activation, fc2. */
struct wml_value *wml_clip_mlp(struct wml_nn *b, struct wml_value *x, int64_t inner, int64_t out, struct wml_str act);
/* "embeddings" of ids [batch, length]: words and positions. */
struct wml_value *wml_clip_words(struct wml_nn *b, const struct wml_clip *p, struct wml_value *ids);
/* "embeddings" of pictures: patches, behind "class_embedding" where `token`, and positions, resized to the picture. */
struct wml_value *wml_clip_patches(struct wml_nn *b, const struct wml_clip *p, struct wml_value *pixels, bool token);
/* pixel_values of the size that the tower's config names. */
struct wml_value *wml_clip_pixels(struct wml_family_job *j, const struct wml_clip *p);
/* x / |x| over the last axis. */
struct wml_value *wml_clip_unit(struct wml_nn *b, struct wml_value *x);

#endif
