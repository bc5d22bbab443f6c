/* ORT's Percentile. Symmetric, ORT's default: of the histogram of |x| over [least, most], the threshold is the left edge of
 * the first bin at which the share of values reaches `percentile`. Otherwise half of what is cut off goes from each side
 * of the histogram over [-most, most]. The range never leaves what was seen.
 *
 * Of all samples together, which is what ORT's quantize_static does: collecting in several calls, as strided calibration
 * does, it keeps the bins of the first call, and its answer depends on the order.
 * Source: onnxruntime.quantization, HistogramCollector.compute_percentile. */
#include "calib/bins.h"

#include <math.h>

enum { BINS = 2048, MAX_BINS = 1 << 20 };
#define PERCENTILE 99.999

static bool check(const struct wml_range_opts *o, struct wml_err *err)
{
    if (!(o->percentile >= 0 && o->percentile <= 100))
        return wml_fail(err, WML_E_USAGE, "percentile %g is not between 0 and 100", o->percentile);
    if (o->bins > MAX_BINS) return wml_fail(err, WML_E_USAGE, "%u bins are too many, at most %d", o->bins, MAX_BINS);
    return true;
}

static bool plan(struct wml_range_state *s, const struct wml_range_opts *o)
{
    double most = WML_MAX(-s->extent.low, s->extent.high);
    bool free_ends = o->form == WML_RANGE_FREE;
    return wml_bins_plan(s, o->bins ? o->bins : BINS, free_ends ? -most : s->extent.least, most, !free_ends);
}

/* The left edge of the first bin at which the share of values reaches `share`. */
static double edge_at(const struct wml_bins *b, double share)
{
    double total = 0, sum = 0;
    size_t i = 0;
    for (size_t k = 0; k < b->n; k++) total += (double)b->count[k];
    for (; i < b->n; i++)
        if ((sum += (double)b->count[i] / total) >= share) break;
    return (double)b->edge[i];
}

static struct wml_range finish(const struct wml_range_state *s, const struct wml_range_opts *o)
{
    const struct wml_bins *b = s->own;
    double p = o->percentile > 0 ? o->percentile : PERCENTILE, low = s->extent.low, high = s->extent.high;
    if (b->n && b->magnitudes) {
        double t = edge_at(b, p / 100.0);
        low = WML_MAX(low, -t);
        high = WML_MIN(high, t);
    } else if (b->n) {
        double cut = (100.0 - p) / 200.0;
        low = WML_MAX(low, edge_at(b, cut));
        high = WML_MIN(high, edge_at(b, 1.0 - cut));
    }
    return wml_range_make(s->dtype, low, high, false);
}

static const struct wml_range_collect collect = {
    .first = wml_bins_first, .plan = plan, .second = wml_bins_second, .merge = wml_bins_merge, .release = wml_bins_release,
};

const struct wml_range_method wml_range_percentile = {
    .name = "percentile", .ort_name = "Percentile", .passes = 2, .bins = BINS, .percentile = PERCENTILE, .collect = &collect, .check = check, .finish = finish,
    .summary = "what holds 99.999 % of the values",
};
