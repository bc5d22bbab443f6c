/* CPU and memory of this process, load of the machine and its accelerators, sampled. */
#include "monitor/sampler.h"

#include <stdatomic.h>

#include "base/arena.h"
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
    struct wml_loads *loads;      /* of the thread */
    uint64_t span_cpu, span_gpu, span_npu; /* means are weighted by time */
};

/* Of one CPU. The system counts CPU time in steps of its own, so over a short while it may say more than all CPUs have. */
static double share(uint64_t cpu_ns, uint64_t span_ns)
{
    double most = 100.0 * wml_cpu_count();
    return span_ns ? WML_MIN(100.0 * (double)cpu_ns / (double)span_ns, most) : 0;
}

/* mean holds the sum of value times weight until the end; `all` the weights. */
static void add(struct wml_usage_share *to, double v, uint64_t weight, uint64_t *all)
{
    to->mean += v * (double)weight;
    if (!all || weight >= SHORTEST_NS || !to->n) to->peak = WML_MAX(to->peak, v);
    to->last = v;
    to->n++;
    if (all) *all += weight;
}

static void take_load(struct wml_sampler *s, const struct wml_load *l)
{
    struct wml_usage *u = &s->sum;
    if (l->cpu.span_ns) add(&u->machine, l->cpu.percent, l->cpu.span_ns, &s->span_cpu);
    if (l->gpu.span_ns) add(&u->gpu, l->gpu.percent, l->gpu.span_ns, &s->span_gpu);
    if (l->npu.span_ns) add(&u->npu, l->npu.percent, l->npu.span_ns, &s->span_npu);
    if (l->local_mb >= 0) add(&u->local_mb, l->local_mb, 1, NULL);
    if (l->shared_mb >= 0) add(&u->shared_mb, l->shared_mb, 1, NULL);
    if (l->used_mb >= 0) u->used_mb = l->used_mb;
    u->gpu_busy_ns = l->gpu_busy_ns;
    u->npu_busy_ns = l->npu_busy_ns;
}

static void take(struct wml_sampler *s, uint64_t *last_ns, uint64_t *last_cpu, bool end)
{
    struct wml_load load;
    uint64_t now = wml_now_ns(), cpu = wml_cpu_ns();
    uint64_t begun = *last_ns;
    double rss = (double)wml_rss() / 1048576;
    double busy = share(cpu - *last_cpu, now - *last_ns);
    *last_ns = now;
    *last_cpu = cpu;
    wml_loads_read(s->loads, now, end, &load);
    wml_mutex_lock(s->lock);
    s->last_share = busy;
    s->sum.n++;
    if (now - begun >= SHORTEST_NS || !s->sum.n) s->sum.cpu_peak_percent = WML_MAX(s->sum.cpu_peak_percent, busy);
    s->sum.rss_mean_mb += rss;
    s->sum.rss_peak_mb = WML_MAX(s->sum.rss_peak_mb, rss);
    s->sum.rss_last_mb = rss;
    take_load(s, &load);
    wml_mutex_unlock(s->lock);
}

static void keep_names(struct wml_sampler *s)
{
    struct wml_buf source = {0}, gpu = {0}, npu = {0};
    wml_loads_source(s->loads, &source);
    wml_loads_luid(s->loads, false, &gpu);
    wml_loads_luid(s->loads, true, &npu);
    snprintf(s->sum.source, sizeof s->sum.source, "%s", wml_buf_text(&source));
    snprintf(s->sum.gpu_luid, sizeof s->sum.gpu_luid, "%s", wml_buf_text(&gpu));
    snprintf(s->sum.npu_luid, sizeof s->sum.npu_luid, "%s", wml_buf_text(&npu));
    wml_buf_release(&source);
    wml_buf_release(&gpu);
    wml_buf_release(&npu);
}

static void run(void *arg)
{
    struct wml_sampler *s = arg;
    uint64_t last_ns = s->begin_ns, last_cpu = s->begin_cpu;
    bool stop = false;
    s->loads = wml_loads_open(NULL);
    while (!stop) { /* at least one sample, however short the work was */
        wml_mutex_lock(s->lock);
        if (!s->stop) wml_cond_wait(s->wake, s->lock, s->every_ms);
        stop = s->stop;
        wml_mutex_unlock(s->lock);
        take(s, &last_ns, &last_cpu, stop);
    }
    keep_names(s);
    wml_loads_close(s->loads);
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
    s->sum.used_mb = -1;
    if (wml_thread_start(&s->thread, run, s, &ignored)) return s;
    wml_mutex_free(s->lock);
    wml_cond_free(s->wake);
    free(s);
    return NULL;
}

struct wml_usage wml_sampler_now(struct wml_sampler *s)
{
    wml_mutex_lock(s->lock);
    struct wml_usage u = s->sum;
    u.cpu_mean_percent = u.cpu_peak_percent = s->last_share;
    u.rss_mean_mb = u.rss_last_mb;
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
    u.cpu_mean_percent = share(wml_cpu_ns() - s->begin_cpu, spent);
    u.cpu_peak_percent = WML_MAX(u.cpu_peak_percent, u.cpu_mean_percent);
    if (u.n) u.rss_mean_mb /= (double)u.n;
    if (s->span_cpu) u.machine.mean /= (double)s->span_cpu;
    if (s->span_gpu) u.gpu.mean /= (double)s->span_gpu;
    if (s->span_npu) u.npu.mean /= (double)s->span_npu;
    if (u.local_mb.n) u.local_mb.mean /= (double)u.local_mb.n;
    if (u.shared_mb.n) u.shared_mb.mean /= (double)u.shared_mb.n;
    wml_mutex_free(s->lock);
    wml_cond_free(s->wake);
    free(s);
    return u;
}
