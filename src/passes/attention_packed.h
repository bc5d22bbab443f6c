/* passes/attention_packed.h - Q, K and V that are thirds of one value. */
#ifndef WML_PASSES_ATTENTION_PACKED_H
#define WML_PASSES_ATTENTION_PACKED_H

#include "passes/attention_form.h"

/* [batch, length, 3 * heads * size] with Q, K and V one after the other, read by nothing but this attention: split along
 * its last axis (GPT-2), or along the third of [batch, length, 3, heads, size] (ViT as timm writes it). factor:
 * what the parts are multiplied by. NULL: there is none. */
struct wml_value *wml_attention_packed(const struct wml_attention *a, double *factor);
/* Gives a->q, k, v their `flat` by a new Split of it. */
void wml_attention_unpack(struct wml_attention *a, struct wml_value *flat, double factor);

#endif
