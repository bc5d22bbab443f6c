/* The range whose quantised values are nearest to the values: least sum of squared differences, those of rounding inside
 * and those of clipping outside. Each piece of the spread is integrated, so nothing is assumed of the error but that values
 * lie evenly within 1/256 of an octave; half floats are taken one by one. */
#include "calib/spread.h"

#include <math.h>

/* The nearest integer, as a vector unit can: |u| < 2^51. */
static inline double nearest(double u)
{
    const double big = 6755399441055744.0; /* 1.5 * 2^52: its last bit is 1 */
    double up = u + big;
    return up - big;
}

/* Integral from 0 to u of the squared distance to the nearest integer: 1/12 for each whole one passed. */
static inline double rounding(double u)
{
    double n = nearest(u), r = u - n;
    return n / 12 + r * r * r / 3;
}

/* Mean squared rounding error between a and b, in steps; the middle's, where they are too close to tell. */
static inline double inside(double a, double b)
{
    double width = b - a, middle = a + width / 2, r = middle - nearest(middle), exact = (rounding(b) - rounding(a)) / width;
    return width > 1e-6 ? exact : r * r;
}

/* Mean squared distance from c of what lies between a and b. */
static double beyond(double a, double b, double c)
{
    a -= c;
    b -= c;
    return (a * a + a * b + b * b) / 3;
}

/* Squared error of one piece, in steps, of which the grid may reach only a part. */
static double piece(double a, double b, double first, double last)
{
    double width = b - a, from = WML_MIN(WML_MAX(a, first), last), to = WML_MAX(WML_MIN(b, last), first);
    if (b <= first) return beyond(a, b, first);
    if (a >= last) return beyond(a, b, last);
    double sum = (to - from) * inside(from, to);
    if (a < first) sum += (first - a) * beyond(a, first, first);
    if (b > last) sum += (b - last) * beyond(last, b, last);
    return width > 0 ? sum / width : inside(a, b);
}

static double cost(const struct wml_spread *s, const struct wml_grid *g)
{
    double sum = 0, per = 1 / g->step;
    size_t i = 0, n = s->n;
    if (!(g->step > 0) || !isfinite(per)) { /* nothing but 0 is left */
        for (; i < n; i++) sum += s->count[i] * beyond(s->from[i], s->to[i], 0);
        return sum;
    }
    for (; i < n && s->from[i] * per < g->first; i++) sum += s->count[i] * piece(s->from[i] * per, s->to[i] * per, g->first, g->last);
    for (; n > i && s->to[n - 1] * per > g->last; n--)
        sum += s->count[n - 1] * piece(s->from[n - 1] * per, s->to[n - 1] * per, g->first, g->last);
    double part[4] = {0}; /* running sums that do not wait for each other */
    for (; i + 4 <= n; i += 4)
        for (size_t j = 0; j < 4; j++) part[j] += s->count[i + j] * inside(s->from[i + j] * per, s->to[i + j] * per);
    for (; i < n; i++) sum += s->count[i] * inside(s->from[i] * per, s->to[i] * per);
    sum += (part[0] + part[1]) + (part[2] + part[3]);
    return sum * g->step * g->step;
}

static struct wml_range finish(const struct wml_range_state *s, const struct wml_range_opts *o)
{
    return wml_range_search(s, o, cost);
}

const struct wml_range_method wml_range_mse = {
    .name = "mse", .ort_name = "MinMax", .ours = true, .fits_type = true, .passes = 1, .collect = &wml_collect_tally,
    .check = wml_range_check_integer, .finish = finish, .summary = "what quantises with the least squared error",
};
