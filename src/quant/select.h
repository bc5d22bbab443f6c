/* quant/select.h - which nodes the user's options let a method touch, and what is left over afterwards. */
#ifndef WML_QUANT_SELECT_H
#define WML_QUANT_SELECT_H

#include "quant/quant.h"

/* One of them is the name, or matches it. */
bool wml_patterns_match(const struct wml_patterns *p, struct wml_str s);
/* op_types allows the operator, and neither exclude nor leave names the node. */
bool wml_quant_selects(const struct wml_quant_opts *o, const struct wml_node *n);
/* Types of values as ONNX Runtime tells them. Where it cannot, those in the file must do, which is noted. false: cancelled. */
bool wml_quant_infer(struct wml_quant_run *r, struct wml_err *err);
/* Nothing was found to quantise: why may be in the first note, or constants are computed by nodes; else `otherwise`. */
void wml_quant_hint_nothing(const struct wml_quant_run *r, const char *otherwise, struct wml_err *err);
/* Removes constants that nothing reads now, initializers and Constant nodes, in every graph. */
void wml_quant_drop_constants(struct wml_model *m);

#endif
