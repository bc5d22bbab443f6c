/* ops/ops.h - facts about operators that passes ask for. No shapes, no evaluation: ORT knows those.
 *
 * Rows live in one file per group of src/ops, listed in ops.def. An operator without a row has no
 * facts, which is the careful answer everywhere: wml_op_is_pure is then false for foreign domains and
 * true for the ONNX domain unless it is random. */
#ifndef WML_OPS_OPS_H
#define WML_OPS_OPS_H

#include "graph/model.h"

enum wml_op_flags {
    WML_OP_COMMUTATIVE = 1 << 0, /* the two inputs may be swapped */
    WML_OP_ELEMENTWISE = 1 << 1, /* output i depends on element i of the (broadcast) inputs only */
    WML_OP_RANDOM = 1 << 2,      /* two runs may differ */
    WML_OP_EFFECT = 1 << 3,      /* does more than compute its outputs, or is compiled code */
    WML_OP_SUBGRAPH = 1 << 4,    /* has graphs as attributes */
    WML_OP_MOVES = 1 << 5,       /* rearranges elements, changes none (Reshape, Transpose, ...) */
    WML_OP_QUANT = 1 << 6,       /* converts to or from integers by a scale */
    WML_OP_IMPURE = WML_OP_RANDOM | WML_OP_EFFECT
};

struct wml_op {
    const char *domain; /* "" for ai.onnx */
    const char *name;
    unsigned flags;
};

struct wml_op_group {
    const char *name;
    const struct wml_op *op;
    size_t len;
};

#define WML_OP_GROUP(name) extern const struct wml_op_group wml_op_group_##name;
#include "ops/ops.def"
#undef WML_OP_GROUP

/* NULL when the operator has no row. */
const struct wml_op *wml_op_find(struct wml_str domain, struct wml_str name);
bool wml_op_has(const struct wml_node *n, unsigned flags); /* all of the flags */
bool wml_op_is_function(const struct wml_node *n); /* the model itself defines the operator */
/* Same inputs give the same outputs and nothing else happens: may be folded, merged, removed when
 * unused. Sub-graphs are looked into; nodes of model functions and unknown domains are not pure. */
bool wml_op_is_pure(const struct wml_node *n);
/* May be removed when no output is used: pure, or merely random. */
bool wml_op_is_removable(const struct wml_node *n);

#endif
