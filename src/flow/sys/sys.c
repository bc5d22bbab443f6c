/* sys: what machine this is, its devices, and what every EP library says when it is loaded. */
#include <inttypes.h>

#include "flow/flow.h"
#include "flow/sys/internal.h"
#include "genai/genai.h"
#include "os/file.h"
#include "os/sys.h"
#include "ort/ort.h"
#include "sysinfo/sysinfo.h"
#include "text/json.h"

enum { MAX_DEVICES = 64 };

/* --- the machine --- */

static void put_python_keys(struct wml_item *root)
{
    static const char *const libraries[] = {"torch", "transformers", "onnx", "optimum", "numpy", "click", "rich"};
    struct wml_item *python = wml_item_object(root, "python", NULL);
    wml_item_null(python, "version", NULL);
    wml_item_null(python, "executable", NULL);
    wml_item_null(python, "implementation", NULL);
    struct wml_item *list = wml_item_object(root, "libraries", NULL);
    for (size_t i = 0; i < WML_COUNT(libraries); i++) wml_item_null(list, libraries[i], NULL);
}

static void put_platform(struct wml_item *root, const struct wml_sysinfo *s)
{
    struct wml_item *platform = wml_item_object(root, "platform", NULL);
    wml_item_cstr(platform, "system", NULL, s->system);
    wml_item_cstr(platform, "release", NULL, s->release);
    wml_item_cstr(platform, "machine", NULL, s->machine);
    wml_item_cstr(platform, "processor", NULL, s->cpu_name ? s->cpu_name : "Unknown");
    struct wml_item *memory = wml_item_object(root, "memory", NULL);
    if (s->memory_mib) wml_item_int(memory, "physical_total_mib", NULL, (int64_t)s->memory_mib, WML_SHOW_PLAIN);
    else wml_item_null(memory, "physical_total_mib", NULL);
    struct wml_item *text = wml_item_object(root, NULL, "System");
    wml_item_cstr(text, NULL, "System", s->pretty);
    wml_item_cstr(text, NULL, "Machine", s->machine);
    if (s->memory_mib) wml_item_int(text, NULL, "Memory", (int64_t)(s->memory_mib << 20), WML_SHOW_BYTES);
}

/* For text generation; it is looked for, not loaded. */
static void put_genai(struct wml_item *own, struct wml_item *text, struct wml_ctx *cx)
{
    struct wml_buf path = {0}, version = {0};
    struct wml_err err = {0};
    if (wml_genai_find(cx, &path, &version, &err)) {
        struct wml_item *genai = wml_item_object(own, "genai", NULL);
        wml_item_str(genai, "version", NULL, version.len ? wml_buf_view(&version) : WML_NO_STR);
        wml_item_str(genai, "path", NULL, wml_buf_view(&path));
        wml_item_fmt(text, NULL, "GenAI", "%s%s(%s)", wml_buf_text(&version), version.len ? " " : "", wml_buf_text(&path));
    } else {
        wml_item_null(own, "genai", NULL);
        wml_item_cstr(text, NULL, "GenAI", err.msg);
    }
    wml_buf_release(&path);
    wml_buf_release(&version);
}

static void put_winml(struct wml_item *root, struct wml_ctx *cx)
{
    struct wml_item *own = wml_item_object(root, "winml", NULL), *text = wml_item_object(root, NULL, "winml");
    struct wml_ort *ort = NULL;
    struct wml_err err = {0};
    wml_item_cstr(own, "version", NULL, WML_VERSION);
    wml_item_cstr(text, NULL, "Version", WML_VERSION);
    struct wml_item *runtime = wml_item_object(own, "onnxruntime", NULL);
    if (wml_ort_open(cx, &ort, &err)) {
        struct wml_ort_info info = wml_ort_info(ort);
        wml_item_cstr(runtime, "version", NULL, info.version);
        wml_item_cstr(runtime, "path", NULL, info.path);
        wml_item_int(runtime, "api_version", NULL, info.api_version, WML_SHOW_PLAIN);
        wml_item_fmt(text, NULL, "ONNX Runtime", "%s (%s)", info.version, info.path);
    } else {
        wml_item_null(runtime, "version", NULL);
        wml_item_cstr(runtime, "error", NULL, err.msg);
        wml_item_cstr(text, NULL, "ONNX Runtime", err.msg);
        wml_item_tone(text, WML_TONE_BAD);
    }
    put_genai(own, text, cx);
    struct wml_item *cache = wml_item_object(own, "cache", NULL);
    wml_item_cstr(cache, "root", NULL, cx->cache_dir);
    wml_item_cstr(text, NULL, "Cache", cx->cache_dir);
}

