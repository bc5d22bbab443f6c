/* passes/attention_stream.h - keys or values of a decoder: those of earlier positions joined in front of the new ones, each
 * repeated for the query heads of its group. */
#ifndef WML_PASSES_ATTENTION_STREAM_H
#define WML_PASSES_ATTENTION_STREAM_H

#include "passes/attention_form.h"

struct wml_stream {
    struct wml_value *whole;      /* [batch, groups, keys, size]; an output of the operator when there is a past */
    struct wml_value *past, *new; /* joined to whole; past NULL: whole is new */
};

/* v, [batch, heads, keys, size], is what an attention reads. */
void wml_stream_of(struct wml_pass_run *r, struct wml_value *v, struct wml_stream *out);
/* Past and new have the same batch, heads and size, so that an operator can join them. */
bool wml_stream_joins(const struct wml_stream *s);
/* v is computed from a or b: then no operator can give those and take v. mark: of nodes seen, from wml_model_mark. */
bool wml_needs_either(const struct wml_value *v, const struct wml_value *a, const struct wml_value *b, uint64_t mark);
/* n gives the joined keys or values from now on; what joined them goes. */
void wml_stream_take_whole(struct wml_node *n, size_t slot, struct wml_stream *s);

/* Attention of opset 23 that is there already, of rank 4, takes groups and a past in. */
bool wml_attention_absorb(struct wml_pass_run *r, struct wml_node *n);

#endif
