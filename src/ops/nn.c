/* ops/nn.c - facts about neural network operators. */
#include "ops/ops.h"

static const struct wml_op ops[] = {
    {"", "Conv", 0},
    {"", "ConvTranspose", 0},
    {"", "MatMul", 0},
    {"", "Gemm", 0},
    {"", "BatchNormalization", 0},
    {"", "LayerNormalization", 0},
    {"", "RMSNormalization", 0},
    {"", "InstanceNormalization", 0},
    {"", "GroupNormalization", 0},
    {"", "Softmax", 0},
    {"", "LogSoftmax", 0},
    {"", "MaxPool", 0},
    {"", "AveragePool", 0},
    {"", "GlobalAveragePool", 0},
    {"", "GlobalMaxPool", 0},
    {"", "LSTM", 0},
    {"", "GRU", 0},
    {"", "RNN", 0},
    {"", "Resize", 0},
    {"", "Attention", 0},
};

const struct wml_op_group wml_op_group_nn = {.name = "nn", .op = ops, .len = WML_COUNT(ops)};
