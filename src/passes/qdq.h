/* passes/qdq.h - questions about QuantizeLinear and DequantizeLinear. */
#ifndef WML_PASSES_QDQ_H
#define WML_PASSES_QDQ_H

#include "passes/match.h"

/* Both nodes have the same scale, zero point, axis and block size: the same values, or equal constants. */
bool wml_qdq_same(struct wml_pass_run *r, const struct wml_node *a, const struct wml_node *b);
/* Quantising what was dequantised gives the same integers, with the scale type and the integers of q
 * (QuantizeLinear): half floats cannot hold every 16-bit integer. */
bool wml_qdq_is_exact(const struct wml_node *q);

#endif
