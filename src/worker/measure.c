/* Memory at the three points of a measurement, and what the sampler saw, as JSON. */
#include "worker/measure.h"

#include "monitor/chart.h"
#include "os/sys.h"

void wml_memory_begin(struct wml_memory_points *m, bool accelerator)
{
    if (accelerator && !m->loads) m->loads = wml_loads_open(NULL);
    for (size_t i = 0; i < 3; i++) m->local_mb[i] = m->shared_mb[i] = -1;
    wml_rss_peak_reset();
    wml_memory_look(m, 0);
}

void wml_memory_look(struct wml_memory_points *m, size_t point)
{
    struct wml_load now = {.local_mb = -1, .shared_mb = -1};
    m->rss[point] = wml_rss();
    m->peak = wml_rss_peak();
    if (m->loads) wml_loads_read(m->loads, wml_now_ns(), true, &now);
    m->local_mb[point] = now.local_mb;
    m->shared_mb[point] = now.shared_mb;
}

void wml_memory_end(struct wml_memory_points *m)
{
    wml_loads_close(m->loads);
    m->loads = NULL;
}

void wml_live_item(struct wml_sampler *sampler, double ms, char out[WML_LIVE_TEXT])
{
    struct wml_usage u = wml_sampler_now(sampler);
    snprintf(out, WML_LIVE_TEXT, WML_LIVE_ITEM, u.cpu_mean_percent, u.rss_last_mb, ms, u.gpu.n ? u.gpu.last : -1,
             u.npu.n ? u.npu.last : -1);
}

static void put_number(struct wml_json *j, const char *key, double v)
{
    wml_json_key(j, key);
    wml_json_put_num(j, v);
}

/* Negative: not known. */
static void put_known(struct wml_json *j, const char *key, double v)
{
    wml_json_key(j, key);
    if (v >= 0) wml_json_put_num(j, v);
    else wml_json_put_null(j);
}

static void put_points(struct wml_json *j, const char *key, const double at[3])
{
    wml_json_key(j, key);
    wml_json_begin(j, '[');
    for (size_t i = 0; i < 3; i++) {
        if (at[i] >= 0) wml_json_put_num(j, at[i]);
        else wml_json_put_null(j);
    }
    wml_json_end(j, ']');
}

void wml_memory_put(struct wml_json *j, const struct wml_memory_points *m)
{
    wml_json_key(j, "memory");
    wml_json_begin(j, '{');
    put_number(j, "baseline", (double)m->rss[0]);
    put_number(j, "loaded", (double)m->rss[1]);
    put_number(j, "after", (double)m->rss[2]);
    put_number(j, "peak", (double)m->peak);
    put_points(j, "local_mb", m->local_mb);
    put_points(j, "shared_mb", m->shared_mb);
    wml_json_end(j, '}');
}

static void put_share(struct wml_json *j, const char *key, const struct wml_usage_share *s)
{
    wml_json_key(j, key);
    wml_json_begin(j, '{');
    put_known(j, "mean", s->n ? s->mean : -1);
    put_known(j, "peak", s->n ? s->peak : -1);
    put_number(j, "samples", (double)s->n);
    wml_json_end(j, '}');
}

static void put_text(struct wml_json *j, const char *key, const char *text)
{
    wml_json_key(j, key);
    wml_json_put_cstr(j, text[0] ? text : NULL);
}

void wml_usage_put(struct wml_json *j, const struct wml_usage *u)
{
    wml_json_key(j, "usage");
    wml_json_begin(j, '{');
    put_number(j, "cpu_mean", u->cpu_mean_percent);
    put_number(j, "cpu_peak", u->cpu_peak_percent);
    put_number(j, "rss_mean", u->rss_mean_mb);
    put_number(j, "rss_last", u->rss_last_mb);
    put_number(j, "rss_peak", u->rss_peak_mb);
    put_number(j, "samples", (double)u->n);
    put_share(j, "machine", &u->machine);
    put_share(j, "gpu", &u->gpu);
    put_share(j, "npu", &u->npu);
    put_share(j, "local_mb", &u->local_mb);
    put_share(j, "shared_mb", &u->shared_mb);
    put_known(j, "machine_used_mb", u->n ? u->used_mb : -1);
    put_known(j, "gpu_busy_ns", u->gpu.n ? (double)u->gpu_busy_ns : -1);
    put_known(j, "npu_busy_ns", u->npu.n ? (double)u->npu_busy_ns : -1);
    put_text(j, "source", u->source);
    put_text(j, "gpu_luid", u->gpu_luid);
    put_text(j, "npu_luid", u->npu_luid);
    wml_json_end(j, '}');
}
