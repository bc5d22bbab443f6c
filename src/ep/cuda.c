/* ep/cuda.c - NVIDIA GPUs through CUDA kernels, as a plugin library or built into ORT. */
#include "ep/internal.h"

static const struct wml_pair no_options[] = {{NULL, NULL}};
static const struct wml_ep_device devices[] = {{.type = WML_DEVICE_GPU, .defaults = no_options}};
static const char *const aliases[] = {"cuda", NULL};
static const char *const libraries[] = {WML_EP_FILE("onnxruntime_providers_cuda_plugin"),
                                        WML_EP_FILE("onnxruntime_providers_cuda"), NULL};

const struct wml_ep wml_ep_cuda = {
    .name = "CUDAExecutionProvider",
    .alias = aliases,
    .label = "CUDA",
    .vendor = "NVIDIA",
    .library = libraries,
    .install = "use an ONNX Runtime built with CUDA (ONNXRUNTIME_ROOT)",
    .device = devices,
    .n_devices = WML_COUNT(devices),
    .no_compile_reason = "it runs kernels and writes no EPContext",
    .trace = WML_TRACE_ORT,
    .provider_token = "cuda",
    .contrib = "Attention BiasDropout BiasGelu BiasSoftmax BiasSplitGelu DecoderMaskedMultiHeadAttention EmbedLayerNormalization "
               "FastGelu FusedConv FusedMatMul GatedRelativePositionBias Gelu GroupNorm GroupQueryAttention MatMulNBits "
               "MultiHeadAttention PackedAttention QuickGelu RotaryEmbedding SimplifiedLayerNormalization SkipGroupNorm "
               "SkipLayerNormalization SkipSimplifiedLayerNormalization",
};
