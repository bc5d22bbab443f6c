/* families/decoder_inputs.h - the inputs of decoder-only models, without and with a cache of keys and values. */
#ifndef WML_FAMILIES_DECODER_INPUTS_H
#define WML_FAMILIES_DECODER_INPUTS_H

#include "families/family.h"

enum { WML_MAX_CACHED = 512 };

struct wml_decoder {
    struct wml_value *ids, *mask, *positions; /* [batch, length], mask [batch, cached]; positions NULL: 0, 1, ... */
    struct wml_value *additive;               /* added to scores: [batch, 1, length, keys] */
    struct wml_value *key[WML_MAX_CACHED], *value[WML_MAX_CACHED]; /* the cache: [batch, kv heads, cached, size]; NULL: none */
    int64_t rows; /* positions there can be */
    size_t layers;
};

/* input_ids, attention_mask, position_ids. position_ids is left out when --input-specs names inputs but not that one. */
void wml_decoder_inputs(struct wml_family_job *j, struct wml_decoder *d, int64_t vocab, int64_t positions);
/* The same with past_<i>_key and past_<i>_value, of `cached` slots each: new keys come in on the right, as many fall out on
 * the left; the mask speaks of the slots afterwards. */
void wml_decoder_cached_inputs(struct wml_family_job *j, struct wml_decoder *d, int64_t vocab, int64_t new_tokens, int64_t cached,
                               size_t layers, int64_t kv_heads, int64_t size);
/* Keys or values [batch, kv heads, length, size] behind those of the cache; what is new becomes the output present_<i>_<what>. */
struct wml_value *wml_decoder_append(struct wml_family_job *j, const struct wml_decoder *d, size_t layer, bool value, struct wml_value *x);

#endif
