/* families/seq2seq.h - what a decoder gets that reads an encoder's states: a whole text at once, or one token of it with a
 * cache of the keys and values before. The host keeps the cache: a step gives back the token's own, present_<i>_key/value. */
#ifndef WML_FAMILIES_SEQ2SEQ_H
#define WML_FAMILIES_SEQ2SEQ_H

#include "families/family.h"

enum { WML_MAX_STEP_LAYERS = 256 };

struct wml_seq2seq {
    struct wml_value *ids;         /* [batch, length]; length 1 in a step */
    struct wml_value *states;      /* of the encoder: [batch, source, width] */
    struct wml_value *source_mask; /* added to scores of the states; NULL: all are seen */
    struct wml_value *mask;        /* added to scores of the tokens: [batch, 1, length, keys] */
    /* Of a step. */
    bool step;
    struct wml_value *place;   /* int64 [1]: the slot and position of the token; NULL: the cache slides, the token is last */
    struct wml_value *indices; /* of the slot in every cache: int64 [batch, heads, 1, 3] */
    struct wml_value *key[WML_MAX_STEP_LAYERS], *value[WML_MAX_STEP_LAYERS]; /* [batch, heads, slots, size]; the token's own, once appended */
    size_t layers;
    int64_t slots; /* -1: open */
};

struct wml_step_sizes {
    int64_t vocab, source, width; /* source, width: of the encoder's states */
    int64_t slots;  /* unless the user says max_cache_len */
    int64_t places; /* positions there are: no more slots than that; 0: any number */
    int64_t layers, heads, size;
    bool source_mask; /* the step has an attention_mask over the states */
    bool slides;      /* every step moves the cache one slot to the left */
    bool trust_mask;  /* decoder_attention_mask hides what comes behind the token: no more is done about it */
};

/* Inputs of a step: decoder_input_ids, encoder_hidden_states, attention_mask, decoder_attention_mask, cache_position,
 * past_<i>_key and past_<i>_value. */
void wml_step_inputs(struct wml_family_job *j, struct wml_seq2seq *s, const struct wml_step_sizes *n);
/* x [batch, 1, heads * size] into the cache of keys or values of a layer: [batch, heads, slots, size]. */
struct wml_value *wml_step_append(struct wml_nn *b, struct wml_seq2seq *s, size_t layer, bool value, struct wml_value *x, int64_t heads);
/* Heads of one token, without a Transpose: [batch, 1, heads * size] -> [batch, heads, 1, size], and back. */
struct wml_value *wml_step_split(struct wml_nn *b, struct wml_value *x, int64_t heads);
struct wml_value *wml_step_join(struct wml_nn *b, struct wml_value *x);
/* logits, and present_<i>_key and present_<i>_value of a step. */
void wml_step_outputs(struct wml_nn *b, const struct wml_seq2seq *s, struct wml_value *logits);

/* input_ids [batch, length], in samples low .. high - 1, and attention_mask as numbers that are added to scores. */
struct wml_value *wml_source_inputs(struct wml_family_job *j, int64_t low, int64_t high, int64_t positions, struct wml_value **additive);

#endif
