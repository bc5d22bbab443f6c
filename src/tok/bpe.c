/* tok/bpe.c - byte pair encoding (Sennrich et al. 2016): a word's characters, joined pair by pair, the pair of the lowest rank
 * first and the leftmost of equal ones. "Byte level" is the pre-tokenizer's business; here it is characters. Dropout is for
 * training, so it is left out. */
#include "tok/internal.h"

struct merge { /* b NONE: an empty slot */
    uint32_t a, b, rank, id;
};

enum { DIRECT = 0x180 };
static const uint32_t NONE = UINT32_MAX;

struct bpe {
    struct merge *merge;
    size_t n_slots;
    struct wml_str unknown, prefix, suffix; /* absent: none */
    int64_t unknown_id, byte_id[256];
    int64_t direct[DIRECT]; /* ids of the first characters, where nothing is added to them */
    bool fuse, bytes, whole_first;
};

static size_t slot_of(const struct bpe *m, uint32_t a, uint32_t b)
{
    uint64_t h = ((uint64_t)a << 32 | b) * 0x9e3779b97f4a7c15u;
    size_t at = (size_t)(h >> 20) & (m->n_slots - 1);
    while (m->merge[at].b != NONE && (m->merge[at].a != a || m->merge[at].b != b)) at = (at + 1) & (m->n_slots - 1);
    return at;
}

static const struct merge *merge_of(const struct bpe *m, uint32_t a, uint32_t b)
{
    const struct merge *g = &m->merge[slot_of(m, a, b)];
    return g->b == NONE ? NULL : g;
}

static bool bad_merge(size_t i, const char *why, struct wml_str text, struct wml_err *err)
{
    return wml_fail(err, WML_E_FORMAT, "BPE: merge %zu: %s '%.*s'", i + 1, why, WML_ARG(text));
}

/* "a b" or ["a", "b"]. */
static bool parts_of(const struct wml_json_val *v, size_t i, struct wml_str *a, struct wml_str *b, struct wml_err *err)
{
    struct wml_str line = wml_json_str(v);
    size_t blank = line.ptr ? wml_str_find(line, ' ') : SIZE_MAX;
    if (line.ptr && (blank == SIZE_MAX || blank != wml_str_rfind(line, ' ')))
        return bad_merge(i, "it is not two tokens:", line, err);
    *a = line.ptr ? wml_str_sub(line, 0, blank) : wml_json_str(wml_json_at(v, 0));
    *b = line.ptr ? wml_str_sub(line, blank + 1, line.len) : wml_json_str(wml_json_at(v, 1));
    if (!a->ptr || !b->ptr || (!line.ptr && wml_json_len(v) != 2)) return bad_merge(i, "it is not two tokens", WML_STR(""), err);
    return true;
}

struct batch { /* merges whose tokens are looked up together */
    struct wml_str text[WML_TOK_BATCH]; /* three of each merge: left, right, both */
    int64_t id[WML_TOK_BATCH];
    size_t n, first; /* texts, and the rank of the first merge */
    struct wml_buf joined;
    size_t end[WML_TOK_BATCH / 3];
};

static bool add_batch(struct wml_tok *t, struct bpe *m, struct batch *b, struct wml_err *err)
{
    for (size_t i = 0, at = 0; i < b->n; at = b->end[i / 3], i += 3)
        b->text[i + 2] = (struct wml_str){b->joined.ptr + at, b->end[i / 3] - at};
    wml_tok_vocab_ids(&t->vocab, b->text, b->n, b->id);
    for (size_t i = 0; i < b->n; i++)
        if (b->id[i] < 0) return bad_merge(b->first + i / 3, "the vocabulary has no", b->text[i], err);
    for (size_t i = 0; i < b->n; i += 3) {
        struct merge g = {(uint32_t)b->id[i], (uint32_t)b->id[i + 1], (uint32_t)(b->first + i / 3), (uint32_t)b->id[i + 2]};
        m->merge[slot_of(m, g.a, g.b)] = g;
    }
    b->first += b->n / 3;
    b->n = 0;
    wml_buf_clear(&b->joined);
    return true;
}

static bool add_merge(struct wml_tok *t, struct bpe *m, struct batch *b, const struct wml_json_val *v, struct wml_err *err)
{
    struct wml_str *left = &b->text[b->n], *right = &b->text[b->n + 1];
    size_t rank = b->first + b->n / 3;
    if (!parts_of(v, rank, left, right, err)) return false;
    if (right->len < m->prefix.len) return bad_merge(rank, "without the prefix:", *right, err);
    wml_buf_str(&b->joined, *left);
    wml_buf_str(&b->joined, wml_str_sub(*right, m->prefix.len, right->len));
    b->end[b->n / 3] = b->joined.len;
    b->n += 3;
    return b->n < WML_TOK_BATCH || add_batch(t, m, b, err);
}

