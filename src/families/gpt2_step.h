/* families/gpt2_step.h - GPT-2 as a decoder that reads an encoder's states, one token at a time with a cache: every block has
 * "crossattention" between attention and the feed-forward part. */
#ifndef WML_FAMILIES_GPT2_STEP_H
#define WML_FAMILIES_GPT2_STEP_H

#include "families/seq2seq.h"

/* For j->cfg; states: of the encoder, [batch, source, width]. Gives the width that the decoder's attention takes. */
int64_t wml_gpt2_step_inputs(struct wml_family_job *j, struct wml_seq2seq *s, int64_t source, int64_t width);
/* The model with its head at attribute `at` of the root: logits. */
struct wml_value *wml_gpt2_step(struct wml_family_job *j, const char *at, struct wml_seq2seq *s);

#endif
