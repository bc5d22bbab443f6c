/* passes/causal_mask.h - proof that a mask hides the future, from the arithmetic exporters write for it. */
#ifndef WML_PASSES_CAUSAL_MASK_H
#define WML_PASSES_CAUSAL_MASK_H

#include "passes/attention_form.h"
#include "passes/shape_symbols.h"

enum wml_causal {
    WML_CAUSAL_UNPROVEN,
    WML_CAUSAL_HIDES, /* query i sees no key behind i + past; perhaps not all before it */
    WML_CAUSAL_EXACT  /* it sees exactly the others */
};

/* past: how many keys stand before those of the first query. What is known of shapes is noted (wml_syms_note). */
enum wml_causal wml_mask_is_causal(struct wml_symbols *c, const struct wml_attention *a, struct wml_sym past);

#endif
