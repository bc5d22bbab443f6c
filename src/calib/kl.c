/* The range that keeps the shape of the distribution: least Kullback-Leibler divergence of the values from what the
 * quantised tensor tells of them. Each quantised number stands for a cell one step wide. The values p are counted in
 * PARTS equal parts of each cell, with all that is clipped in the outermost part on its side; q has the count of the
 * whole cell, without what is clipped, evenly in those parts where p has anything. A wide range blurs, a narrow one clips.
 * Zero is kept exactly by every grid, so zeros are a part of their own.
 *
 * The resolution goes with the step, and the noise of few samples is taken off: with bins of one width, as TensorRT's
 * method and ORT's have them, it favours narrow ranges. The two ends are independent.
 * More than 10 bits blur nothing that a calibration could see: the whole range. */
#include "calib/spread.h"

#include <math.h>

enum { PARTS = 8, MAX_BITS = 10 };

struct reader { /* counts below rising places */
    const struct wml_spread *s;
    size_t i;
    double below; /* of the pieces before i */
};

/* Values below x, zeros left out. */
static double below(struct reader *r, double x)
{
    const struct wml_spread *s = r->s;
    for (; r->i < s->n && s->to[r->i] < x; r->i++)
        if (s->to[r->i] != 0 || s->from[r->i] != 0) r->below += s->count[r->i];
    if (r->i == s->n || s->from[r->i] >= x) return r->below;
    return r->below + s->count[r->i] * (x - s->from[r->i]) / (s->to[r->i] - s->from[r->i]);
}

/* p log(p/q) summed over the parts of a cell that holds `held`, of which `all` values are left in the grid; less what
 * comes of counting so few where nothing differs: (f - 1) / 2 values for f parts (Miller and Madow), which fades as the
 * parts come to hold one value each, since empty ones are left out. */
static double cell(const double p[PARTS], double held, double total, double all)
{
    double sum = 0, filled = 0;
    for (size_t i = 0; i < PARTS; i++) filled += p[i] > 0;
    double q = (held > 0 ? held / filled : 0.5) / all; /* nothing but clipped values: as if there were half a value */
    for (size_t i = 0; i < PARTS; i++)
        if (p[i] > 0) sum += p[i] / total * log(p[i] / total / q);
    double chance = held > filled ? (filled - 1) / 2 * (1 - filled / held) : 0;
    return sum - chance / total;
}

static double cost(const struct wml_spread *s, const struct wml_grid *g)
{
    struct reader r = {.s = s}, ends = {.s = s};
    double low = below(&ends, (g->first - 0.5) * g->step), high = below(&ends, (g->last + 0.5) * g->step), values = below(&ends, INFINITY);
    double zeros = s->total - values, all = s->total - low - (values - high), at = low, sum = 0;
    if (!(g->step > 0) || all <= 0) return INFINITY;
    if (low > 0 || values > high) all++; /* the half values of cell() */
    below(&r, (g->first - 0.5) * g->step);
    for (double k = g->first; k <= g->last; k++) {
        double p[PARTS], start = at, clipped = k == g->first ? low : 0;
        struct reader skip = r; /* an empty cell costs nothing */
        if (k > g->first && k < g->last && below(&skip, (k + 0.5) * g->step) <= at) continue;
        for (size_t i = 0; i < PARTS; i++) {
            double next = below(&r, (k - 0.5 + (double)(i + 1) / PARTS) * g->step);
            p[i] = next - at;
            at = next;
        }
        p[0] += clipped;
        if (k == g->last) p[PARTS - 1] += values - high;
        sum += cell(p, at - start, s->total, all);
    }
    if (zeros > 0) sum += zeros / s->total * log(all / s->total);
    return sum;
}

static struct wml_range finish(const struct wml_range_state *s, const struct wml_range_opts *o)
{
    if (wml_grid_bits(o) > MAX_BITS) return wml_range_make(s->dtype, s->extent.low, s->extent.high, o->form == WML_RANGE_SYMMETRIC);
    return wml_range_search(s, o, cost);
}

const struct wml_range_method wml_range_kl = {
    .name = "kl", .ort_name = "MinMax", .ours = true, .fits_type = true, .passes = 1, .collect = &wml_collect_tally,
    .check = wml_range_check_integer, .finish = finish, .summary = "what keeps the distribution's shape, each end for itself",
};
