/* What a benchmark did to the machine: memory at three points, load while it ran. */
#include "flow/machine.h"

#include <math.h>

#include "os/thread.h"

static const double MB = 1048576;

/* A share of load; what is not known is null. */
static struct wml_item *put_load(struct wml_item *to, const char *key, const struct wml_json_val *v)
{
    struct wml_item *o = wml_item_object(to, key, NULL);
    wml_item_num(o, "mean_pct", NULL, wml_json_get_num(v, "mean", NAN), 2, WML_SHOW_PLAIN);
    wml_item_num(o, "peak_pct", NULL, wml_json_get_num(v, "peak", NAN), 2, WML_SHOW_PLAIN);
    wml_item_int(o, "sample_count", NULL, wml_json_get_int(v, "samples", 0), WML_SHOW_PLAIN);
    return o;
}

static void put_process(struct wml_item *m, const struct wml_json_val *u)
{
    double mean = wml_json_get_num(u, "cpu_mean", 0), peak = wml_json_get_num(u, "cpu_peak", 0), cpus = wml_cpu_count();
    const struct wml_json_val *machine = wml_json_get(u, "machine");
    struct wml_item *cpu = wml_item_object(m, "cpu", NULL);
    wml_item_num(cpu, "mean_pct", NULL, mean / cpus, 2, WML_SHOW_PLAIN);
    wml_item_num(cpu, "process_mean_pct", NULL, mean, 2, WML_SHOW_PLAIN);
    wml_item_num(cpu, "peak_pct", NULL, peak / cpus, 2, WML_SHOW_PLAIN);
    wml_item_int(cpu, "sample_count", NULL, wml_json_get_int(u, "samples", 0), WML_SHOW_PLAIN);
    wml_item_num(cpu, "system_mean_pct", NULL, wml_json_get_num(machine, "mean", NAN), 2, WML_SHOW_PLAIN);
    wml_item_num(cpu, "system_peak_pct", NULL, wml_json_get_num(machine, "peak", NAN), 2, WML_SHOW_PLAIN);
    struct wml_item *ram = wml_item_object(m, "ram", NULL);
    wml_item_num(ram, "mean_mb", NULL, wml_json_get_num(u, "rss_mean", 0), 2, WML_SHOW_PLAIN);
    wml_item_num(ram, "used_mb", NULL, wml_json_get_num(u, "rss_last", 0), 2, WML_SHOW_PLAIN);
    wml_item_num(ram, "peak_mb", NULL, wml_json_get_num(u, "rss_peak", 0), 2, WML_SHOW_PLAIN);
    wml_item_num(ram, "system_used_mb", NULL, wml_json_get_num(u, "machine_used_mb", NAN), 2, WML_SHOW_PLAIN);
}

/* The accelerator that was asked for, when the system tells its load; a simulated one has none. */
static const char *device_kind(struct wml_str device, bool simulated, const struct wml_json_val *u)
{
    const char *kind = wml_str_is(device, "npu") ? "npu" : wml_str_is(device, "gpu") ? "gpu" : NULL;
    if (!kind || simulated) return NULL;
    return wml_json_get_int(wml_json_get(u, kind), "samples", 0) > 0 ? kind : NULL;
}

static void put_accelerators(struct wml_item *m, const struct wml_json_val *u, const char *kind)
{
    const struct wml_json_val *local = wml_json_get(u, "local_mb"), *shared = wml_json_get(u, "shared_mb");
    struct wml_item *luids = wml_item_array(put_load(m, "gpu", wml_json_get(u, "gpu")), "luids", NULL);
    if (wml_json_get_str(u, "gpu_luid").len) wml_item_str(luids, NULL, NULL, wml_json_get_str(u, "gpu_luid"));
    struct wml_item *memory = wml_item_object(m, "device_memory", NULL);
    wml_item_num(memory, "local_mean_mb", NULL, wml_json_get_num(local, "mean", NAN), 2, WML_SHOW_PLAIN);
    wml_item_num(memory, "shared_mean_mb", NULL, wml_json_get_num(shared, "mean", NAN), 2, WML_SHOW_PLAIN);
    wml_item_num(memory, "local_peak_mb", NULL, wml_json_get_num(local, "peak", NAN), 2, WML_SHOW_PLAIN);
    wml_item_num(memory, "shared_peak_mb", NULL, wml_json_get_num(shared, "peak", NAN), 2, WML_SHOW_PLAIN);
    double busy = kind ? wml_json_get_num(u, strcmp(kind, "npu") == 0 ? "npu_busy_ns" : "gpu_busy_ns", NAN) : NAN;
    wml_item_num(m, "running_time_ns", NULL, busy, 0, WML_SHOW_PLAIN);
    if (!kind) return;
    put_load(m, "adapter", wml_json_get(u, kind));
    if (strcmp(kind, "npu") == 0) put_load(m, "npu", wml_json_get(u, kind));
}

