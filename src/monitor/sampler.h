/* monitor/sampler.h - a thread that looks at this process, the machine and its accelerators from time to time. */
#ifndef WML_MONITOR_SAMPLER_H
#define WML_MONITOR_SAMPLER_H

#include "monitor/load.h"

struct wml_usage_share { /* percent; n 0: not known */
    double mean, peak, last;
    size_t n;
};

struct wml_usage { /* means and peaks over the samples; MB of 2^20 bytes */
    double cpu_mean_percent, cpu_peak_percent; /* of one CPU: 200 is two busy ones */
    double rss_mean_mb, rss_peak_mb, rss_last_mb;
    size_t n;
    struct wml_usage_share machine, gpu, npu; /* all CPUs together are 100 */
    struct wml_usage_share local_mb, shared_mb; /* this process' memory on accelerators */
    double used_mb;                             /* of the machine's memory, at the end; < 0: not known */
    uint64_t gpu_busy_ns, npu_busy_ns;
    char source[64], gpu_luid[48], npu_luid[48]; /* see load.h; "" when not known */
};

struct wml_sampler;
/* NULL when no thread could be had: then there are no samples. */
struct wml_sampler *wml_sampler_start(unsigned every_ms);
/* The newest sample: mean and peak of the CPU are its share, `last` of the shares is right. Zeros before the first. */
struct wml_usage wml_sampler_now(struct wml_sampler *s);
/* Ends the thread. NULL is fine and gives zeros. */
struct wml_usage wml_sampler_stop(struct wml_sampler *s);

#endif
