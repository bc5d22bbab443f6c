/* task/image_internal.h - what the files behind image.h share. */
#ifndef WML_TASK_IMAGE_INTERNAL_H
#define WML_TASK_IMAGE_INTERNAL_H

#include "task/image.h"

enum { WML_EDGE_MAX = 65535 }; /* pixels of an edge that a file may ask for */

struct wml_image_type { /* one kind of image processor, with the defaults of its members */
    const char *name;   /* "ViT" of ViTImageProcessor, ViTImageProcessorFast, ViTFeatureExtractor */
    enum wml_image_fit fit;
    enum wml_image_round round;
    enum wml_resample resample;
    int64_t edge, longest; /* FIT_EXACT: edge x edge */
    int64_t crop, multiple, pad;
    bool no_crop;          /* there is a crop size, but it is not used unless asked for */
    bool no_rescale, no_normalize, flip_channels;
    enum { WML_COLOUR_HALF, WML_COLOUR_IMAGENET, WML_COLOUR_CLIP } colour;
    enum wml_image_crop {    /* what becomes of the crop share */
        WML_CROP_NONE,
        WML_CROP_SHORTEST,   /* PoolFormer: size / share is the edge to resize to */
        WML_CROP_BELOW_384,  /* ConvNext: as before, then a crop to size; from 384 on, size x size */
        WML_CROP_256_OF_224  /* Levit: a share that no member changes */
    } crop_rule;
    double crop_share;
    const char *multiple_key, *pad_key; /* the members that give them; NULL: none */
};

/* NULL when not known. */
const struct wml_image_type *wml_image_type_find(struct wml_str name);
/* The plan with the type's defaults. NULL: those of a file that names no type. */
void wml_image_type_apply(const struct wml_image_type *t, struct wml_image_plan *p);

/* Size of the picture after resizing, at least 1 x 1. */
void wml_image_resized(const struct wml_image_plan *p, size_t width, size_t height, size_t *to_width, size_t *to_height);
/* Size after all steps where it is the same for every picture. */
bool wml_image_fixed_size(const struct wml_image_plan *p, int64_t *height, int64_t *width);

#endif
