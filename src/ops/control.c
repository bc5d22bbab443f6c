/* ops/control.c - facts about control flow. */
#include "ops/ops.h"

static const struct wml_op ops[] = {
    {"", "If", WML_OP_SUBGRAPH},
    {"", "Loop", WML_OP_SUBGRAPH},
    {"", "Scan", WML_OP_SUBGRAPH},
    {"", "SequenceMap", WML_OP_SUBGRAPH},
};

const struct wml_op_group wml_op_group_control = {.name = "control", .op = ops, .len = WML_COUNT(ops)};