static void monitor_line(struct wml_item *root, const struct wml_json_val *u)
{
    static const struct { const char *key, *name; } load[] = {{"npu", "NPU"}, {"gpu", "GPU"}};
    struct wml_buf text = {0};
    wml_buf_fmt(&text, "CPU: %.0f %% of one core on average, %.0f %% at most; memory %.1f MB on average", wml_json_get_num(u, "cpu_mean", 0),
                wml_json_get_num(u, "cpu_peak", 0), wml_json_get_num(u, "rss_mean", 0));
    for (size_t i = 0; i < WML_COUNT(load); i++) {
        const struct wml_json_val *v = wml_json_get(u, load[i].key);
        if (wml_json_get_int(v, "samples", 0))
            wml_buf_fmt(&text, "; %s %.0f %% on average, %.0f %% at most", load[i].name, wml_json_get_num(v, "mean", 0), wml_json_get_num(v, "peak", 0));
    }
    wml_item_line(root, WML_TONE_PLAIN, "%s", wml_buf_text(&text));
    wml_buf_release(&text);
}

struct wml_item *wml_machine_put_monitor(struct wml_item *root, const struct wml_json_val *u, struct wml_str device, bool simulated)
{
    struct wml_item *m = wml_item_object(root, "hw_monitor", NULL);
    wml_item_cstr(m, "monitor", NULL, "HWMonitor");
    if (!u) return m;
    const char *kind = device_kind(device, simulated, u);
    struct wml_str source = wml_json_get_str(u, "source");
    struct wml_str luid = wml_json_get_str(u, kind && strcmp(kind, "npu") == 0 ? "npu_luid" : "gpu_luid");
    wml_item_cstr(m, "device_kind", NULL, kind);
    wml_item_str(m, "adapter_luid", NULL, kind ? luid : WML_NO_STR);
    wml_item_fmt(m, "monitor_source", NULL, "process%s%.*s", source.len ? "+" : "", WML_ARG(source));
    put_process(m, u);
    put_accelerators(m, u, kind);
    monitor_line(root, u);
    return m;
}

/* Memory on the accelerator before, after loading, after running. */
static void put_device_memory(struct wml_item *o, const char *prefix, const struct wml_json_val *points)
{
    double base = wml_json_num(wml_json_at(points, 0), NAN), loaded = wml_json_num(wml_json_at(points, 1), NAN);
    double after = wml_json_num(wml_json_at(points, 2), NAN);
    const struct { const char *name; double v; } part[] = {
        {"baseline", base}, {"after_compile", loaded}, {"after_inference", after}, {"checkpoint_peak", fmax(base, fmax(loaded, after))},
        {"model_load_delta", loaded - base}, {"inference_delta", after - loaded}, {"total_delta", after - base}};
    for (size_t i = 0; i < WML_COUNT(part); i++) {
        struct wml_buf key = {0};
        wml_buf_fmt(&key, "%s_%s_mb", prefix, part[i].name);
        wml_item_num(o, wml_item_name(o, wml_buf_view(&key)), NULL, part[i].v, 2, WML_SHOW_PLAIN);
        wml_buf_release(&key);
    }
}

void wml_machine_put_memory(struct wml_item *root, const struct wml_json_val *m)
{
    if (!m) return;
    double base = wml_json_get_num(m, "baseline", NAN) / MB, loaded = wml_json_get_num(m, "loaded", NAN) / MB;
    double after = wml_json_get_num(m, "after", NAN) / MB, peak = wml_json_get_num(m, "peak", NAN) / MB;
    struct wml_item *o = wml_item_object(root, "memory", NULL);
    const struct { const char *key; double v; } row[] = {
        {"rss_baseline_mb", base}, {"rss_after_compile_mb", loaded}, {"rss_after_inference_mb", after},
        {"rss_checkpoint_peak_mb", fmax(base, fmax(loaded, after))}, {"rss_model_load_delta_mb", loaded - base},
        {"rss_inference_delta_mb", after - loaded}, {"rss_total_delta_mb", after - base}, {"rss_peak_mb", peak}};
    for (size_t i = 0; i < WML_COUNT(row); i++) wml_item_num(o, row[i].key, NULL, row[i].v, 2, WML_SHOW_PLAIN);
    put_device_memory(o, "vram_local", wml_json_get(m, "local_mb"));
    put_device_memory(o, "vram_shared", wml_json_get(m, "shared_mb"));
    wml_item_line(root, WML_TONE_PLAIN, "Memory: %.1f MB before the model, %+.1f loading, %+.1f running, %.1f at the peak", base,
                  loaded - base, after - loaded, peak);
}