static bool load_merges(struct wml_tok *t, struct bpe *m, const struct wml_json_val *list, struct wml_err *err)
{
    struct wml_json_iter it = {0};
    struct wml_str key;
    const struct wml_json_val *v;
    struct batch b = {0};
    size_t n = wml_json_len(list);
    bool ok = true;
    if (!wml_json_is_array(list)) return wml_tok_missing("the model BPE", "merges", err);
    for (m->n_slots = 16; m->n_slots < 2 * n;) m->n_slots *= 2;
    m->merge = wml_big_alloc(m->n_slots * sizeof *m->merge, err);
    if (!m->merge) return false;
    memset(m->merge, 0xff, m->n_slots * sizeof *m->merge);
    while (ok && wml_json_next(list, &it, &key, &v))
        if (!wml_str_starts(wml_json_str(v), "#version")) ok = add_merge(t, m, &b, v, err); /* the head line of merges.txt */
    ok = ok && add_batch(t, m, &b, err);
    wml_buf_release(&b.joined);
    return ok;
}

static struct wml_str optional(const struct wml_json_val *v, const char *member)
{
    struct wml_str s = wml_json_get_str(v, member);
    return s.len ? s : WML_NO_STR; /* adding nothing is no adding */
}

static void load_ids(struct wml_tok *t, struct bpe *m)
{
    char text[8];
    for (unsigned i = 0; i < 256; i++) {
        snprintf(text, sizeof text, "<0x%02X>", i);
        m->byte_id[i] = wml_tok_vocab_id(&t->vocab, wml_str(text));
    }
    for (uint32_t i = 0; i < DIRECT; i++) m->direct[i] = wml_tok_vocab_id(&t->vocab, (struct wml_str){text, wml_utf8_write(i, text)});
}

static bool load(struct wml_tok *t, const struct wml_json_val *v, struct wml_err *err)
{
    struct bpe *m = t->model = wml_xcalloc(1, sizeof *m);
    m->unknown = wml_json_get_str(v, "unk_token");
    m->prefix = optional(v, "continuing_subword_prefix");
    m->suffix = optional(v, "end_of_word_suffix");
    m->fuse = wml_json_get_bool(v, "fuse_unk", false);
    m->bytes = wml_json_get_bool(v, "byte_fallback", false);
    m->whole_first = wml_json_get_bool(v, "ignore_merges", false);
    if (!wml_tok_load_vocab(t, wml_json_get(v, "vocab"), err)) return false;
    m->unknown_id = t->role[WML_TOK_UNK] = m->unknown.ptr ? wml_tok_vocab_id(&t->vocab, m->unknown) : -1;
    load_ids(t, m);
    return load_merges(t, m, wml_json_get(v, "merges"), err);
}

static void add_symbol(struct wml_tok_work *w, int64_t id)
{
    int32_t n = (int32_t)w->symbol.len;
    if (n) w->symbol.at[n - 1].next = n;
    WML_PUSH(&w->symbol, ((struct wml_tok_symbol){.id = (uint32_t)id, .prev = n - 1, .next = -1, .live = true}));
}

/* The character with what the model adds to it. */
static struct wml_str dressed(const struct bpe *m, struct wml_tok_work *w, struct wml_str one, bool first, bool last)
{
    if ((first || !m->prefix.ptr) && (!last || !m->suffix.ptr)) return one;
    wml_buf_clear(&w->word);
    if (!first) wml_buf_str(&w->word, m->prefix);
    wml_buf_str(&w->word, one);
    if (last) wml_buf_str(&w->word, m->suffix);
    return wml_buf_view(&w->word);
}

static bool add_bytes(const struct bpe *m, struct wml_tok_work *w, struct wml_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (m->byte_id[(unsigned char)s.ptr[i]] < 0) return false;
    for (size_t i = 0; i < s.len; i++) add_symbol(w, m->byte_id[(unsigned char)s.ptr[i]]);
    return true;
}

/* The characters as symbols. One unknown token waits, to take those that follow where they are fused; that bytes do not end
 * the wait, and a character without any token is left out, is how the `tokenizers` library does it. */
