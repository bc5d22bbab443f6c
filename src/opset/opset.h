/* opset/opset.h - a model in the words of another operator set: every node of ONNX's own domain, in the graph, in
 * sub-graphs and in the bodies of functions, is said as the wanted version says it, with the same answers. Other domains
 * are left alone. It goes version by version; opset.def says what changed where. */
#ifndef WML_OPSET_OPSET_H
#define WML_OPSET_OPSET_H

#include "graph/model.h"

enum { WML_OPSET_FIRST = 11, WML_OPSET_LAST = 25 };

/* false: it cannot be done, and the model must not be used any more. The message names the first node and why, the hint
 * the nearest version that works. Types that are known make more possible, so infer them before. n_unsure: nodes whose
 * types are not known where they matter; a runtime should look at the result. */
bool wml_opset_convert(struct wml_model *m, int64_t target, size_t *n_unsure, struct wml_err *err);
/* The IR version that came with an opset. */
int64_t wml_opset_ir(int64_t opset);

#endif
