/* ep/openvino.c - Intel's EP: CPU, GPU and NPU, each a device of its own of the plugin. The device handle
 * fixes what it runs on; the plugin refuses the option device_type beside it. */
#include "ep/internal.h"

static const struct wml_pair no_options[] = {{NULL, NULL}};
static const struct wml_pair npu_defaults[] = {
    {"load_config", "{\"NPU\":{\"CACHE_MODE\":\"OPTIMIZE_SPEED\",\"NPU_COMPILER_TYPE\":\"PLUGIN\","
                    "\"NPU_QDQ_OPTIMIZATION\":\"YES\",\"NPU_TURBO\":\"YES\"}}"},
    {NULL, NULL},
};
static const struct wml_ep_device devices[] = {
    {WML_DEVICE_NPU, npu_defaults, NULL},
    {WML_DEVICE_GPU, no_options, NULL},
    {WML_DEVICE_CPU, no_options, NULL},
};
static const char *const aliases[] = {"openvino", NULL};
static const char *const libraries[] = {WML_EP_FILE("onnxruntime_providers_openvino_plugin"), NULL};

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
};
