/* flow/samples.h - inputs to calibrate with, sample after sample: generated, or read from files.
 *
 * Arrays of .npz and .npy files carry a leading axis of samples: [n, ...shape of the input]. Where an array has just
 * the input's rank, its first axis is that of samples, cut into pieces of the model's batch. A folder of .npz files
 * is taken file by file, sorted by name. Texts: flow/samples_text.h, pictures: flow/samples/images.h. */
#ifndef WML_FLOW_SAMPLES_H
#define WML_FLOW_SAMPLES_H

#include "base/ctx.h"
#include "ort/session.h"
#include "worker/feed.h"

struct wml_samples;

struct wml_samples_spec {
    const char *data;   /* file or folder; NULL: generate */
    const char *tokenizer; /* of texts: a folder or a file */
    const char *preprocessor; /* of pictures: as well; NULL: that in the folder `beside`, where there is one */
    const char *beside;
    struct wml_ctx *cx; /* for what is told of pictures; NULL: nothing */
    size_t count;       /* at most that many */
    struct wml_feed_spec feed; /* of generated ones: seed (that of the first), shapes, ranges */
    /* What was read is held here for whoever opens the same data for the same inputs next; wml_samples_drop. NULL: it is not. */
    struct wml_samples **kept;
};

/* Bytes that are held in memory of many files; what is above is read again when it is needed. */
#define WML_SAMPLES_KEEP (UINT64_C(128) << 20)

/* input: of a session; copied. WML_E_USAGE: names or shapes do not fit. */
bool wml_samples_open(const struct wml_samples_spec *spec, const struct wml_io *input, size_t n, struct wml_samples **out,
                      struct wml_err *err);
void wml_samples_close(struct wml_samples *s);
void wml_samples_drop(struct wml_samples **kept);
size_t wml_samples_count(const struct wml_samples *s); /* 1 or more */
/* "random data", "arrays of x.npz"; lives as long as s. */
const char *wml_samples_text(const struct wml_samples *s);
bool wml_samples_are_random(const struct wml_samples *s);
/* Sample i into out (wml_feed_release). May be called from several threads. */
bool wml_samples_make(struct wml_samples *s, size_t i, struct wml_feed *out, struct wml_err *err);

#endif
