/* families/decoder_inputs.c - see decoder_inputs.h. */
#include "families/decoder_inputs.h"

static bool named(const struct wml_family_job *j, const char *name)
{
    for (size_t i = 0; i < j->n_given; i++)
        if (wml_str_is(j->given[i].name, name) && j->given[i].has_rank) return true;
    return false;
}

void wml_decoder_inputs(struct wml_family_job *j, struct wml_decoder *d, int64_t vocab, int64_t positions)
{
    const int64_t length = wml_family_length(j, positions);
    d->ids = wml_family_input(j, "input_ids", WML_I32, WML_DIMS(j->batch, length), 0, (double)vocab);
    d->mask = wml_family_input(j, "attention_mask", WML_I32, WML_DIMS(j->batch, length), 0, 2);
    const struct wml_axis n = wml_nn_axis(d->ids, 1);
    d->rows = n.size >= 0 ? n.size : positions;
    if (!named(j, "input_ids") || named(j, "position_ids"))
        d->positions = wml_family_input(j, "position_ids", WML_I32, WML_DIMS(j->batch, length), 0, (double)d->rows);
    d->additive = wml_nn_causal_mask(j->nn, d->ids, d->mask);
}

/* Query i sits in slot cached - length + i and sees the slots up to there: [1, 1, length, cached] of 1 and 0. */
static struct wml_value *visible(struct wml_nn *b, int64_t length, int64_t cached)
{
    const int64_t dims[4] = {1, 1, length, cached};
    float *see = wml_nn_room(b, "mask of a cache", sizeof *see, WML_DIMS(length, cached));
    if (!see) return NULL;
    for (int64_t i = 0; i < length; i++)
        for (int64_t k = 0; k <= cached - length + i; k++) see[i * cached + k] = 1;
    return wml_nn_const(b, "visible", WML_F32, 4, dims, see);
}

void wml_decoder_cached_inputs(struct wml_family_job *j, struct wml_decoder *d, int64_t vocab, int64_t new_tokens, int64_t cached,
                               size_t layers, int64_t kv_heads, int64_t size)
{
    struct wml_nn *b = j->nn;
    d->layers = layers;
    d->rows = cached;
    if (layers > WML_MAX_CACHED || new_tokens > cached) {
        wml_nn_fail(b, WML_E_UNSUPPORTED, "%lld tokens at once, %zu layers, a cache of %lld", (long long)new_tokens, layers, (long long)cached);
        return;
    }
    d->ids = wml_family_input(j, "input_ids", WML_I32, WML_DIMS(j->batch, new_tokens), 0, (double)vocab);
    d->mask = wml_family_input(j, "attention_mask", WML_I32, WML_DIMS(j->batch, cached), 1, 2);
    d->positions = wml_family_input(j, "position_ids", WML_I32, WML_DIMS(j->batch, new_tokens), 0, (double)cached);
    for (size_t i = 0; i < layers && wml_nn_ok(b); i++) {
        const char *key = wml_arena_fmt(&b->m->arena, "past_%zu_key", i).ptr, *value = wml_arena_fmt(&b->m->arena, "past_%zu_value", i).ptr;
        d->key[i] = wml_family_input(j, key, WML_F32, WML_DIMS(j->batch, kv_heads, cached, size), 0, 1);
        d->value[i] = wml_family_input(j, value, WML_F32, WML_DIMS(j->batch, kv_heads, cached, size), 0, 1);
    }
    static const char *const what = "the tokens of a step and the slots of its cache";
    const int64_t n = wml_nn_size(b, d->ids, 1, what), slots = wml_nn_size(b, d->mask, 1, what);
    struct wml_value *see = wml_nn_mul(b, visible(b, n, slots), wml_nn_cast(b, wml_nn_unsqueeze(b, d->mask, WML_DIMS(1, 2)), WML_F32));
    d->additive = wml_nn_scale(b, wml_nn_sub(b, wml_nn_float(b, 1), see), WML_NN_MASKED);
}

struct wml_value *wml_decoder_append(struct wml_family_job *j, const struct wml_decoder *d, size_t layer, bool value, struct wml_value *x)
{
    struct wml_nn *b = j->nn;
    struct wml_value *past = !d->layers ? NULL : value ? d->value[layer] : d->key[layer];
    if (b->failed || !past) return x;
    const int64_t n = wml_nn_size(b, x, 2, "the tokens of a step");
    return wml_nn_concat(b, 2, WML_VALUES(wml_nn_slice(b, past, 2, n, INT64_MAX), x));
}
