/* ep/webgpu.c - any GPU through WebGPU (Dawn), as a plugin or built into ORT. */
#include "ep/internal.h"

static const struct wml_pair no_options[] = {{NULL, NULL}};
static const struct wml_ep_device devices[] = {{.type = WML_DEVICE_GPU, .defaults = no_options}};
static const char *const aliases[] = {"webgpu", NULL};
static const char *const libraries[] = {WML_EP_FILE("onnxruntime_providers_webgpu"), NULL};

const struct wml_ep wml_ep_webgpu = {
    .name = "WebGpuExecutionProvider",
    .alias = aliases,
    .label = "WebGPU",
    .library = libraries,
    .python_module = "onnxruntime_ep_webgpu",
    .install = "pip install onnxruntime-ep-webgpu",
    .device = devices,
    .n_devices = WML_COUNT(devices),
    .no_compile_reason = "it runs kernels and writes no EPContext",
    .trace = WML_TRACE_ORT,
    .provider_token = "webgpu",
    .contrib = "Attention BiasAdd BiasSplitGelu FastGelu FusedConv Gelu GroupQueryAttention MatMulNBits MultiHeadAttention QuickGelu "
               "RotaryEmbedding SimplifiedLayerNormalization SkipLayerNormalization SkipSimplifiedLayerNormalization",
};
