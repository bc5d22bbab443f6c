/* task/image.h - pictures as inputs of a model, prepared as preprocessor_config.json says.
 *
 *     struct wml_image_plan plan;
 *     wml_image_plan_load(path, &plan, cx, err)          or wml_image_plan_init(&plan) without a file
 *     wml_image_plan_aim(&plan, inputs, n, cx, err)      to the model: type, layout, size
 *     while (wml_images_next(&files, &plan, cx, &sample, err)) use(&sample)
 *
 * Steps, in this order, each only if asked for: RGB, resize, centre crop, rescale, normalise, swap of red and blue,
 * pad, layout. They are those of the image processors of transformers 4.57 that work on Pillow pictures ("slow"), to
 * the bit; the "Fast" ones differ from those by their own rounding, and are read as their namesakes. Processor types and
 * their defaults: processors.def. */
#ifndef WML_TASK_IMAGE_H
#define WML_TASK_IMAGE_H

#include "base/ctx.h"
#include "task/picture.h"
#include "task/sample.h"

enum wml_image_fit { /* what the size after resizing follows from */
    WML_FIT_EXACT,    /* height x width */
    WML_FIT_SHORTEST, /* the shorter edge becomes `shortest`, but the longer one at most `longest` (0: any) */
    WML_FIT_LONGEST,  /* the longer edge becomes `longest` */
    WML_FIT_INSIDE,   /* the largest that fits into height x width */
    WML_FIT_NEARER,   /* height or width, whichever changes the picture less; proportions kept */
    WML_FIT_DIVIDE    /* edges cut down to multiples of `multiple` */
};
enum wml_image_round { WML_ROUND_TOOLKIT, WML_ROUND_DETECTION, WML_ROUND_UP_HALF }; /* how edges become whole numbers */

struct wml_image_plan {
    const char *type;  /* of processors.def, "ViT"; NULL: not known, or no file */
    bool from_file;
    bool resize, crop, rescale, normalize, flip_channels, pad;
    enum wml_image_fit fit;
    enum wml_image_round round;
    enum wml_resample resample;
    int64_t height, width, shortest, longest, multiple; /* multiple: of edges, 0 and 1: any */
    int64_t crop_height, crop_width, pad_height, pad_width; /* pad 0: none; at the right and bottom, with 0 */
    double rescale_factor, mean[3], std[3];
    bool offset;      /* after rescaling 1 is subtracted */
    bool twice;       /* divided by std once more (EfficientNet with its top) */
    /* Set by wml_image_plan_aim. */
    struct wml_str input, mask; /* names; mask absent: the model has no pixel_mask */
    enum wml_dtype dtype, mask_dtype;
    bool channels_last;
    int64_t batch, channels; /* 1 channel: grey, as Pillow's convert("L") */
};

/* No file: resized to the model's size (bilinear), 0..255 to 0..1, no mean and std. */
void wml_image_plan_init(struct wml_image_plan *p);
/* WML_E_FORMAT: no JSON, or members of a wrong type or size (named). A processor type that is not known, or that does more
 * than the steps above, is logged as a warning, and its members are used. Also takes a processor_config.json. */
bool wml_image_plan_parse(struct wml_str json, struct wml_image_plan *p, struct wml_ctx *cx, struct wml_err *err);
bool wml_image_plan_load(const char *path, struct wml_image_plan *p, struct wml_ctx *cx, struct wml_err *err);
/* Finds the model's input for pictures: "pixel_values", else the only input of rank 4 with 3 or 1 channels. Its type
 * (float32, float16, bfloat16, float64, uint8, int8), layout and size are taken over: a fixed size wins over the file's,
 * where crop and resize keep their proportion. uint8 and int8 get the pixels themselves (int8: minus 128), not rescaled.
 * Every change is logged. Names alias `in`. WML_E_UNSUPPORTED: no input, or several, or other inputs that nothing feeds. */
bool wml_image_plan_aim(struct wml_image_plan *p, const struct wml_task_input *in, size_t n, struct wml_ctx *cx,
                        struct wml_err *err);
/* One line of the steps, for logs and reports: "resize 256 (shorter edge, bicubic), crop 224x224, /255, mean, std". */
void wml_image_plan_text(const struct wml_image_plan *p, struct wml_buf *out);

/* One picture into `sample`: [batch, channels, height, width] or channels last; a batch of more repeats it. */
bool wml_image_make(const struct wml_image_plan *p, const struct wml_picture *picture, struct wml_npys *sample,
                    struct wml_err *err);

struct wml_images { /* the picture files of a folder, or one file */
    struct wml_arena arena;
    WML_VEC(const char *) path; /* sorted: files of a folder first, then its folders, each by name */
    size_t next, bad;           /* bad: files that could not be read so far */
    char why[512];              /* of the last of them */
};
/* A file: itself. A folder: files in it and its folders (classes) that end in .jpg .jpeg .png .bmp .gif, case ignored;
 * names that begin with a dot are left out. WML_E_NOT_FOUND: none. At most 64 folders deep, 10,000,000 files. */
bool wml_images_list(const char *path, struct wml_images *out, struct wml_err *err);
/* The next sample; a batch of the model takes that many files. Files that cannot be read are logged by name and left
 * out. false at the end with err->code WML_OK, or when no file at all could be read. */
bool wml_images_next(struct wml_images *l, const struct wml_image_plan *p, struct wml_ctx *cx, struct wml_npys *sample,
                     struct wml_err *err);
void wml_images_release(struct wml_images *l);

#endif
