/* monitor/sampler.h - a thread that looks at this process from time to time: CPU share and memory. */
#ifndef WML_MONITOR_SAMPLER_H
#define WML_MONITOR_SAMPLER_H

#include "base/vec.h"

struct wml_usage { /* means and peaks over the samples */
    double cpu_mean_percent, cpu_peak_percent; /* of one CPU: 200 is two busy ones */
    double rss_mean_mb, rss_peak_mb, rss_last_mb; /* MB of 2^20 bytes */
    size_t n;
};

struct wml_sampler;
/* NULL when no thread could be had: then there are no samples. */
struct wml_sampler *wml_sampler_start(unsigned every_ms);
/* The newest sample: mean and peak are its CPU share. Zeros before the first one. */
struct wml_usage wml_sampler_now(struct wml_sampler *s);
/* Ends the thread. NULL is fine and gives zeros. */
struct wml_usage wml_sampler_stop(struct wml_sampler *s);

#endif
