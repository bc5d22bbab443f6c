/* calib/spread.h - how values lie, from a tally, and the search for a range by a cost. Internal to src/calib. */
#ifndef WML_CALIB_SPREAD_H
#define WML_CALIB_SPREAD_H

#include "calib/bins.h"

/* Collects tallies; one pass. */
extern const struct wml_range_collect wml_collect_tally;

struct wml_spread { /* pieces upwards: count values lie evenly between from and to, or at one place; none straddles 0 */
    double *from, *to, *count;
    size_t n;
    double total;
};
void wml_spread_make(struct wml_spread *s, const struct wml_range_state *state);
void wml_spread_release(struct wml_spread *s);

/* The numbers that a quantised tensor can hold: k * step, first <= k <= last. 0 is one of them. step 0: only 0. */
struct wml_grid { double step, first, last; };
/* As the quantizer makes it of low <= 0 <= high. */
struct wml_grid wml_grid_make(const struct wml_range_opts *o, double low, double high);
unsigned wml_grid_bits(const struct wml_range_opts *o);

typedef double (*wml_range_cost)(const struct wml_spread *s, const struct wml_grid *g);
/* The range of least cost that was found: ends in turn, coarse thresholds first, then finer ones around the best.
 * It never costs more than the whole range. */
struct wml_range wml_range_search(const struct wml_range_state *state, const struct wml_range_opts *o, wml_range_cost cost);
/* Refuses what is no integer type to quantise activations to. */
bool wml_range_check_integer(const struct wml_range_opts *o, struct wml_err *err);

#endif
