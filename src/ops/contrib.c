/* ops/contrib.c - facts about operators of com.microsoft. */
#include "ops/ops.h"

static const struct wml_op ops[] = {
    {"com.microsoft", "EPContext", WML_OP_EFFECT},
    {"com.microsoft", "QuantizeLinear", WML_OP_QUANT},
    {"com.microsoft", "DequantizeLinear", WML_OP_QUANT},
    {"com.microsoft", "QLinearAdd", WML_OP_QUANT},
    {"com.microsoft", "QLinearMul", WML_OP_QUANT},
    {"com.microsoft", "QLinearSigmoid", WML_OP_QUANT},
    {"com.microsoft", "QLinearAveragePool", WML_OP_QUANT},
    {"com.microsoft", "QLinearGlobalAveragePool", WML_OP_QUANT},
    {"com.microsoft", "QLinearConcat", WML_OP_QUANT},
    {"com.microsoft", "QLinearLeakyRelu", WML_OP_QUANT},
    {"com.microsoft", "QLinearSoftmax", WML_OP_QUANT},
    {"com.microsoft", "Gelu", WML_OP_ELEMENTWISE},
    {"com.microsoft", "FastGelu", WML_OP_ELEMENTWISE},
    {"com.microsoft", "BiasGelu", WML_OP_ELEMENTWISE},
    {"com.microsoft", "QuickGelu", WML_OP_ELEMENTWISE},
    {"com.microsoft", "FusedConv", 0},
    {"com.microsoft", "FusedGemm", 0},
    {"com.microsoft", "FusedMatMul", 0},
    {"com.microsoft", "MatMulNBits", 0},
    {"com.microsoft", "GatherBlockQuantized", 0},
    {"com.microsoft", "SkipLayerNormalization", 0},
    {"com.microsoft", "SkipSimplifiedLayerNormalization", 0},
    {"com.microsoft", "MultiHeadAttention", 0},
    {"com.microsoft", "GroupQueryAttention", 0},
    {"com.microsoft", "RotaryEmbedding", 0},
    {"com.microsoft", "Attention", 0},
    {"com.microsoft", "EmbedLayerNormalization", 0},
    {"com.microsoft", "BiasSoftmax", 0},
    {"com.microsoft", "BiasDropout", WML_OP_RANDOM},
    {"com.microsoft", "FusedMatMulActivation", 0},
    {"com.microsoft", "DynamicQuantizeMatMul", 0},
    {"com.microsoft", "MatMulIntegerToFloat", 0},
};

const struct wml_op_group wml_op_group_contrib = {.name = "contrib", .op = ops, .len = WML_COUNT(ops)};
