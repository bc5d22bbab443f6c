/* graph/fingerprint.h - which model it is: equal for a model and its copies, wherever they lie and however their weights are
 * stored; another after training or rewriting. Of weights only the ends are read, so that large models take no time. */
#ifndef WML_GRAPH_FINGERPRINT_H
#define WML_GRAPH_FINGERPRINT_H

#include "base/hash.h"
#include "graph/model.h"

enum { WML_FINGERPRINT = 17 }; /* 16 hex digits and NUL */

/* Stable between versions: it may be kept in files. DERIVED tensors are made for it. */
void wml_model_fingerprint(struct wml_model *m, char hex[WML_FINGERPRINT]);

#endif
