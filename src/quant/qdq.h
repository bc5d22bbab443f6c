/* quant/qdq.h - what comes before the method "qdq" (static quantisation with QuantizeLinear and DequantizeLinear):
 *
 *     wml_qdq_prepare(&run, &err);              the model as it will be calibrated
 *     wml_qdq_wanted(&run, &wanted, &err);      its values that need ranges
 *     ...                                       run it; opts.ranges by the names of the values
 *     wml_quant_qdq.apply(&run, &err);
 */
#ifndef WML_QUANT_QDQ_H
#define WML_QUANT_QDQ_H

#include "quant/quant.h"

/* Refuses pairs of types and models that cannot be quantised, then brings the model into the form that the method works
 * on: the opset that the types need, Constant nodes as initializers, names for all nodes, types known. Answers stay the same.
 * A second call changes nothing; apply calls it as well. */
bool wml_qdq_prepare(struct wml_quant_run *r, struct wml_err *err);

/* The float values whose ranges apply will look up, in the order in which the graph computes them. The model must be
 * prepared. WML_E_UNSUPPORTED as for apply: nothing in it can be quantised. */
bool wml_qdq_wanted(struct wml_quant_run *r, struct wml_quant_values *out, struct wml_err *err);

#endif
