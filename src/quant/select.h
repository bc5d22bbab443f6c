/* quant/select.h - which nodes the user's options let a method touch. */
#ifndef WML_QUANT_SELECT_H
#define WML_QUANT_SELECT_H

#include "quant/quant.h"

/* A name, or a pattern that matches it, is among the names. */
bool wml_names_have(const struct wml_names *names, struct wml_str s);
/* op_types allows the operator and exclude does not name the node. */
bool wml_quant_selects(const struct wml_quant_opts *o, const struct wml_node *n);

#endif
