/* families/sam_body.h - the parts of SAM (Kirillov et al. 2023) and of SAM 2 (Ravi et al. 2024): what sees the picture, and what
 * reads prompts and draws masks. */
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
    bool v2; /* SAM 2's: masks are drawn over finer pictures of it, too; a token says whether there is an object */
    int64_t labels; /* v2: rows of the table of points */
};

struct wml_sam_vision wml_sam_vision_params(struct wml_family_job *j);
struct wml_sam_prompt wml_sam_prompt_params(struct wml_family_job *j);
struct wml_sam_prompt wml_sam2_prompt_params(struct wml_family_job *j, int64_t image, int64_t patch); /* of the class, where the config has none */
/* "vision_encoder": pixels [batch, channels, image, image] -> [batch, out, side, side] */
struct wml_value *wml_sam_see(struct wml_family_job *j, const struct wml_sam_vision *p, struct wml_value *pixels);

struct wml_sam_asked { /* what is asked of a picture */
    struct wml_value *points, *labels; /* [batch, groups, points, 2] in pixels (x, y), [batch, groups, points] */
    struct wml_value *image;           /* [batch, hidden, side, side] */
    struct wml_value *mask, *use_mask; /* [batch, 1, 4 side, 4 side] and [batch], 1: it counts; NULL: there is none */
    struct wml_value *fine[2];         /* v2: [batch, hidden, 4 side, 4 side], [batch, hidden, 2 side, 2 side] */
};
struct wml_sam_answer {
    struct wml_value *masks, *scores; /* [batch * groups, masks, 4 side, 4 side], [batch * groups, masks] */
    struct wml_value *object;         /* v2: [batch * groups, 1] */
};
/* "prompt_encoder" and "mask_decoder". */
struct wml_sam_answer wml_sam_answer(struct wml_family_job *j, const struct wml_sam_prompt *p, const struct wml_sam_asked *a);
/* The inputs input_points and input_labels; image_embeddings, SAM 2's finer pictures, mask_input and use_mask_input. */
void wml_sam_ask_points(struct wml_family_job *j, const struct wml_sam_prompt *p, struct wml_sam_asked *a);
void wml_sam_ask_embedded(struct wml_family_job *j, const struct wml_sam_prompt *p, struct wml_sam_asked *a);
/* "masks" of `side` x `side` pixels, "iou_scores", "low_res_masks". */
void wml_sam_output(struct wml_nn *b, const struct wml_sam_answer *y, int64_t side);
/* "iou_scores" and "pred_masks" for every group of points. */
void wml_sam_output_groups(struct wml_nn *b, const struct wml_sam_prompt *p, const struct wml_sam_asked *a, const struct wml_sam_answer *y);

struct wml_sam_levels { /* SAM 2's picture: the finest first */
    struct wml_value *level[3]; /* [batch, hidden, ...] */
};
/* "vision_encoder" of SAM 2: Hiera (Ryali et al. 2023), whose stages join from the last to the first. */
struct wml_sam_levels wml_sam2_see(struct wml_family_job *j);

#endif
