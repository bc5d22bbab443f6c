/* families/swin_body.h - what Swin and Swin V2 share: patches, windows that shift in every second block, merging. */
#ifndef WML_FAMILIES_SWIN_BODY_H
#define WML_FAMILIES_SWIN_BODY_H

#include "families/family.h"

enum { WML_SWIN_STAGES = 8 };

struct wml_swin {
    size_t stages;
    int64_t width, depth[WML_SWIN_STAGES], heads[WML_SWIN_STAGES], patch[2], image[2], window, pretrained[WML_SWIN_STAGES];
    double ratio, eps;
    struct wml_str act;
    bool v2;        /* see swinv2.c */
    bool bare;      /* no normalisation behind the last stage: Donut's encoder */
};

struct wml_swin_kind;
struct wml_swin_block { /* one block of a stage */
    const struct wml_swin *p;
    const struct wml_swin_kind *kind;
    size_t stage;
    int64_t width, heads, rows, columns; /* of the picture in this stage */
    int64_t side, shift;                 /* of its windows; shift 0: none */
};
/* x and result: rows, [batch * rows * columns, width]. In the scope of the block. */
struct wml_swin_kind {
    struct wml_value *(*block)(struct wml_nn *b, const struct wml_swin_block *k, struct wml_value *x);
    /* Attention within windows: takes and gives rows, [batch * windows * side * side, width]; mask is added to the scores of every
     * window, or NULL. */
    struct wml_value *(*attend)(struct wml_nn *b, const struct wml_swin_block *k, struct wml_value *x, struct wml_value *mask);
};

struct wml_swin wml_swin_params(struct wml_family_job *j);
/* The bare model up to its last normalisation: [batch, places, width of the last stage]. */
struct wml_value *wml_swin_body(struct wml_nn *b, const struct wml_swin *p, struct wml_value *pixels, const struct wml_swin_kind *kind);
/* Pads, shifts, cuts into windows, attends, and undoes that. */
struct wml_value *wml_swin_in_windows(struct wml_nn *b, const struct wml_swin_block *k, struct wml_value *x);
/* scores [batch * windows, heads, places, places] + mask [windows, 1, places, places] */
struct wml_value *wml_swin_add_mask(struct wml_nn *b, struct wml_value *scores, struct wml_value *mask);
/* intermediate and output of a block. */
struct wml_value *wml_swin_feed_forward(struct wml_nn *b, const struct wml_swin_block *k, struct wml_value *x);
/* Table [(2 window - 1)^2, heads] to [1, heads, side^2, side^2]. */
struct wml_value *wml_swin_bias(struct wml_nn *b, const struct wml_swin_block *k, const float *table, int64_t window);
int64_t wml_swin_last_width(const struct wml_swin *p);
/* What both types can do. */
void wml_swin_classification(struct wml_family_job *j);
void wml_swin_features(struct wml_family_job *j);
void wml_swin_masked_image(struct wml_family_job *j);

#endif
