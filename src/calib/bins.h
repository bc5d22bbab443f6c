/* calib/bins.h - histograms of one tensor. Internal to src/calib.
 *
 * wml_tally counts values by their leading bits: every half float by itself, floats by sign, exponent and 8 bits of the
 * mantissa. It needs no range beforehand, so one pass is enough, and a value of 1e38 costs nothing.
 * wml_bins has equal bins over a known range, with the edges and the counts of np.histogram bit for bit. */
#ifndef WML_CALIB_BINS_H
#define WML_CALIB_BINS_H

#include "calib/internal.h"

enum { WML_TALLY_PAGES = 512 };

struct wml_tally { /* zero is empty */
    uint64_t *page[WML_TALLY_PAGES]; /* by sign and exponent, NULL until seen */
};

void wml_tally_add(struct wml_tally *t, enum wml_dtype dtype, const void *data, size_t n);
void wml_tally_merge(struct wml_tally *into, const struct wml_tally *from, enum wml_dtype dtype);
void wml_tally_release(struct wml_tally *t);
/* Walks what was seen and is finite, upwards: count values x with from <= |x| <= to of sign `negative`; one value when
 * from == to. `*at` starts as 0. false at the end. */
struct wml_tally_item { double from, to; bool negative; uint64_t count; };
bool wml_tally_next(const struct wml_tally *t, enum wml_dtype dtype, size_t *at, struct wml_tally_item *out);

/* The state of methods with equal bins. Half floats are tallied in the first pass and need no second one. */
struct wml_bins {
    struct wml_tally tally; /* WML_F16 */
    size_t n;               /* 0: no bins; the values lie too close together, or too far apart, for so many */
    enum wml_dtype arithmetic; /* WML_F16 as numpy; WML_F32 for halves where n edges would coincide */
    bool magnitudes;        /* of |x| */
    float *edge;            /* n + 1, rising */
    uint64_t *count;        /* n */
    float first, last, scale; /* (x - first) * scale is the bin, give or take one; scale 0: it must be searched */
    float *cut;             /* n + 3: edges for the counting loop */
};

void wml_bins_first(struct wml_range_state *part, size_t sample, const struct wml_extent *piece, const void *data, size_t n);
/* n bins over [first, last], as np.histogram(bins=n, range=(first, last)) makes them. For a plan hook. */
bool wml_bins_plan(struct wml_range_state *s, size_t n, double first, double last, bool magnitudes);
void wml_bins_second(struct wml_range_state *part, const struct wml_range_state *whole, const void *data, size_t n);
void wml_bins_merge(struct wml_range_state *into, const struct wml_range_state *part);
void wml_bins_release(struct wml_range_state *s);

#endif
