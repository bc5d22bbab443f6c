/* ops/tensor.c - facts about operators that move elements. */
#include "ops/ops.h"

static const struct wml_op ops[] = {
    {"", "Reshape", WML_OP_MOVES},
    {"", "Transpose", WML_OP_MOVES},
    {"", "Squeeze", WML_OP_MOVES},
    {"", "Unsqueeze", WML_OP_MOVES},
    {"", "Flatten", WML_OP_MOVES},
    {"", "Slice", WML_OP_MOVES},
    {"", "Gather", WML_OP_MOVES},
    {"", "GatherElements", WML_OP_MOVES},
    {"", "GatherND", WML_OP_MOVES},
    {"", "Concat", WML_OP_MOVES},
    {"", "Split", WML_OP_MOVES},
    {"", "Expand", WML_OP_MOVES},
    {"", "Tile", WML_OP_MOVES},
    {"", "Pad", WML_OP_MOVES},
    {"", "DepthToSpace", WML_OP_MOVES},
    {"", "SpaceToDepth", WML_OP_MOVES},
    {"", "ReverseSequence", WML_OP_MOVES},
    {"", "Compress", WML_OP_MOVES},
};

const struct wml_op_group wml_op_group_tensor = {.name = "tensor", .op = ops, .len = WML_COUNT(ops)};
