/* families/seq2seq.c - see seq2seq.h. */
#include "families/seq2seq.h"

struct wml_value *wml_source_inputs(struct wml_family_job *j, int64_t low, int64_t high, int64_t positions, struct wml_value **additive)
{
    const int64_t length = wml_family_length(j, positions);
    struct wml_value *ids = wml_family_input(j, "input_ids", WML_I32, WML_DIMS(j->batch, length), (double)low, (double)high);
    struct wml_value *mask = wml_family_input(j, "attention_mask", WML_I32, WML_DIMS(j->batch, length), 0, 2);
    *additive = wml_nn_padding_mask(j->nn, mask);
    return ids;
}

/* [batch, heads, 1, 3]: batch, head, place. What is known of it is a constant. */
static struct wml_value *slot_indices(struct wml_nn *b, struct wml_value *ids, struct wml_value *place, int64_t heads)
{
    const int64_t batch = wml_nn_axis(ids, 0).size, known = batch >= 0 ? batch : 1;
    int64_t *at = wml_nn_room(b, "slots of the cache", sizeof *at, WML_DIMS(known, heads, 3));
    if (!at) return NULL;
    for (int64_t i = 0; i < known * heads; i++) at[3 * i] = i / heads, at[3 * i + 1] = i % heads;
    struct wml_value *all = wml_nn_const(b, "slots", WML_I64, WML_DIMS(known, heads, 1, 3), at);
    if (batch < 0) {
        struct wml_value *rows = wml_nn_unsqueeze(b, wml_nn_positions(b, ids, 0, 0), WML_DIMS(1, 2, 3));
        all = wml_nn_add(b, all, wml_nn_mul(b, rows, wml_nn_ints(b, WML_DIMS(1, 0, 0))));
    }
    return wml_nn_add(b, all, wml_nn_mul(b, place, wml_nn_ints(b, WML_DIMS(0, 0, 1))));
}

/* Slots behind the token are of no time that was, whatever the mask says of them. */
static struct wml_value *until_token(struct wml_nn *b, struct wml_value *mask, struct wml_value *place, int64_t slots)
{
    struct wml_value *past = wml_nn_compare(b, "LessOrEqual", wml_nn_positions(b, mask, 1, slots), place);
    return wml_nn_mul(b, wml_nn_cast(b, mask, WML_F32), wml_nn_cast(b, past, WML_F32));
}

static void cache_inputs(struct wml_family_job *j, struct wml_seq2seq *s, const struct wml_step_sizes *n, int64_t slots)
{
    for (size_t i = 0; i < s->layers && wml_nn_ok(j->nn); i++) {
        struct wml_arena *a = &j->nn->m->arena;
        const char *key = wml_arena_fmt(a, "past_%zu_key", i).ptr, *value = wml_arena_fmt(a, "past_%zu_value", i).ptr;
        s->key[i] = wml_family_input(j, key, WML_F32, WML_DIMS(j->batch, n->heads, slots, n->size), 0, 1);
        s->value[i] = wml_family_input(j, value, WML_F32, WML_DIMS(j->batch, n->heads, slots, n->size), 0, 1);
    }
}

void wml_step_inputs(struct wml_family_job *j, struct wml_seq2seq *s, const struct wml_step_sizes *n)
{
    struct wml_nn *b = j->nn;
    const int64_t slots = j->size[WML_SIZE_CACHE] ? j->size[WML_SIZE_CACHE] : n->slots;
    *s = (struct wml_seq2seq){.step = true, .layers = (size_t)n->layers};
    if (n->layers > WML_MAX_STEP_LAYERS) {
        wml_nn_fail(b, WML_E_UNSUPPORTED, "a decoder of %lld layers with a cache", (long long)n->layers);
        return;
    }
    s->ids = wml_family_input(j, "decoder_input_ids", WML_I32, WML_DIMS(j->batch, 1), 0, (double)n->vocab);
    s->states = wml_family_input(j, "encoder_hidden_states", WML_F32, WML_DIMS(j->batch, n->source, n->width), 0, 0);
    if (n->source_mask)
        s->source_mask = wml_nn_padding_mask(b, wml_family_input(j, "attention_mask", WML_I64, WML_DIMS(j->batch, n->source), 1, 2));
    struct wml_value *mask = wml_family_input(j, "decoder_attention_mask", WML_I64, WML_DIMS(j->batch, slots), 1, 2);
    s->slots = n->slides ? wml_nn_size(b, mask, 1, "a cache that slides") : wml_nn_axis(mask, 1).size;
    if (n->places && s->slots > n->places) {
        wml_nn_fail(b, WML_E_UNSUPPORTED, "a cache of %lld tokens, but the model has %lld positions", (long long)s->slots, (long long)n->places);
        wml_nn_hint(b, "give a smaller max_cache_len with --shape-config");
    }
    const double low = (double)(slots > 5 ? 5 : slots - 1);
    if (!n->slides) s->place = wml_family_input(j, "cache_position", WML_I64, WML_DIMS(1), low, low + 1);
    cache_inputs(j, s, n, slots);
    if (wml_nn_size(b, s->ids, 1, "decoder_input_ids") != 1) wml_nn_fail(b, WML_E_USAGE, "decoder_input_ids of a step with a cache is one token");
    if (s->place && !n->trust_mask) mask = until_token(b, mask, s->place, n->places);
    s->mask = wml_nn_padding_mask(b, mask);
    if (s->place && s->layers) s->indices = slot_indices(b, s->ids, s->place, n->heads);
}

struct wml_value *wml_step_split(struct wml_nn *b, struct wml_value *x, int64_t heads)
{
    if (b->failed || !x) return NULL;
    const int64_t width = wml_nn_size(b, x, -1, "the width of attention");
    if (heads < 1 || width % heads)
        return wml_nn_fail(b, WML_E_FORMAT, "config.json: a width of %lld does not divide into %lld attention heads", (long long)width, (long long)heads);
    return wml_nn_reshape(b, x, WML_DIMS(0, heads, 1, width / heads));
}

struct wml_value *wml_step_join(struct wml_nn *b, struct wml_value *x)
{
    if (b->failed || !x) return NULL;
    return wml_nn_reshape(b, x, WML_DIMS(0, 1, wml_nn_size(b, x, 1, "the number of heads") * wml_nn_size(b, x, 3, "the size of a head")));
}

struct wml_value *wml_step_append(struct wml_nn *b, struct wml_seq2seq *s, size_t layer, bool value, struct wml_value *x, int64_t heads)
{
    struct wml_value **cache = value ? &s->value[layer] : &s->key[layer], *past = *cache;
    *cache = x = wml_step_split(b, x, heads);
    if (b->failed || !past || !x) return NULL;
    if (!s->place) return wml_nn_concat(b, 2, WML_VALUES(wml_nn_slice(b, past, 2, 1, INT64_MAX), x));
    const struct wml_nn_shape shape = wml_nn_shape(past);
    return wml_nn_out(b, wml_nn_node(b, "", "ScatterND", WML_VALUES(past, s->indices, x)), WML_F32, &shape);
}

void wml_step_outputs(struct wml_nn *b, const struct wml_seq2seq *s, struct wml_value *logits)
{
    wml_nn_output(b, "logits", logits);
    for (size_t i = 0; s->step && i < s->layers && wml_nn_ok(b); i++) {
        wml_nn_output(b, wml_arena_fmt(&b->m->arena, "present_%zu_key", i).ptr, s->key[i]);
        wml_nn_output(b, wml_arena_fmt(&b->m->arena, "present_%zu_value", i).ptr, s->value[i]);
    }
}
