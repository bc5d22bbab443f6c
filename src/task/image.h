/* task/image.h - pictures as inputs of a model, prepared as preprocessor_config.json says.
 *
 *     struct wml_image_plan plan;
 *     wml_image_plan_load(path, &plan, cx, &err)            or wml_image_plan_init(&plan) without a file
 *     wml_image_plan_aim(&plan, inputs, n, cx, &err)        at the model: type, layout, size
 *     while (wml_images_next(&images, &plan, cx, &picture, &path, &err))
 *         wml_image_make(&plan, &picture, 1, &sample, &err)
 *
 * Steps, in this order, each only if asked for: RGB or grey, resize, centre crop, rescale, normalise, swap of red and
 * blue, pad, layout. They are those of the image processors of transformers 4.57 that work with Pillow, to the bit; the
 * "Fast" ones round a little differently and are read as their namesakes. */
#ifndef WML_TASK_IMAGE_H
#define WML_TASK_IMAGE_H

#include "base/ctx.h"
#include "task/picture.h"
#include "task/sample.h"

enum wml_image_fit { /* what the size after resizing follows from; proportions are kept by all but the first */
    WML_FIT_EXACT,    /* height x width; one of them 0: in proportion */
    WML_FIT_SHORTEST, /* the shorter edge becomes `shortest`, while the longer one stays within `longest` (0: any) */
    WML_FIT_LONGEST,  /* the longer edge becomes `longest` */
    WML_FIT_INSIDE,   /* the largest inside of height x width */
    WML_FIT_COVER,    /* the smallest that covers height x width */
    WML_FIT_NEARER,   /* height or width is met, whichever changes the picture less */
    WML_FIT_MULTIPLE  /* as it is, cut down to multiples */
};
/* Who makes whole numbers of it: cuts and takes multiples from above; cuts, multiples from below; rounds, multiples
 * from below; multiples next to it. */
enum wml_image_round { WML_ROUND_COMMON, WML_ROUND_DETECTION, WML_ROUND_HALF_UP, WML_ROUND_DEPTH };

struct wml_image_plan {
    const char *type; /* of the file, "ViT"; NULL: none or not known */
    bool from_file;
    bool resize, crop, rescale, normalize, flip_channels, pad;
    enum wml_image_fit fit;
    enum wml_image_round round;
    enum wml_resample resample;
    int64_t height, width, shortest, longest, multiple; /* multiple of the edges; 0, 1: any */
    int64_t crop_height, crop_width;
    int64_t pad_height, pad_width; /* with 0 at the right and bottom; 0: not */
    int64_t pad_multiple;          /* with 0 on all sides; 0: not */
    double rescale_factor, mean[3], std[3];
    bool offset; /* after rescaling 1 is subtracted */
    bool twice;  /* divided by std at the end (EfficientNet with its top) */
    /* Set by wml_image_plan_aim. */
    struct wml_str input, mask; /* names; mask: of 1 where the picture is, 0 where it is padded; absent: not wanted */
    enum wml_dtype dtype, mask_dtype;
    bool channels_last;
    int64_t batch, channels; /* batch -1: open. 1 channel: grey, as Pillow's convert("L") */
};

/* No file: resized to the model's size (bilinear), 0..255 to 0..1. A caller that knows mean and std sets them. */
void wml_image_plan_init(struct wml_image_plan *p);
/* WML_E_FORMAT: no JSON object, or members of a wrong type or size (named). A processor type that is not known is logged
 * as a warning and its members are used. Also takes the image_processor of a processor_config.json. */
bool wml_image_plan_parse(struct wml_str json, struct wml_image_plan *p, struct wml_ctx *cx, struct wml_err *err);
bool wml_image_plan_load(const char *path, struct wml_image_plan *p, struct wml_ctx *cx, struct wml_err *err);
/* Finds the input for pictures, "pixel_values" or the only one of rank 4 with 3 or 1 channels, and "pixel_mask". Type
 * (float32, float16, bfloat16, float64, uint8, int8), layout and size are taken over: a size that the model fixes wins over
 * the file's, where crop and resize keep their proportion; uint8 and int8 get pixels, 0..255 and minus 128, not rescaled.
 * Every such change is logged. Names alias `in`. WML_E_UNSUPPORTED: no such input, or several. */
bool wml_image_plan_aim(struct wml_image_plan *p, const struct wml_task_input *in, size_t n, struct wml_ctx *cx,
                        struct wml_err *err);
/* One line for logs and reports: "resize to 256 (shorter edge, bicubic), crop to 224 x 224, 0..1, mean and std". */
void wml_image_plan_text(const struct wml_image_plan *p, struct wml_buf *out);

/* A picture up to its crop, still of 8 bits: a fourth of the array that it becomes, so it can be kept. */
bool wml_image_prepare(const struct wml_image_plan *p, const struct wml_picture *in, struct wml_picture *out, struct wml_err *err);
/* A batch of n prepared pictures into `sample`: [n, channels, height, width], or channels last. WML_E_UNSUPPORTED: the model
 * fixes another batch, or the pictures of the batch come out in different sizes. */
bool wml_image_make(const struct wml_image_plan *p, const struct wml_picture *const *prepared, size_t n,
                    struct wml_npys *sample, struct wml_err *err);

struct wml_images { /* picture files; zero: none */
    struct wml_arena arena;
    WML_VEC(const char *) path; /* sorted by name, folder by folder */
    size_t next, bad;           /* bad: could not be read so far */
    struct wml_err why;         /* of the last of them */
};
/* By the extension, case ignored: known formats, read or not. */
bool wml_image_is_picture(struct wml_str path);
/* A file: itself. A folder: the files in it and in its folders (classes) whose extension is that of a picture, case
 * ignored; names that begin with a dot are left out. WML_E_NOT_FOUND: none. At most 16 folders deep. */
bool wml_images_list(const char *path, struct wml_images *out, struct wml_err *err);
/* Keeps n of them, evenly spaced, so that a few come from many classes. */
void wml_images_thin(struct wml_images *l, size_t n);
/* The next picture that can be read, prepared, and its path. The others are logged and left out. false: the end
 * (err->code WML_OK), or a failure; that no file at all can be read is one. */
bool wml_images_next(struct wml_images *l, const struct wml_image_plan *p, struct wml_ctx *cx, struct wml_picture *out,
                     const char **path, struct wml_err *err);
void wml_images_release(struct wml_images *l);

#endif
