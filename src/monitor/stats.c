/* Mean, spread and percentiles. */
#include "monitor/stats.h"

#include <math.h>

#include "base/arena.h"

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

double wml_percentile(const double *sorted, size_t n, double p)
{
    if (!n) return 0;
    size_t i = (size_t)((double)n * p / 100);
    return sorted[i < n ? i : n - 1];
}

double wml_mean(const double *sample, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += sample[i];
    return n ? sum / (double)n : 0;
}

void wml_stats(const double *sample, size_t n, struct wml_stats *out)
{
    double squares = 0;
    *out = (struct wml_stats){.n = n};
    if (!n) return;
    double *sorted = wml_xcalloc(n, sizeof *sorted);
    memcpy(sorted, sample, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, by_value);
    out->mean = wml_mean(sample, n);
    for (size_t i = 0; i < n; i++) squares += (sample[i] - out->mean) * (sample[i] - out->mean);
    out->std = sqrt(squares / (double)n);
    out->min = sorted[0];
    out->max = sorted[n - 1];
    out->p50 = wml_percentile(sorted, n, 50);
    out->p90 = wml_percentile(sorted, n, 90);
    out->p95 = wml_percentile(sorted, n, 95);
    out->p99 = wml_percentile(sorted, n, 99);
    free(sorted);
}