static void put_backends(struct wml_item *root, const struct wml_sysinfo *s, const struct wml_sys_eps *eps, bool verbose)
{
    struct wml_item *backends = wml_item_object(root, "backends", NULL), *qnn = wml_item_object(backends, "qnn", NULL);
    const struct wml_runtime_sdk *sdk = NULL;
    bool qnn_ready = false, openvino_ready = false;
    const char *openvino_version = NULL;
    for (size_t i = 0; i < s->sdk.len && !sdk; i++)
        if (strcmp(s->sdk.at[i].name, "qnn") == 0) sdk = &s->sdk.at[i];
    for (size_t i = 0; i < eps->v.len; i++) {
        const struct wml_sys_ep *e = &eps->v.at[i];
        if (e->status != WML_EP_PRIMARY) continue;
        if (strcmp(e->library->name, "QNNExecutionProvider") == 0) qnn_ready = true;
        if (strcmp(e->library->name, "OpenVINOExecutionProvider") == 0) {
            openvino_ready = true;
            openvino_version = e->library->version;
        }
    }
    wml_item_bool(qnn, "installed", NULL, sdk != NULL);
    if (sdk) {
        wml_item_cstr(qnn, "path", NULL, sdk->path);
        wml_item_cstr(qnn, "source", NULL, sdk->source);
    }
    struct wml_item *openvino = wml_item_object(backends, "openvino", NULL);
    wml_item_bool(openvino, "installed", NULL, openvino_ready);
    if (openvino_version) wml_item_cstr(openvino, "version", NULL, openvino_version);
    struct wml_item *ready = wml_item_object(root, "export_readiness", NULL);
    wml_item_bool(ready, "onnx_export", NULL, true); /* built in */
    wml_item_bool(ready, "qnn_ready", NULL, qnn_ready);
    wml_item_bool(ready, "openvino_ready", NULL, openvino_ready);
    if (!verbose) return;
    struct wml_item *text = wml_item_object(root, NULL, "Back ends");
    wml_item_cstr(text, NULL, "QNN SDK", sdk ? sdk->path : "not found");
    wml_item_cstr(text, NULL, "QNN compilation", qnn_ready ? "ready" : "not ready");
    wml_item_cstr(text, NULL, "OpenVINO compilation", openvino_ready ? "ready" : "not ready");
}

/* --- devices --- */

static void put_device(struct wml_item *list, struct wml_item *text, int64_t *priority, const char *type,
                       const char *name, const struct wml_hw *hw, const struct wml_sysinfo *s)
{
    struct wml_item *d = wml_item_object(list, NULL, NULL);
    struct wml_buf line = {0};
    wml_item_int(d, "priority", NULL, ++*priority, WML_SHOW_PLAIN);
    wml_item_cstr(d, "type", NULL, type);
    wml_item_cstr(d, "name", NULL, name);
    struct wml_item *details = wml_item_object(d, "details", NULL);
    if (hw) {
        if (hw->driver) wml_item_cstr(details, "driver", NULL, hw->driver);
        if (hw->manufacturer) wml_item_cstr(details, "manufacturer", NULL, hw->manufacturer);
        wml_item_int(d, "vendor_id", NULL, hw->vendor_id, WML_SHOW_PLAIN);
        wml_item_int(d, "device_id", NULL, hw->device_id, WML_SHOW_PLAIN);
        if (hw->memory_mib) wml_item_int(d, "vram_mib", NULL, (int64_t)hw->memory_mib, WML_SHOW_PLAIN);
        wml_buf_fmt(&line, "%s%s%s", hw->manufacturer ? hw->manufacturer : "", hw->driver ? ", driver " : "",
                    hw->driver ? hw->driver : "");
    } else {
        wml_item_int(details, "cores", NULL, s->cores, WML_SHOW_PLAIN);
        wml_item_int(details, "threads", NULL, s->threads, WML_SHOW_PLAIN);
        wml_item_cstr(details, "architecture", NULL, s->cpu_arch);
        wml_buf_fmt(&line, "%u cores, %u threads, %s", s->cores, s->threads, s->cpu_arch ? s->cpu_arch : "?");
    }
    wml_item_fmt(text, NULL, wml_item_name(text, wml_str(type)), "%s%s%s%s", name, line.len ? " (" : "", wml_buf_text(&line),
                 line.len ? ")" : "");
    wml_buf_release(&line);
}

