/* tok/vocab.c - an open-addressing table of tokens, and an array by id. */
#include "tok/vocab.h"

#include "base/arena.h"
#include "base/hash.h"

bool wml_tok_vocab_init(struct wml_tok_vocab *v, size_t n, struct wml_err *err)
{
    size_t slots = 16;
    if (n > UINT32_MAX / 4) return wml_fail(err, WML_E_FORMAT, "a vocabulary of %zu tokens is too large", n);
    while (slots < 2 * n) slots *= 2;
    *v = (struct wml_tok_vocab){.cap = n, .n_slots = slots};
    v->token = wml_big_alloc(WML_MAX(n, 1) * sizeof *v->token, err);
    v->slot = wml_big_alloc(slots * sizeof *v->slot, err);
    if (!v->token || !v->slot) return false;
    memset(v->slot, 0, slots * sizeof *v->slot);
    return true;
}

void wml_tok_vocab_release(struct wml_tok_vocab *v)
{
    free(v->token);
    free(v->slot);
    free(v->by_id);
    *v = (struct wml_tok_vocab){0};
}

/* Its slot, or the empty one where it would be. */
static size_t slot_of(const struct wml_tok_vocab *v, struct wml_str text, uint32_t hash)
{
    size_t at = hash & (v->n_slots - 1);
    for (; v->slot[at].index; at = (at + 1) & (v->n_slots - 1)) {
        if (v->slot[at].hash != hash) continue;
        const struct wml_tok_token *t = &v->token[v->slot[at].index - 1];
        if (t->text.len == text.len && memcmp(t->text.ptr, text.ptr, text.len) == 0) break;
    }
    return at;
}

void wml_tok_vocab_add(struct wml_tok_vocab *v, struct wml_str text, uint32_t id)
{
    uint32_t hash = (uint32_t)wml_hash_str(text);
    size_t at = slot_of(v, text, hash);
    if (v->slot[at].index) {
        v->token[v->slot[at].index - 1].id = id;
        return;
    }
    v->token[v->len++] = (struct wml_tok_token){text, id};
    v->slot[at] = (struct wml_tok_vocab_slot){hash, (uint32_t)v->len};
    v->longest = WML_MAX(v->longest, text.len);
}

bool wml_tok_vocab_finish(struct wml_tok_vocab *v, struct wml_err *err)
{
    for (size_t i = 0; i < v->len; i++) v->n_ids = WML_MAX(v->n_ids, (size_t)v->token[i].id + 1);
    v->by_id = wml_big_alloc(WML_MAX(v->n_ids, 1) * sizeof *v->by_id, err);
    if (!v->by_id) return false;
    memset(v->by_id, 0, WML_MAX(v->n_ids, 1) * sizeof *v->by_id);
    for (size_t i = 0; i < v->len; i++) v->by_id[v->token[i].id] = (uint32_t)i + 1;
    return true;
}

int64_t wml_tok_vocab_id(const struct wml_tok_vocab *v, struct wml_str text)
{
    if (!v->n_slots) return -1;
    uint32_t i = v->slot[slot_of(v, text, (uint32_t)wml_hash_str(text))].index;
    return i ? (int64_t)v->token[i - 1].id : -1;
}

void wml_tok_vocab_ids(const struct wml_tok_vocab *v, const struct wml_str *text, size_t n, int64_t *id)
{
    uint32_t hash[WML_TOK_BATCH];
    for (size_t i = 0; i < n; i++) {
        hash[i] = (uint32_t)wml_hash_str(text[i]);
        WML_PREFETCH(&v->slot[hash[i] & (v->n_slots - 1)]);
    }
    for (size_t i = 0; i < n; i++) {
        uint32_t index = v->slot[hash[i] & (v->n_slots - 1)].index;
        if (index) WML_PREFETCH(&v->token[index - 1]);
    }
    for (size_t i = 0; i < n; i++) {
        uint32_t index = v->slot[hash[i] & (v->n_slots - 1)].index;
        if (index) WML_PREFETCH(v->token[index - 1].text.ptr);
    }
    for (size_t i = 0; i < n; i++) {
        uint32_t index = v->slot[slot_of(v, text[i], hash[i])].index;
        id[i] = index ? (int64_t)v->token[index - 1].id : -1;
    }
}

struct wml_str wml_tok_vocab_text(const struct wml_tok_vocab *v, int64_t id)
{
    if (id < 0 || (uint64_t)id >= v->n_ids || !v->by_id[id]) return WML_NO_STR;
    return v->token[v->by_id[id] - 1].text;
}
