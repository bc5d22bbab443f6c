/* task/picture_file.h - what a picture file says of itself, read before anything is decoded. Internal to src/task.
 *
 * stb_image takes missing bytes for zeros and checks no sums, so a damaged file would come out as a picture of grey
 * or noise. Here it is refused: JPEG without its end, PNG with a wrong sum, BMP or GIF that ends early. */
#ifndef WML_TASK_PICTURE_FILE_H
#define WML_TASK_PICTURE_FILE_H

#include "base/rd.h"

struct wml_picture_facts {
    const char *format;   /* "JPEG", ... */
    uint32_t width, height;
    unsigned orientation; /* EXIF's number; 0: none */
};

/* Sizes within the limit of picture.h. */
bool wml_picture_look(struct wml_span file, struct wml_picture_facts *out, struct wml_err *err);

#endif