static bool add_symbols(const struct wml_tok *t, const struct bpe *m, struct wml_tok_work *w, struct wml_str word,
                        struct wml_err *err)
{
    bool waits = false, plain = !m->prefix.ptr && !m->suffix.ptr;
    w->symbol.len = 0;
    for (size_t at = 0, next; at < word.len; at = next) {
        const char *p = word.ptr + at;
        uint32_t ch = wml_utf8_next(&p);
        next = (size_t)(p - word.ptr);
        struct wml_str s = dressed(m, w, wml_str_sub(word, at, next), at == 0, next == word.len);
        int64_t id = plain && ch < DIRECT ? m->direct[ch] : wml_tok_vocab_id(&t->vocab, s);
        if (id >= 0) {
            if (waits) add_symbol(w, m->unknown_id);
            waits = false;
            add_symbol(w, id);
        } else if (m->bytes && add_bytes(m, w, s)) {
            continue;
        } else if (m->unknown.ptr) {
            if (m->unknown_id < 0) {
                wml_fail(err, WML_E_UNSUPPORTED, "'%.*s' is not in the vocabulary, and neither is '%.*s' for unknown characters",
                         WML_ARG(s), WML_ARG(m->unknown));
                return wml_hint(err, "the tokenizer's files do not belong together");
            }
            if (waits && !m->fuse) add_symbol(w, m->unknown_id);
            waits = true;
        }
    }
    if (waits) add_symbol(w, m->unknown_id);
    return true;
}

static bool before(struct wml_tok_merge a, struct wml_tok_merge b)
{
    return a.rank != b.rank ? a.rank < b.rank : a.pos < b.pos;
}

static void heap_push(struct wml_tok_work *w, struct wml_tok_merge g)
{
    WML_PUSH(&w->merge, g);
    size_t at = w->merge.len - 1;
    for (; at > 0 && before(g, w->merge.at[(at - 1) / 2]); at = (at - 1) / 2) w->merge.at[at] = w->merge.at[(at - 1) / 2];
    w->merge.at[at] = g;
}

static struct wml_tok_merge heap_pop(struct wml_tok_work *w)
{
    struct wml_tok_merge top = w->merge.at[0], last = w->merge.at[--w->merge.len];
    size_t at = 0, n = w->merge.len;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= n) break;
        if (child + 1 < n && before(w->merge.at[child + 1], w->merge.at[child])) child++;
        if (!before(w->merge.at[child], last)) break;
        w->merge.at[at] = w->merge.at[child];
        at = child;
    }
    if (n) w->merge.at[at] = last;
    return top;
}

static void offer(const struct bpe *m, struct wml_tok_work *w, int32_t pos)
{
    const struct wml_tok_symbol *s = &w->symbol.at[pos];
    if (s->next < 0) return;
    const struct merge *g = merge_of(m, s->id, w->symbol.at[s->next].id);
    if (g) heap_push(w, (struct wml_tok_merge){g->rank, (uint32_t)pos, g->id});
}

static void merge_all(const struct bpe *m, struct wml_tok_work *w)
{
    w->merge.len = 0;
    for (size_t i = 0; i < w->symbol.len; i++) offer(m, w, (int32_t)i);
    while (w->merge.len) {
        struct wml_tok_merge top = heap_pop(w);
        struct wml_tok_symbol *left = &w->symbol.at[top.pos];
        if (!left->live || left->next < 0) continue;
        struct wml_tok_symbol *right = &w->symbol.at[left->next];
        const struct merge *g = merge_of(m, left->id, right->id);
        if (!g || g->id != top.id) continue; /* one of the two was joined otherwise since */
        left->id = g->id;
        left->next = right->next;
        right->live = false;
        if (right->next >= 0) w->symbol.at[right->next].prev = (int32_t)top.pos;
        if (left->prev >= 0) offer(m, w, left->prev);
        offer(m, w, (int32_t)top.pos);
    }
}

static bool encode(const struct wml_tok *t, struct wml_tok_work *w, struct wml_str word, struct wml_tok_list *out,
                   struct wml_err *err)
{
    const struct bpe *m = t->model;
    int64_t whole = m->whole_first ? wml_tok_vocab_id(&t->vocab, word) : -1;
    if (whole >= 0) {
        WML_PUSH(&out->v, whole);
        return true;
    }
    if (!add_symbols(t, m, w, word, err)) return false;
    merge_all(m, w);
    for (size_t i = 0; i < w->symbol.len; i++)
        if (w->symbol.at[i].live) WML_PUSH(&out->v, w->symbol.at[i].id);
    return true;
}

static void release(struct wml_tok *t)
{
    struct bpe *m = t->model;
    if (m) free(m->merge);
    free(m);
}

const struct wml_tok_algo wml_tok_algo_bpe = {.name = "BPE", .load = load, .encode = encode, .free = release};
