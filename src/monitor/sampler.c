/* CPU and memory of this process, sampled. */
#include "monitor/sampler.h"

#include <stdatomic.h>

#include "os/sys.h"
#include "os/thread.h"

/* The last stretch may be too short for the system's clock of CPU time to mean anything. */
static const uint64_t SHORTEST_NS = 20000000;

struct wml_sampler {
    struct wml_thread *thread;
    struct wml_mutex *lock;
    struct wml_cond *wake;
    bool stop;
    unsigned every_ms;
    struct wml_usage sum; /* means hold sums until the end; under the lock */
    double last_share;
    uint64_t begin_ns, begin_cpu; /* the mean share is that of the whole time */
};

static void take(struct wml_sampler *s, uint64_t *last_ns, uint64_t *last_cpu)
{
    uint64_t now = wml_now_ns(), cpu = wml_cpu_ns();
    uint64_t begun = *last_ns;
    double rss = (double)wml_rss() / 1048576;
    double share = now > *last_ns ? 100.0 * (double)(cpu - *last_cpu) / (double)(now - *last_ns) : 0;
    *last_ns = now;
    *last_cpu = cpu;
    wml_mutex_lock(s->lock);
    s->last_share = share;
    s->sum.n++;
    if (now - begun >= SHORTEST_NS || !s->sum.n) s->sum.cpu_peak_percent = WML_MAX(s->sum.cpu_peak_percent, share);
    s->sum.rss_mean_mb += rss;
    s->sum.rss_peak_mb = WML_MAX(s->sum.rss_peak_mb, rss);
    s->sum.rss_last_mb = rss;
    wml_mutex_unlock(s->lock);
}

static void run(void *arg)
{
    struct wml_sampler *s = arg;
    uint64_t last_ns = s->begin_ns, last_cpu = s->begin_cpu;
    bool stop = false;
    while (!stop) { /* at least one sample, however short the work was */
        wml_mutex_lock(s->lock);
        if (!s->stop) wml_cond_wait(s->wake, s->lock, s->every_ms);
        stop = s->stop;
        wml_mutex_unlock(s->lock);
        take(s, &last_ns, &last_cpu);
    }
}

struct wml_sampler *wml_sampler_start(unsigned every_ms)
{
    struct wml_sampler *s = wml_xcalloc(1, sizeof *s);
    struct wml_err ignored = {0};
    s->lock = wml_mutex_new();
    s->wake = wml_cond_new();
    s->every_ms = every_ms;
    s->begin_ns = wml_now_ns();
    s->begin_cpu = wml_cpu_ns();
    if (wml_thread_start(&s->thread, run, s, &ignored)) return s;
    wml_mutex_free(s->lock);
    wml_cond_free(s->wake);
    free(s);
    return NULL;
}

struct wml_usage wml_sampler_now(struct wml_sampler *s)
{
    wml_mutex_lock(s->lock);
    struct wml_usage u = {.cpu_mean_percent = s->last_share, .cpu_peak_percent = s->last_share, .rss_mean_mb = s->sum.rss_last_mb,
                          .rss_peak_mb = s->sum.rss_peak_mb, .rss_last_mb = s->sum.rss_last_mb, .n = s->sum.n};
    wml_mutex_unlock(s->lock);
    return u;
}

struct wml_usage wml_sampler_stop(struct wml_sampler *s)
{
    struct wml_usage u = {0};
    if (!s) return u;
    wml_mutex_lock(s->lock);
    s->stop = true;
    wml_cond_signal(s->wake);
    wml_mutex_unlock(s->lock);
    wml_thread_join(s->thread);
    u = s->sum;
    uint64_t spent = wml_now_ns() - s->begin_ns;
    u.cpu_mean_percent = spent ? 100.0 * (double)(wml_cpu_ns() - s->begin_cpu) / (double)spent : 0;
    u.cpu_peak_percent = WML_MAX(u.cpu_peak_percent, u.cpu_mean_percent);
    if (u.n) u.rss_mean_mb /= (double)u.n;
    wml_mutex_free(s->lock);
    wml_cond_free(s->wake);
    free(s);
    return u;
}
