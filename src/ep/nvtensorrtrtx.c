/* ep/nvtensorrtrtx.c - NVIDIA's TensorRT RTX as a plugin; it writes EPContext. */
#include "ep/internal.h"

static const struct wml_pair no_options[] = {{NULL, NULL}};
static const struct wml_ep_device devices[] = {{.type = WML_DEVICE_GPU, .defaults = no_options}};
static const char *const aliases[] = {"nvtensorrtrtx", "nv_tensorrt_rtx", "trtrtx", NULL};
static const char *const libraries[] = {WML_EP_FILE("onnxruntime_providers_nv_tensorrt_rtx"), NULL};

const struct wml_ep wml_ep_nvtensorrtrtx = {
    .name = "NvTensorRTRTXExecutionProvider",
    .alias = aliases,
    .label = "NvTensorRTRTX",
    .vendor = "NVIDIA",
    .library = libraries,
    .python_module = "onnxruntime_ep_nv_tensorrt_rtx",
    .vendor_env = "NVIDIA_TRT_RTX_EP",
    .install = "pip install onnxruntime-ep-nv-tensorrt-rtx",
    .device = devices,
    .n_devices = WML_COUNT(devices),
    .compiles = true,
    .trace = WML_TRACE_ORT,
    .provider_token = "nvtensorrtrtx",
};
