/* families/vit_body.h - what vision transformers with ViT's layers share (vit, deit, yolos, ...). */
#ifndef WML_FAMILIES_VIT_BODY_H
#define WML_FAMILIES_VIT_BODY_H

#include "families/family.h"

struct wml_vit {
    int64_t hidden, layers, heads, inner, channels;
    int64_t length; /* of what is attended to as rows, [batch * length, hidden]; 0: it has three axes */
    int64_t patch[2], image[2]; /* height, width; image: what the table of positions was made for */
    double eps;
    struct wml_str act;
};

struct wml_vit wml_vit_params(struct wml_family_job *j);
/* "patch_embeddings" of [batch, channels, height, width]: [batch, places, hidden]; grid: rows and columns. */
struct wml_value *wml_vit_patches(struct wml_nn *b, const struct wml_vit *p, struct wml_value *pixels, int64_t grid[2]);
/* The stored tokens [1, n, hidden] in front of x, for every picture of the batch. */
struct wml_value *wml_vit_prepend(struct wml_nn *b, const char *const *name, size_t n, struct wml_value *x);
/* x with "position_embeddings" [1, front + places + back, hidden], whose places are resized from `stored` to `grid` (bicubic). */
struct wml_value *wml_vit_add_positions(struct wml_nn *b, struct wml_value *x, int64_t front, int64_t back, const int64_t stored[2],
                                        const int64_t grid[2], int64_t hidden);
/* The same where the table has another name. */
struct wml_value *wml_vit_add_positions_named(struct wml_nn *b, struct wml_value *x, const char *name, int64_t front, int64_t back,
                                              const int64_t stored[2], const int64_t grid[2], int64_t hidden);
/* "encoder", every layer normalised before its parts. */
struct wml_value *wml_vit_encoder(struct wml_nn *b, const struct wml_vit *p, struct wml_value *x);
struct wml_value *wml_vit_layer(struct wml_nn *b, const struct wml_vit *p, size_t i, struct wml_value *x);
/* "attention" of a layer: attention over heads and the linear layer behind it. */
struct wml_value *wml_vit_attention(struct wml_nn *b, const struct wml_vit *p, struct wml_value *x);
/* [batch, places, hidden] -> [batch, hidden, rows, columns] */
struct wml_value *wml_vit_to_image(struct wml_nn *b, struct wml_value *x, const int64_t grid[2], int64_t hidden);

#endif
