/* passes/folding.h - folding, for the passes that do more or less of it. */
#ifndef WML_PASSES_FOLDING_H
#define WML_PASSES_FOLDING_H

#include "passes/match.h"

/* Shape of known sizes, and single sizes picked out of a Shape, become constants. */
bool wml_fold_shapes(struct wml_pass_run *r);
/* Computes what depends on constants only; integers_only: where every operand and result is integer or bool. */
bool wml_fold_constants(struct wml_pass_run *r, bool integers_only);

#endif
