/* ep/openvino.c - Intel's EP: CPU, GPU and NPU, each a device of its own of the plugin. The device handle
 * fixes what it runs on; the plugin refuses the option device_type beside it. */
#include "ep/internal.h"

#include "os/file.h"
#include "os/map.h"
#include "os/path.h"

#if defined(_WIN32)
#define WML_OPENVINO_CORE "openvino.dll"
#else
#define WML_OPENVINO_CORE "libopenvino."
#endif

static const struct wml_pair no_options[] = {{NULL, NULL}};
static const struct wml_pair npu_defaults[] = {
    {"load_config", "{\"NPU\":{\"CACHE_MODE\":\"OPTIMIZE_SPEED\",\"NPU_COMPILER_TYPE\":\"PLUGIN\","
                    "\"NPU_QDQ_OPTIMIZATION\":\"YES\",\"NPU_TURBO\":\"YES\"}}"},
    {NULL, NULL},
};
/* Where the processor has matrix units for bfloat16, its CPU plugin rounds float32 models to that: three digits. */
static const struct wml_pair cpu_exact[] = {
    {"load_config", "{\"CPU\":{\"INFERENCE_PRECISION_HINT\":\"f32\"}}"},
    {NULL, NULL},
};
static const struct wml_ep_device devices[] = {
    {.type = WML_DEVICE_NPU, .defaults = npu_defaults},
    {.type = WML_DEVICE_GPU, .defaults = no_options},
    {.type = WML_DEVICE_CPU, .defaults = no_options, .exact = cpu_exact},
};
static const char *const aliases[] = {"openvino", NULL};
static const char *const libraries[] = {WML_EP_FILE("onnxruntime_providers_openvino_plugin"), NULL};

static bool is_digit(unsigned char c)
{
    return c >= '0' && c <= '9';
}

/* "2026.4.1-22982-e213a147257-releases/2026/4", as every build of OpenVINO carries it. */
static bool build_at(const unsigned char *p, size_t n, char out[64])
{
    size_t len = 0, dots = 0;
    while (len < n && len < 63 && (is_digit(p[len]) || p[len] == '.')) dots += p[len++] == '.';
    if (dots != 2 || len < 8 || len + 2 > n || p[len] != '-' || !is_digit(p[len + 1])) return false;
    memcpy(out, p, len);
    out[len] = 0;
    return true;
}

static bool version_in(const char *path, char out[64])
{
    struct wml_map_file map;
    bool found = false;
    if (!wml_map_open(path, &map, NULL)) return false;
    const unsigned char *p = map.bytes.ptr;
    for (size_t i = 1; i + 10 < map.bytes.len && !found; i++)
        found = p[i] == '2' && !p[i - 1] && p[i + 1] == '0' && p[i + 4] == '.' && build_at(p + i, map.bytes.len - i, out);
    wml_map_close(&map);
    return found;
}

/* The plugin's own version says nothing about the OpenVINO beside it. */
static bool runtime_version(const char *library, char out[64])
{
    struct wml_buf dir = {0}, path = {0};
    struct wml_dir_list files = {0};
    bool found = false;
    wml_buf_str(&dir, wml_path_dir(wml_str(library)));
    if (wml_dir_list(wml_buf_text(&dir), &files, NULL))
        for (size_t i = 0; i < files.v.len && !found; i++) {
            struct wml_str name = files.v.at[i].name;
            if (!wml_str_starts(name, WML_OPENVINO_CORE)) continue;
            path.len = 0;
            wml_path_join(&path, wml_buf_view(&dir), name);
            found = version_in(wml_buf_text(&path), out);
        }
    wml_dir_list_release(&files);
    wml_buf_release(&dir);
    wml_buf_release(&path);
    return found;
}

static const struct wml_ep_want wants[] = {
    {WML_DEVICE_GPU, "untie-constant-batched-matmul", "its GPU plugin chooses a wrong kernel for constant operands", NULL, "2026.2"},
};

const struct wml_ep wml_ep_openvino = {
    .name = "OpenVINOExecutionProvider",
    .alias = aliases,
    .label = "OpenVINO",
    .vendor = "Intel",
    .library = libraries,
    .python_module = "onnxruntime_ep_openvino",
    .nuget_id = "Intel.ML.OnnxRuntime.EP.OpenVINO",
    .install = "pip install onnxruntime-ep-openvino",
    .device = devices,
    .n_devices = WML_COUNT(devices),
    .compiles = true,
    .trace = WML_TRACE_OPENVINO,
    .provider_token = "openvino",
    .want = wants,
    .n_wants = WML_COUNT(wants),
    .runtime_version = runtime_version,
};