static void put_devices(struct wml_item *root, const struct wml_sysinfo *s)
{
    struct wml_item *list = wml_item_array(root, "devices", NULL), *text = wml_item_object(root, NULL, "Devices");
    int64_t priority = 0;
    for (size_t i = 0; i < s->hw.len; i++)
        put_device(list, text, &priority, s->hw.at[i].kind == WML_HW_NPU ? "NPU" : "GPU", s->hw.at[i].name, &s->hw.at[i], s);
    put_device(list, text, &priority, "CPU", s->cpu_name ? s->cpu_name : "CPU", NULL, s);
}

/* --- EPs --- */

static struct wml_str device_name(const struct wml_json_val *d)
{
    struct wml_str name = wml_json_get_str(wml_json_get(d, "ep_meta"), "FULL_DEVICE_NAME");
    if (!name.len) name = wml_json_get_str(wml_json_get(d, "hw_meta"), "Description");
    return name.len ? name : WML_STR("<unknown>");
}

static void put_ep_device(struct wml_item *list, struct wml_item *text, const struct wml_json_val *d)
{
    struct wml_item *o = wml_item_object(list, NULL, NULL);
    struct wml_str type = wml_json_get_str(d, "type"), name = device_name(d);
    char upper[8] = {0};
    for (size_t i = 0; i < type.len && i + 1 < sizeof upper; i++)
        upper[i] = (char)(type.ptr[i] >= 'a' && type.ptr[i] <= 'z' ? type.ptr[i] - 32 : type.ptr[i]);
    wml_item_cstr(o, "device_type", NULL, upper);
    wml_item_str(o, "hardware_name", NULL, name);
    wml_item_str(o, "vendor", NULL, wml_json_get_str(d, "hw_vendor"));
    wml_item_array(o, "facts", NULL);
    wml_item_array(o, "device_facts", NULL);
    wml_item_json(o, "ep_metadata", wml_json_get(d, "ep_meta"));
    wml_item_fmt(text, NULL, "  Device", "%s %.*s", upper, WML_ARG(name));
}

static void put_entry(struct wml_item *entries, struct wml_item *text, const struct wml_sys_ep *e)
{
    const struct wml_ep_library *l = e->library;
    const struct wml_json_val *device[MAX_DEVICES];
    struct wml_item *o = wml_item_object(entries, NULL, NULL);
    size_t n = e->reply ? wml_sys_ep_devices(e, device, MAX_DEVICES) : 0;
    struct wml_str plugin = n ? wml_json_get_str(wml_json_get(device[0], "ep_meta"), "version") : WML_NO_STR;
    wml_item_cstr(o, "source_kind", NULL, l->source_kind);
    wml_item_cstr(o, "source_tag", NULL, l->source_tag);
    if (l->version) wml_item_cstr(o, "version", NULL, l->version);
    if (l->distribution) wml_item_cstr(o, "distribution", NULL, l->distribution);
    if (l->root) wml_item_cstr(o, "root", NULL, l->root);
    if (l->env_var) wml_item_cstr(o, "env_var", NULL, l->env_var);
    wml_item_cstr(o, "status", NULL, wml_ep_status_name(e->status));
    if (e->status >= WML_EP_FAILED) {
        wml_item_cstr(o, "error", NULL, e->error);
        wml_item_null(o, "error_code", NULL);
    }
    wml_item_cstr(o, "dll_path", NULL, l->path);
    if (plugin.len) wml_item_str(o, "plugin_version", NULL, plugin);
    wml_item_fmt(text, NULL, wml_item_name(text, wml_str(l->name)), "%s, %s%s%s", wml_ep_status_name(e->status), l->source_tag,
                 l->version ? " " : "", l->version ? l->version : "");
    wml_item_tone(text, e->status == WML_EP_PRIMARY ? WML_TONE_GOOD : e->status == WML_EP_SHADOWED ? WML_TONE_WARN : WML_TONE_BAD);
    if (l->path) wml_item_cstr(text, NULL, "  Path", l->path);
    if (plugin.len) wml_item_str(text, NULL, "  Version", plugin);
    if (e->error[0]) wml_item_cstr(text, NULL, "  Error", e->error);
    if (e->status > WML_EP_SHADOWED) return;
    struct wml_item *list = wml_item_array(o, "devices", NULL);
    for (size_t i = 0; i < n; i++) put_ep_device(list, text, device[i]);
}

