/* passes/conv_affine.h - Conv or ConvTranspose followed by y = a[c] x + b[c]: both go into its weights and bias. Shared
 * by the fusions of BatchNormalization, Mul and Add. */
#ifndef WML_PASSES_CONV_AFFINE_H
#define WML_PASSES_CONV_AFFINE_H

#include "passes/match.h"

struct wml_conv { /* a Conv or ConvTranspose with constant float weights whose result only `next` reads */
    struct wml_node *conv, *next;
    struct wml_tensor *w, *b; /* b NULL: none */
    size_t channels;          /* of the output */
    size_t groups;            /* of a ConvTranspose, whose weights are [in, channels / groups, ...]; 0: a Conv */
};

/* n is a Conv or ConvTranspose with constant float weights (and bias): fills all but next. */
bool wml_conv_is(struct wml_node *n, struct wml_conv *out);
/* Its weights times a number for each output channel, as DERIVED ones; NULL: they cannot be scaled. */
struct wml_tensor *wml_conv_weights(struct wml_pass_run *r, const struct wml_conv *c, const double *a);
/* Its weights times f; the bias stays. */
bool wml_conv_scale(struct wml_pass_run *r, struct wml_conv *c, double f);
/* Node `next` reads slot `slot` from such a Conv. */
bool wml_conv_before(struct wml_pass_run *r, struct wml_node *next, size_t slot, struct wml_conv *out);
/* One number per output channel from a constant that broadcasts along channels; NULL: it does not. In
 * scratch memory. rank: that of the Conv's result. */
double *wml_conv_channel_values(struct wml_pass_run *r, const struct wml_conv *c, const struct wml_value *v);
/* Multiplies the weights and the bias by a (NULL: ones) and adds b (NULL: zeros) to the bias. false: nothing changed. */
bool wml_conv_rescale(struct wml_pass_run *r, struct wml_conv *c, const double *a, const double *b);
/* Folds a (NULL: ones) and b (NULL: zeros) into the Conv and removes `next`. Weights are not copied: they
 * become DERIVED. false: nothing changed. */
bool wml_conv_absorb(struct wml_pass_run *r, struct wml_conv *c, const double *a, const double *b);

#endif
