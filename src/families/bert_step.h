/* families/bert_step.h - BERT's layers as a decoder that reads an encoder's states, one token at a time with a cache: between
 * attention and the feed-forward part every layer has "crossattention". */
#ifndef WML_FAMILIES_BERT_STEP_H
#define WML_FAMILIES_BERT_STEP_H

#include "families/bert_body.h"
#include "families/seq2seq.h"

/* states: of the encoder, [batch, source, width]; trust_mask: see seq2seq.h. */
void wml_bert_step_inputs(struct wml_family_job *j, const struct wml_bert *p, struct wml_seq2seq *s, int64_t source, int64_t width,
                          bool trust_mask);
/* The bare model, in its scope: [batch, 1, hidden]. */
struct wml_value *wml_bert_step(struct wml_nn *b, const struct wml_bert *p, struct wml_seq2seq *s);
/* "cls": scores of the vocabulary. words: the table, from the root, that is also the weight of the last layer, where the
 * config ties them or the checkpoint has no other. */
struct wml_value *wml_bert_step_predict(struct wml_family_job *j, const struct wml_bert *p, struct wml_value *x, const char *words);
/* RoBERTa's "lm_head" for the same. */
struct wml_value *wml_bert_step_lm_head(struct wml_family_job *j, const struct wml_bert *p, struct wml_value *x, const char *words);

#endif
