/* ops/quant.c - facts about quantisation. */
#include "ops/ops.h"

static const struct wml_op ops[] = {
    {"", "QuantizeLinear", WML_OP_QUANT},
    {"", "DequantizeLinear", WML_OP_QUANT},
    {"", "DynamicQuantizeLinear", WML_OP_QUANT},
    {"", "QLinearConv", WML_OP_QUANT},
    {"", "QLinearMatMul", WML_OP_QUANT},
    {"", "ConvInteger", WML_OP_QUANT},
    {"", "MatMulInteger", WML_OP_QUANT},
};

const struct wml_op_group wml_op_group_quant = {.name = "quant", .op = ops, .len = WML_COUNT(ops)};
