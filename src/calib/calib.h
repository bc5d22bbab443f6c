/* calib/calib.h - ranges of tensors from what they hold while samples run: methods by name, one file each (methods.def).
 * Plain arrays: who runs the model, and which tensors it shows, is the caller's business.
 *
 *     struct wml_calib *c = wml_calib_new(method, &opts, threads, &err);
 *     size_t x = wml_calib_add(c, name, WML_F32);                  every tensor, before the first pass
 *     while (wml_calib_pass(c))                                    one or two passes over the same samples
 *         ... wml_calib_observe(c, thread, x, sample, data, n);    every tensor of every sample, in any order
 *     wml_calib_finish(c, &ranges);
 *     wml_calib_free(c);
 *
 * Only small states are kept, never the data: extents, and histograms of at most some 100 KB a tensor and thread.
 * The result depends on the data and the numbers of the samples alone, not on threads or order.
 * NaN and infinities are left out and counted (ORT's histograms refuse infinities, its MinMax hands them on, and no
 * scale can be made of them). A tensor without a finite value gets 0, 0, which is ORT's answer to an empty tensor.
 * Threads: observe may run in several at once, for different tensors, or with different `thread` numbers, each of which
 * keeps states of its own: a caller that shares out tensors needs one number, one that shares out samples one each. */
#ifndef WML_CALIB_CALIB_H
#define WML_CALIB_CALIB_H

#include "calib/ranges.h"

enum wml_range_form { WML_RANGE_DEFAULT, WML_RANGE_FREE, WML_RANGE_SYMMETRIC /* low = -high */ };

struct wml_range_opts { /* zero: what the method takes by default */
    enum wml_range_form form; /* percentile: symmetric; others: free. entropy has no choice */
    unsigned bins;            /* entropy, percentile: of the histogram, 2048. entropy with 128, ORT's own default, clips nothing */
    unsigned levels;          /* entropy: ORT's num_quantized_bins, 128 */
    double percentile;        /* percentile: 99.999 */
    enum wml_dtype integer;   /* fits_type: what values will be quantised to, uint8 */
    double averaging;         /* moving-average: how far a sample pulls, 0.01 */
};

struct wml_range_state;   /* what is known of one tensor: calib/internal.h */
struct wml_range_collect; /* how it is gathered: the same */

struct wml_range_method {
    const char *name;     /* "minmax" */
    const char *ort_name; /* in ORT's cache: "MinMax", "Entropy", "Percentile" */
    bool ours;            /* it is not what ORT means by that name: a cache says so beside it */
    bool fits_type;       /* it looks for the best range of a type: opts.integer, and form as the type is used */
    const char *summary;
    unsigned passes;      /* over the samples, at most */
    unsigned bins;        /* opts.bins by default; 0: it has none */
    double percentile;    /* opts.percentile by default; 0: the same */
    bool extremes;        /* of each sample, the smallest and the largest value say all that it asks */
    const struct wml_range_collect *collect;
    /* Refuses options without sense: WML_E_USAGE. NULL: no option matters. */
    bool (*check)(const struct wml_range_opts *o, struct wml_err *err);
    /* The range of a tensor with finite values. */
    struct wml_range (*finish)(const struct wml_range_state *s, const struct wml_range_opts *o);
};

#define RANGE_METHOD(id, name) extern const struct wml_range_method wml_range_##id;
#include "calib/methods.def"
#undef RANGE_METHOD

/* NULL: there is none. */
const struct wml_range_method *wml_range_method_find(const char *name);
const struct wml_range_method *wml_range_method_at(size_t i); /* NULL beyond the last */

struct wml_calib;

/* NULL with *err set: an option makes no sense. opts is copied; NULL is all defaults. */
struct wml_calib *wml_calib_new(const struct wml_range_method *m, const struct wml_range_opts *opts, unsigned threads,
                                struct wml_err *err);
void wml_calib_free(struct wml_calib *c);
/* The number of a new tensor, counted from 0. The name is copied and must be new; dtype is WML_F32 or WML_F16. */
size_t wml_calib_add(struct wml_calib *c, struct wml_str tensor, enum wml_dtype dtype);
/* Ends the pass that runs, if any. true: run the samples, all of them, once (more). */
bool wml_calib_pass(struct wml_calib *c);
/* Whether this pass needs the tensor; observing it all the same does nothing. */
bool wml_calib_wants(const struct wml_calib *c, size_t tensor);
/* n elements of the tensor's type, aligned to it, not kept. A sample may come in pieces. */
void wml_calib_observe(struct wml_calib *c, unsigned thread, size_t tensor, size_t sample, const void *data, size_t n);

struct wml_extent { /* of everything that the first pass saw */
    double low, high;        /* of finite values; 0, 0 when there are none */
    double least;            /* smallest magnitude */
    uint64_t finite, nan, inf; /* elements */
};
/* After the first pass. */
struct wml_extent wml_calib_extent(const struct wml_calib *c, size_t tensor);
/* After the last pass: the range of one tensor; different tensors may be asked for in different threads. */
struct wml_range wml_calib_range(const struct wml_calib *c, size_t tensor);
/* All of them, in the order of wml_calib_add. */
void wml_calib_finish(const struct wml_calib *c, struct wml_ranges *out);

#endif