/* EPs that winml knows and that are not here, with the reason. */
static void put_missing(struct wml_item *root, const struct wml_sys_eps *eps)
{
    struct wml_item *missing = wml_item_array(root, "missing", NULL), *text = wml_item_object(root, NULL, "Not here");
    for (size_t i = 0; i < wml_n_eps; i++) {
        bool here = wml_eps[i]->test_only;
        for (size_t k = 0; k < eps->v.len; k++) here = here || strcmp(eps->v.at[k].library->name, wml_eps[i]->name) == 0;
        if (here) continue;
        struct wml_buf why = {0};
        wml_ep_missing_reason(wml_eps[i], &eps->libraries, &why);
        struct wml_item *o = wml_item_object(missing, NULL, NULL);
        wml_item_cstr(o, "ep", NULL, wml_eps[i]->name);
        wml_item_str(o, "reason", NULL, wml_buf_view(&why));
        wml_item_str(text, NULL, wml_item_name(text, wml_str(wml_eps[i]->name)), wml_buf_view(&why));
        wml_buf_release(&why);
    }
}

static void put_eps(struct wml_item *root, const struct wml_sys_eps *eps)
{
    struct wml_item *all = wml_item_object(root, "executionProviders", NULL);
    struct wml_item *text = wml_item_object(root, NULL, "Execution providers");
    for (size_t i = 0; i < eps->v.len; i++) {
        const char *name = wml_item_name(all, wml_str(eps->v.at[i].library->name));
        struct wml_item *ep = wml_item_find(all, name);
        struct wml_item *entries = ep ? wml_item_find(ep, "entries") : NULL;
        if (!entries) entries = wml_item_array(wml_item_object(all, name, NULL), "entries", NULL);
        put_entry(entries, text, &eps->v.at[i]);
    }
    if (!eps->v.len) wml_item_line(text, WML_TONE_WARN, "No execution providers found.");
}

/* --- forms --- */

static void put_compact(struct wml_item *root, const struct wml_sysinfo *s, struct wml_ctx *cx, bool devices,
                        const struct wml_sys_eps *eps)
{
    struct wml_ort *ort = NULL;
    struct wml_err err = {0};
    struct wml_buf line = {0};
    const char *version = wml_ort_open(cx, &ort, &err) ? wml_ort_info(ort).version : "not found";
    wml_item_line(root, WML_TONE_PLAIN, "winml: %s | onnxruntime: %s | %s %s | memory: %" PRIu64 " MiB", WML_VERSION, version,
                  s->system, s->machine, s->memory_mib);
    if (devices) {
        for (size_t i = 0; i < s->hw.len; i++)
            wml_buf_fmt(&line, "%s: %s | ", s->hw.at[i].kind == WML_HW_NPU ? "NPU" : "GPU", s->hw.at[i].name);
        wml_item_line(root, WML_TONE_PLAIN, "%sCPU: %s", wml_buf_text(&line), s->cpu_name ? s->cpu_name : "?");
    }
    wml_buf_clear(&line);
    for (size_t i = 0; eps && i < eps->v.len; i++)
        if (eps->v.at[i].status == WML_EP_PRIMARY)
            wml_buf_fmt(&line, "%s%s", line.len ? ", " : "", eps->v.at[i].library->name);
    if (eps) wml_item_line(root, WML_TONE_PLAIN, "EPs: %s", line.len ? wml_buf_text(&line) : "none");
    wml_buf_release(&line);
}

bool wml_flow_sys(const struct wml_sys_args *a, struct wml_ctx *cx, struct wml_report *r, struct wml_err *err)
{
    struct wml_item *root = wml_report_root(r);
    bool all = !a->devices && !a->eps, wants_eps = a->eps || (all && !a->compact);
    struct wml_sysinfo s = {0};
    struct wml_sys_eps eps = {0};
    if (wants_eps && !wml_sys_eps_find(cx, &eps, err)) {
        wml_sys_eps_release(&eps);
        return wml_wrap(err, "Error detecting execution providers");
    }
    wml_sysinfo_read(&s, NULL);
    if (a->compact) put_compact(root, &s, cx, a->devices, wants_eps ? &eps : NULL);
    else {
        wml_item_int(root, "schema_version", NULL, 1, WML_SHOW_PLAIN);
        if (all) {
            put_winml(root, cx);
            put_python_keys(root);
            put_platform(root, &s);
            wml_item_bool(wml_item_object(root, "torch", NULL), "available", NULL, false);
            put_backends(root, &s, &eps, a->verbose);
        }
        if (all || a->eps) put_eps(root, &eps);
        if (a->eps || a->verbose) put_missing(root, &eps);
        if (all || a->devices) put_devices(root, &s);
    }
    wml_sysinfo_release(&s);
    wml_sys_eps_release(&eps);
    return true;
}
