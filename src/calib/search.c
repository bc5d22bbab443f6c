/* The search for the cheapest range. The cost of an end depends on the other only by the step, and what clipping costs
 * falls and levels off as the threshold grows, so going from one end to the other settles quickly. Thresholds are taken from
 * the values themselves, four an octave: where there is nothing, none is tried, so that a mask of -3e38 takes one try. */
#include "calib/spread.h"

#include <math.h>

enum { COARSE = 96, FINE = 12, ROUNDS = 4, SHARES = 24 };
static const double QUARTER = 0.8408964152537145; /* of an octave: 2^-1/4 */

unsigned wml_grid_bits(const struct wml_range_opts *o)
{
    return wml_dtype_info((int)(o->integer ? o->integer : WML_U8))->bits;
}

bool wml_range_check_integer(const struct wml_range_opts *o, struct wml_err *err)
{
    unsigned bits = wml_grid_bits(o);
    if (!o->integer || (wml_dtype_is_integer((int)o->integer) && bits >= 2 && bits <= 16)) return true;
    return wml_fail(err, WML_E_USAGE, "%s is no integer type of at most 16 bits", wml_dtype_name((int)o->integer));
}

struct wml_grid wml_grid_make(const struct wml_range_opts *o, double low, double high)
{
    bool sign = wml_dtype_info((int)o->integer)->cls == WML_CLASS_INT, symmetric = o->form == WML_RANGE_SYMMETRIC;
    double levels = (double)(UINT32_C(1) << wml_grid_bits(o));
    if (symmetric) {
        double steps = sign ? levels - 2 : levels - 1, most = WML_MAX(-low, high);
        return (struct wml_grid){2 * most / steps, sign ? 1 - levels / 2 : -levels / 2, levels / 2 - 1};
    }
    double step = (high - low) / (levels - 1), first = step > 0 ? rint(low / step) : 0;
    return (struct wml_grid){step, first, first + levels - 1};
}

struct search {
    struct wml_spread spread;
    const struct wml_range_opts *opts;
    wml_range_cost cost;
    double low, high, best; /* the range so far, low <= 0 <= high, and its cost */
    bool symmetric;
};

/* Takes the range when it costs less. */
static void try_range(struct search *f, double low, double high)
{
    struct wml_grid g = wml_grid_make(f->opts, low, high);
    double cost = f->cost(&f->spread, &g);
    if (!(cost < f->best)) return;
    f->low = low;
    f->high = high;
    f->best = cost;
}

/* The threshold as the end of its side, of both when symmetric. */
static void try_end(struct search *f, bool negative, double threshold)
{
    if (f->symmetric) try_range(f, -threshold, threshold);
    else if (negative) try_range(f, -threshold, f->high);
    else try_range(f, f->low, threshold);
}

/* Magnitudes that occur on this side (on both, when symmetric), downwards, four an octave; the last is 0. */
static size_t thresholds(const struct search *f, bool negative, double *out)
{
    const struct wml_spread *s = &f->spread;
    size_t left = 0, right = s->n, n = 0;
    while (n + 1 < COARSE && left < right) {
        double below = -s->from[left], above = s->to[right - 1], next;
        bool from_left = f->symmetric ? below > above : negative;
        next = from_left ? below : above;
        if (next <= 0) break;
        if (from_left) left++;
        else right--;
        if (!n || next <= out[n - 1] * QUARTER) out[n++] = next;
    }
    if (!f->symmetric) out[n++] = 0;
    return n;
}

/* Between two thresholds; then, closer, around what is best. */
static void refine(struct search *f, bool negative, double below, double above)
{
    for (int level = 0; level < 2; level++) {
        double width = (above - below) / FINE;
        for (int k = 1; k < FINE && width > 0; k++) try_end(f, negative, below + k * width);
        double now = negative ? -f->low : f->high;
        below = WML_MAX(below, now - width);
        above = WML_MIN(above, now + width);
    }
}

static bool improve(struct search *f, bool negative)
{
    double at[COARSE], before = f->best;
    size_t n = thresholds(f, negative, at), i = 0;
    for (size_t k = 0; k < n; k++) try_end(f, negative, at[k]);
    double now = negative ? -f->low : f->high;
    while (i + 1 < n && at[i] > now) i++; /* at[i] <= now */
    if (n) refine(f, negative, i + 1 < n ? at[i + 1] : at[i], i ? at[i - 1] : at[i]);
    return f->best < before;
}

/* Both ends together first: from the whole range, neither may be worth moving alone. */
static void shrink(struct search *f)
{
    double low = f->low, high = f->high, share = 1;
    for (int i = 0; i < SHARES; i++, share *= QUARTER) try_range(f, low * share, high * share);
}

struct wml_range wml_range_search(const struct wml_range_state *state, const struct wml_range_opts *o, wml_range_cost cost)
{
    struct search f = {.opts = o, .cost = cost, .best = INFINITY, .symmetric = o->form == WML_RANGE_SYMMETRIC};
    double low = state->extent.low, high = state->extent.high, most = WML_MAX(-low, high);
    wml_spread_make(&f.spread, state);
    f.low = f.symmetric ? -most : WML_MIN(low, 0);
    f.high = f.symmetric ? most : WML_MAX(high, 0);
    shrink(&f);
    for (int round = 0; round < ROUNDS; round++) {
        bool better = improve(&f, false);
        if (!f.symmetric) better |= improve(&f, true);
        if (!better || f.symmetric) break;
    }
    wml_spread_release(&f.spread);
    return wml_range_make(state->dtype, WML_MAX(low, f.low), WML_MIN(high, f.high), f.symmetric);
}
