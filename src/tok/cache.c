/* tok/cache.c - words seen and their ids. Text repeats itself: most words of a line were met before. When the table or its
 * texts are full everything is forgotten, which costs less than keeping order. */
#include "tok/internal.h"

#include "base/hash.h"

enum { SLOTS = 1 << 15, MOST = SLOTS * 3 / 4, MAX_WORD = 128, MAX_BYTES = 2 << 20 };

struct word {
    uint64_t hash;
    uint32_t at, first; /* in bytes and ids; n_ids 0: an empty slot */
    uint16_t len, n_ids;
};

struct wml_tok_cache {
    struct word slot[SLOTS];
    size_t n;
    struct wml_buf bytes;
    WML_VEC(int64_t) id;
};

struct wml_tok_cache *wml_tok_cache_new(void)
{
    return wml_xcalloc(1, sizeof(struct wml_tok_cache));
}

void wml_tok_cache_free(struct wml_tok_cache *c)
{
    if (!c) return;
    wml_buf_release(&c->bytes);
    WML_VEC_RELEASE(&c->id);
    free(c);
}

void wml_tok_cache_clear(struct wml_tok_cache *c)
{
    memset(c->slot, 0, sizeof c->slot);
    wml_buf_clear(&c->bytes);
    c->id.len = c->n = 0;
}

static struct word *slot_of(struct wml_tok_cache *c, struct wml_str word, uint64_t hash)
{
    size_t at = hash & (SLOTS - 1);
    for (; c->slot[at].n_ids; at = (at + 1) & (SLOTS - 1)) {
        const struct word *w = &c->slot[at];
        if (w->hash == hash && w->len == word.len && memcmp(c->bytes.ptr + w->at, word.ptr, word.len) == 0) break;
    }
    return &c->slot[at];
}

bool wml_tok_cache_get(struct wml_tok_cache *c, struct wml_str word, struct wml_tok_list *out)
{
    if (word.len > MAX_WORD) return false;
    const struct word *w = slot_of(c, word, wml_hash_str(word));
    for (size_t i = 0; i < w->n_ids; i++) WML_PUSH(&out->v, c->id.at[w->first + i]);
    return w->n_ids > 0;
}

void wml_tok_cache_put(struct wml_tok_cache *c, struct wml_str word, const int64_t *id, size_t n)
{
    uint64_t hash = wml_hash_str(word);
    if (word.len > MAX_WORD || n == 0 || n > UINT16_MAX) return;
    if (c->n >= MOST || c->bytes.len > MAX_BYTES) wml_tok_cache_clear(c);
    struct word *w = slot_of(c, word, hash);
    *w = (struct word){hash, (uint32_t)c->bytes.len, (uint32_t)c->id.len, (uint16_t)word.len, (uint16_t)n};
    wml_buf_str(&c->bytes, word);
    for (size_t i = 0; i < n; i++) WML_PUSH(&c->id, id[i]);
    c->n++;
}
