/* passes/activations.h - activations that fused operators of com.microsoft can take in. */
#ifndef WML_PASSES_ACTIVATIONS_H
#define WML_PASSES_ACTIVATIONS_H

#include "passes/match.h"

struct wml_activation {
    struct wml_str name; /* as the fused operator spells it: the op type */
    float param[2];      /* alpha and beta of HardSigmoid, alpha of LeakyRelu, bounds of Clip */
    size_t n_params;
};

/* n is Relu, LeakyRelu, Sigmoid, Tanh, Clip (both bounds constant) or HardSigmoid. */
bool wml_activation_of(struct wml_pass_run *r, const struct wml_node *n, struct wml_activation *out);
/* The node `next` behind n, if it is the only reader and can be taken in; its output becomes n's. */
bool wml_activation_absorb(struct wml_node *n, struct wml_node *next);

#endif
