/* ep/tensorrt.c - NVIDIA's TensorRT inside ORT builds for servers; NvTensorRTRTX is its plugin for PCs. */
#include "ep/internal.h"

static const struct wml_pair no_options[] = {{NULL, NULL}};
static const struct wml_ep_device devices[] = {{.type = WML_DEVICE_GPU, .defaults = no_options}};
static const char *const aliases[] = {"tensorrt", NULL};

const struct wml_ep wml_ep_tensorrt = {
    .name = "TensorrtExecutionProvider",
    .alias = aliases,
    .label = "TensorRT",
    .vendor = "NVIDIA",
    .install = "use an ONNX Runtime built with TensorRT (ONNXRUNTIME_ROOT), or the plugin nvtensorrtrtx",
    .device = devices,
    .n_devices = WML_COUNT(devices),
    .no_compile_reason = "it keeps engine caches of its own instead of EPContext",
    .trace = WML_TRACE_ORT,
    .provider_token = "tensorrt",
};
