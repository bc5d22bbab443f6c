/* families/sam_body.h - the parts of SAM (Kirillov et al. 2023): what sees the picture, and what reads prompts and draws masks. */
#ifndef WML_FAMILIES_SAM_BODY_H
#define WML_FAMILIES_SAM_BODY_H

#include "families/family.h"

struct wml_sam_vision {
    int64_t hidden, layers, heads, inner, channels, out, patch, image, window;
    double eps;
    bool relative; /* scores get terms of distances */
    struct wml_str act;
};

struct wml_sam_prompt {
    int64_t hidden, image, side, mask_channels; /* side: rows and columns of the picture's embedding */
    int64_t layers, heads, inner, rate, masks, iou_depth, iou_hidden;
    double eps, mask_eps;
    struct wml_str act, mask_act;
};

struct wml_sam_vision wml_sam_vision_params(struct wml_family_job *j);
struct wml_sam_prompt wml_sam_prompt_params(struct wml_family_job *j);
/* "vision_encoder": pixels [batch, channels, image, image] -> [batch, out, side, side] */
struct wml_value *wml_sam_see(struct wml_family_job *j, const struct wml_sam_vision *p, struct wml_value *pixels);

struct wml_sam_asked { /* what is asked of a picture */
    struct wml_value *points, *labels; /* [batch, groups, points, 2] in pixels (x, y), [batch, groups, points] */
    struct wml_value *image;           /* [batch, hidden, side, side] */
    struct wml_value *mask, *use_mask; /* [batch, 1, 4 side, 4 side] and [batch], 1: it counts; NULL: there is none */
};
struct wml_sam_answer {
    struct wml_value *masks, *scores; /* [batch * groups, masks, 4 side, 4 side], [batch * groups, masks] */
};
/* "prompt_encoder" and "mask_decoder". */
struct wml_sam_answer wml_sam_answer(struct wml_family_job *j, const struct wml_sam_prompt *p, const struct wml_sam_asked *a);

#endif
