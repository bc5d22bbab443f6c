/* monitor/stats.h - latency statistics over samples in milliseconds. */
#ifndef WML_MONITOR_STATS_H
#define WML_MONITOR_STATS_H

#include <stddef.h>

struct wml_stats { /* all 0 without samples */
    size_t n;
    double mean, min, max, std; /* std: of the population, divided by n */
    double p50, p90, p95, p99;
};

void wml_stats(const double *sample, size_t n, struct wml_stats *out);
/* Percentile p (0..100) of sorted samples, as the reports define it: index min(int(n p / 100), n - 1), no
 * interpolation. */
double wml_percentile(const double *sorted, size_t n, double p);
double wml_mean(const double *sample, size_t n);

#endif
