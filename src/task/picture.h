/* task/picture.h - pictures in memory: 8-bit RGB, decoded from files, resized and cropped as Pillow does it.
 *
 * Files: JPEG (8 bits, not arithmetic), PNG, BMP, the first frame of a GIF; what it is, is told by content. As in
 * Pillow's convert("RGB"), transparency is dropped, grey becomes RGB; of 16 bits the upper 8 are kept. A picture is turned
 * as its EXIF data says (JPEG, PNG). Files up to 512 MiB and WML_PICTURE_MAX pixels; sizes are checked before
 * anything is decoded. A struct belongs to one thread, the functions may run in many. */
#ifndef WML_TASK_PICTURE_H
#define WML_TASK_PICTURE_H

#include "base/rd.h"

enum { WML_PICTURE_MAX = 100000000 }; /* pixels */

struct wml_picture { /* zero: none */
    size_t width, height;
    unsigned char *rgb; /* rows from the top, 3 bytes a pixel, no gaps; owned */
};

/* The numbers are Pillow's, which preprocessor_config.json uses. */
enum wml_resample { WML_NEAREST = 0, WML_LANCZOS = 1, WML_BILINEAR = 2, WML_BICUBIC = 3, WML_BOX = 4, WML_HAMMING = 5 };

void wml_picture_release(struct wml_picture *p);
/* Not cleared. WML_E_UNSUPPORTED: no pixel, or too many. */
bool wml_picture_new(size_t width, size_t height, struct wml_picture *out, struct wml_err *err);
/* WML_E_FORMAT: damaged. WML_E_UNSUPPORTED: another format (named where it is known), or too large. */
bool wml_picture_decode(struct wml_span file, struct wml_picture *out, struct wml_err *err);
bool wml_picture_load(const char *path, struct wml_picture *out, struct wml_err *err);
/* Pixel for pixel what Image.resize of Pillow 13 gives: filters widen when shrinking (antialias), weights of 22 bits, 8 bits
 * between the passes; nearest takes the pixel under each centre. Pillow up to 12.2 always began with the horizontal pass:
 * where the height loses over twice as much as the width, it differs in the last bit of some pixels. */
bool wml_picture_resize(const struct wml_picture *in, size_t width, size_t height, enum wml_resample how,
                        struct wml_picture *out, struct wml_err *err);
/* The middle; what lies outside of the picture is black. An odd remainder: one pixel more is cut at the right and
 * bottom, one more is added at the left and top. */
bool wml_picture_crop(const struct wml_picture *in, size_t width, size_t height, struct wml_picture *out,
                      struct wml_err *err);
/* The angle and mirror of EXIF's orientation, 1 to 8; other numbers: as it is. */
bool wml_picture_turn(struct wml_picture *p, unsigned orientation, struct wml_err *err);

#endif
