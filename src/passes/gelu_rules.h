/* passes/gelu_rules.h - the written-out forms of Gelu and what they become. */
#ifndef WML_PASSES_GELU_RULES_H
#define WML_PASSES_GELU_RULES_H

#include "passes/pattern.h"

enum wml_gelu_forms { WML_GELU_1 = 1, WML_GELU_2 = 2, WML_GELU_3 = 4, WML_GELU_4 = 8, WML_GELU_OTHER = 16, WML_GELU_ALL = 31 };

/* x * 0.5 * (1 + erf(x / sqrt(2))) in the named forms becomes Gelu: of ONNX from opset 20, of com.microsoft
 * below when contrib is allowed. */
bool wml_gelu_run(struct wml_pass_run *r, unsigned forms, bool contrib, struct wml_err *err);

#endif
