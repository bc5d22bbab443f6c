/* ep/dml.c - DirectML: any GPU under Windows, built into some ORT libraries only. */
#include "ep/internal.h"

static const struct wml_pair no_options[] = {{NULL, NULL}};
static const struct wml_ep_device devices[] = {{.type = WML_DEVICE_GPU, .defaults = no_options}};
static const char *const aliases[] = {"dml", NULL};

const struct wml_ep wml_ep_dml = {
    .name = "DmlExecutionProvider",
    .alias = aliases,
    .label = "DML",
    .install = "on Windows, use an ONNX Runtime built with DML (WINML_ORT)",
    .device = devices,
    .n_devices = WML_COUNT(devices),
    .no_compile_reason = "it writes no EPContext; it compiles when the model is loaded",
    .trace = WML_TRACE_ORT,
    .provider_token = "dml",
    .contrib = "Attention BiasAdd BiasGelu BiasSplitGelu DynamicQuantizeMatMul EmbedLayerNormalization FastGelu FusedMatMul "
               "FusedMatMulActivation Gelu GroupNorm GroupQueryAttention MatMulIntegerToFloat MatMulNBits MultiHeadAttention "
               "QuickGelu RotaryEmbedding SimplifiedLayerNormalization SkipLayerNormalization SkipSimplifiedLayerNormalization",
};
