/* ep/migraphx.c - AMD's graph compiler for its GPUs. */
#include "ep/internal.h"

static const struct wml_pair no_options[] = {{NULL, NULL}};
static const struct wml_ep_device devices[] = {{.type = WML_DEVICE_GPU, .defaults = no_options}};
static const char *const aliases[] = {"migraphx", NULL};
static const char *const libraries[] = {WML_EP_FILE("onnxruntime_providers_migraphx"), NULL};

const struct wml_ep wml_ep_migraphx = {
    .name = "MIGraphXExecutionProvider",
    .alias = aliases,
    .label = "MIGraphX",
    .vendor = "AMD",
    .library = libraries,
    .python_module = "onnxruntime_ep_migraphx",
    .device = devices,
    .n_devices = WML_COUNT(devices),
    .no_compile_reason = "it writes no EPContext; it compiles when the model is loaded",
    .trace = WML_TRACE_ORT,
    .provider_token = "migraphx",
};
