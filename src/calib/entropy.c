/* ORT's Entropy. Windows around the middle of a histogram over [-most, most], of 2 i + 1 bins each: p is the window with
 * what lies outside put on its end bins, q the same (without that) as `levels` numbers hold it. The window of the smallest
 * divergence of p from q is the range; of equals, the first. It never leaves what was seen.
 *
 * The float32 arithmetic is numpy's, with its order of summation; logarithms are rounded better than numpy's, which
 * depend on the processor. So the window is ORT's unless two divergences are equal to six digits.
 * Source: onnxruntime.quantization, HistogramCollector.get_entropy_threshold, smooth_distribution. */
#include "calib/bins.h"

#include <math.h>

enum { BINS = 2048, MAX_BINS = 10000, LEVELS = 128 }; /* above, ORT's smoothing can take a whole count from a bin */

static unsigned levels_of(const struct wml_range_opts *o)
{
    return o->levels ? o->levels : LEVELS;
}

static bool check(const struct wml_range_opts *o, struct wml_err *err)
{
    unsigned bins = o->bins ? o->bins : BINS;
    if (bins >= levels_of(o) && bins <= MAX_BINS) return true;
    return wml_fail(err, WML_E_USAGE, "%u bins are not between the number of levels, %u, and %d", bins, levels_of(o), MAX_BINS);
}

static bool plan(struct wml_range_state *s, const struct wml_range_opts *o)
{
    double most = WML_MAX(-s->extent.low, s->extent.high);
    return wml_bins_plan(s, o->bins ? o->bins : BINS, -most, most, false);
}

/* numpy's sum of float32: pairs of halves down to 128 numbers, and eight running sums there. */
static float sum(const float *a, size_t n)
{
    float r[8], s = 0;
    if (n > 128) {
        size_t half = n / 2 - n / 2 % 8;
        float left = sum(a, half), right = sum(a + half, n - half);
        return left + right;
    }
    size_t i = 0;
    if (n >= 8) {
        memcpy(r, a, sizeof r);
        for (i = 8; i + 8 <= n; i += 8)
            for (size_t j = 0; j < 8; j++) r[j] += a[i + j];
        s = ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]));
    }
    for (; i < n; i++) s += a[i];
    return s;
}

/* Zeros become 1e-4, the others give off as much; then the sum is made 1. false: all are zero. */
static bool smooth(const uint64_t *count, float *out, size_t n)
{
    size_t zeros = 0;
    for (size_t i = 0; i < n; i++) zeros += !count[i];
    if (zeros == n) return false;
    double taken = 0.0001 * (double)zeros / (double)(n - zeros);
    for (size_t i = 0; i < n; i++) {
        float c = (float)count[i], change = count[i] ? -(float)taken : 0.0001F;
        out[i] = c + change;
    }
    float total = sum(out, n);
    for (size_t i = 0; i < n; i++) out[i] /= total;
    return true;
}

struct window { /* room for one */
    uint64_t *p, *q;
    float *fp, *fq;
};

/* What `levels` numbers hold of the window: each group of bins by its mean over those that p has anything in. What does
 * not fill a group at the end is added to the last group and itself left at 0, as ORT does. */
static void quantise(const struct window *w, const uint64_t *hist, size_t n, size_t levels)
{
    size_t merged = n / levels;
    memset(w->q, 0, n * sizeof *w->q);
    for (size_t g = 0; g < levels; g++) {
        uint64_t held = 0, filled = 0;
        size_t from = g * merged, to = from + merged;
        for (size_t i = from; i < to; i++) held += hist[i], filled += w->p[i] != 0;
        for (size_t i = to; g + 1 == levels && i < n; i++) held += hist[i];
        for (size_t i = from; filled && i < to; i++) w->q[i] = (uint64_t)((double)held / (double)filled);
    }
}

static float divergence(const struct window *w, size_t n)
{
    float p = 0, q = 0, term = 0;
    if (!smooth(w->p, w->fp, n) || !smooth(w->q, w->fq, n)) return INFINITY;
    for (size_t i = 0; i < n; i++) {
        if (w->fp[i] != p || w->fq[i] != q) { /* most bins far out are alike */
            p = w->fp[i];
            q = w->fq[i];
            float ratio = p / q, l = (float)log((double)ratio);
            term = p * l;
        }
        w->fp[i] = term;
    }
    return sum(w->fp, n);
}

/* Half of the best window's width in bins. */
static size_t best_window(const struct wml_bins *b, size_t levels)
{
    size_t middle = b->n / 2, best = levels / 2;
    struct window w = {wml_xcalloc(b->n, sizeof *w.p), wml_xcalloc(b->n, sizeof *w.q), wml_xcalloc(b->n, sizeof *w.fp),
                       wml_xcalloc(b->n, sizeof *w.fq)};
    uint64_t *before = wml_xcalloc(b->n + 1, sizeof *before); /* counts left of a bin */
    double least = INFINITY;
    for (size_t i = 0; i < b->n; i++) before[i + 1] = before[i] + b->count[i];
    for (size_t i = levels / 2; i <= middle; i++) {
        size_t from = middle - i, to = WML_MIN(middle + i + 1, b->n), n = to - from;
        memcpy(w.p, b->count + from, n * sizeof *w.p);
        w.p[0] += before[from];
        w.p[n - 1] += before[b->n] - before[to];
        quantise(&w, b->count + from, n, levels);
        double d = wml_range_round(b->arithmetic, (double)divergence(&w, n));
        if (d < least) least = d, best = i;
    }
    free(w.p);
    free(w.q);
    free(w.fp);
    free(w.fq);
    free(before);
    return best;
}

static struct wml_range finish(const struct wml_range_state *s, const struct wml_range_opts *o)
{
    const struct wml_bins *b = s->own;
    double low = s->extent.low, high = s->extent.high;
    if (b->n) {
        size_t half = best_window(b, levels_of(o)), middle = b->n / 2;
        low = WML_MAX(low, (double)b->edge[middle - half]);
        high = WML_MIN(high, (double)b->edge[WML_MIN(middle + half + 1, b->n)]);
    }
    return wml_range_make(s->dtype, low, high, false);
}

static const struct wml_range_collect collect = {
    .first = wml_bins_first, .plan = plan, .second = wml_bins_second, .merge = wml_bins_merge, .release = wml_bins_release,
};

const struct wml_range_method wml_range_entropy = {
    .name = "entropy", .ort_name = "Entropy", .passes = 2, .bins = BINS, .collect = &collect, .check = check, .finish = finish,
    .summary = "what loses least information in 128 levels, symmetric windows: ORT's algorithm",
};
