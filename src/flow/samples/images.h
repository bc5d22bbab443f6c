/* flow/samples/images.h - pictures as samples: one file, or the files of a folder and its folders, prepared as the model's
 * preprocessor_config.json says (task/image.h). Of many, evenly spaced ones are taken, so that few samples come from many
 * classes. Prepared pictures are kept while they take little memory, else read again. */
#ifndef WML_FLOW_SAMPLES_IMAGES_H
#define WML_FLOW_SAMPLES_IMAGES_H

#include "base/ctx.h"
#include "worker/feed.h"

struct wml_pictures;
/* By the names: a picture file, or a folder without .npz and .npy. */
bool wml_pictures_are(const char *path);
/* preprocessor: the file or its folder; NULL: that in the folder `beside`, or else the model's size and no more. At most max samples. What is
 * left out or decided is logged. Sizes that the model leaves open come from shapes of the feed, else from the file. */
bool wml_pictures_open(const char *path, const char *preprocessor, const char *beside, size_t max, const struct wml_io *input, size_t n,
                       const struct wml_feed_spec *feed, struct wml_ctx *cx, struct wml_pictures **out, struct wml_err *err);
void wml_pictures_close(struct wml_pictures *p);
size_t wml_pictures_count(const struct wml_pictures *p);
/* Sample i: as many pictures as the model's batch; the last one is filled up with the last picture. Many threads may. */
bool wml_pictures_make(const struct wml_pictures *p, size_t i, const struct wml_io *input, size_t n, struct wml_feed *out,
                       struct wml_err *err);

#endif
