/* passes/rms_norm_rules.h - the written-out forms of RMS normalisation, x / sqrt(mean(x^2) + eps) * scale. */
#ifndef WML_PASSES_RMS_NORM_RULES_H
#define WML_PASSES_RMS_NORM_RULES_H

#include "passes/pattern.h"

/* Half floats are widened to float for the quotient, and its product with the scale is one of half floats. */
enum wml_rms_norm_forms { WML_RMS_NORM_PLAIN, WML_RMS_NORM_WIDENED };

struct wml_rms_norm {
    struct wml_value *x, *scale; /* scale: a constant of exactly the normalised axes, of x's type */
    int64_t rank, axis;          /* the first of the normalised axes, which are all behind it */
    float eps;
};

/* A match of one of the rules below; false, with the reason, when it is none. */
bool wml_rms_norm_of(struct wml_match *m, struct wml_rms_norm *out);
/* Runs f on every match of the forms. */
bool wml_rms_norm_run(struct wml_pass_run *r, bool widened, bool (*f)(struct wml_match *m), struct wml_err *err);

#endif
