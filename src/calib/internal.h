/* calib/internal.h - what is gathered of one tensor, and how. Internal to src/calib.
 *
 * A thread fills a state of its own (a part); at the end of a pass the parts are merged, in the order of the threads,
 * into the tensor's. Merging adds counts and takes extremes, or keeps samples apart, so the order does not show. */
#ifndef WML_CALIB_INTERNAL_H
#define WML_CALIB_INTERNAL_H

#include "calib/calib.h"

struct wml_range_state {
    enum wml_dtype dtype;
    struct wml_extent extent; /* low > high while nothing finite was seen */
    void *own;                /* the collector's: heap, NULL while it has nothing */
};

struct wml_range_collect { /* every hook may be NULL */
    /* First pass: what the extent does not say. piece is the extent of these n elements. */
    void (*first)(struct wml_range_state *part, size_t sample, const struct wml_extent *piece, const void *data, size_t n);
    /* After it, with finite values seen: gets the tensor's state ready for the second pass. false: it needs none. */
    bool (*plan)(struct wml_range_state *s, const struct wml_range_opts *o);
    /* Second pass; whole is the planned state, shared by the threads. */
    void (*second)(struct wml_range_state *part, const struct wml_range_state *whole, const void *data, size_t n);
    void (*merge)(struct wml_range_state *into, const struct wml_range_state *part);
    void (*release)(struct wml_range_state *s); /* of `own` */
};

extern const struct wml_range_collect wml_collect_extent; /* nothing but the extent */

/* Nothing seen yet. */
struct wml_extent wml_extent_none(void);
void wml_extent_add(struct wml_extent *into, const struct wml_extent *more);
/* The extent of n elements (scan.c). */
struct wml_extent wml_extent_of(enum wml_dtype dtype, const void *data, size_t n);

/* x as the nearest number of the dtype, -0 as 0. */
double wml_range_round(enum wml_dtype dtype, double x);
/* The range, with both ends rounded; symmetric when asked. Ends that crossed (ORT lets them, for a value that is always
 * the same) are exchanged. */
struct wml_range wml_range_make(enum wml_dtype dtype, double low, double high, bool symmetric);

#endif
