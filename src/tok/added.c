/* tok/added.c - added tokens: found in the text as it came, or in its normal form, before anything else may take it apart.
 * The longest one at the leftmost place counts. Ids follow the `tokenizers` library: a token of the model keeps its id, the
 * others come after the model's in the order of the file, whatever number the file gives them. */
#include "tok/internal.h"

struct found {
    const struct wml_tok_added *token;
    size_t from, to;
};

static bool is_word(const struct wml_tok *t, struct wml_tok_work *w, struct wml_str s, size_t at, bool *yes, struct wml_err *err)
{
    size_t start, end;
    struct wml_str one = wml_str_sub(s, at, at + wml_utf8_len(s.ptr[at]));
    if (!wml_regex_find(t->word, w->match, one, 0, &start, &end, err)) return false;
    *yes = start != SIZE_MAX;
    return true;
}

static size_t before(struct wml_str s, size_t at) /* start of the character that ends at `at` > 0 */
{
    do at--;
    while (((unsigned char)s.ptr[at] & 0xc0) == 0x80);
    return at;
}

static bool is_space(const struct wml_tok *t, struct wml_str s, size_t at)
{
    const char *p = s.ptr + at;
    return wml_char_class(t->chars, wml_utf8_next(&p)) & WML_CHAR_SPACE;
}

/* Widens a match over blanks; *ok false: it is inside of a word and may not be. */
static bool judge(const struct wml_tok *t, struct wml_tok_work *w, struct wml_str s, size_t done, struct found *f, bool *ok,
                  struct wml_err *err)
{
    *ok = true;
    if (f->token->single_word) {
        bool word = false;
        if (f->from && !is_word(t, w, s, before(s, f->from), &word, err)) return false;
        if (!word && f->to < s.len && !is_word(t, w, s, f->to, &word, err)) return false;
        *ok = !word;
    }
    if (f->token->lstrip) {
        size_t from = f->from;
        while (from > 0 && is_space(t, s, before(s, from))) from = before(s, from);
        f->from = WML_MAX(from, done);
    }
    if (f->token->rstrip)
        while (f->to < s.len && is_space(t, s, f->to)) f->to += wml_utf8_len(s.ptr[f->to]);
    return true;
}

/* The next string of the trie at or behind *scan; false: none. */
static bool next_of(const struct wml_tok *t, const struct wml_trie *trie, struct wml_str s, size_t *scan, struct found *f)
{
    if (trie->len == 0) return false;
    for (size_t at = *scan; at < s.len; at++) {
        uint32_t node = trie->root[(unsigned char)s.ptr[at]], value = 0;
        size_t end = 0;
        for (size_t i = at + 1; node; i++) {
            if (trie->value[node]) {
                value = trie->value[node];
                end = i;
            }
            if (i == s.len) break;
            node = wml_trie_step(trie, node, (unsigned char)s.ptr[i]);
        }
        if (!value) continue;
        *f = (struct found){&t->added.at[value - 1], at, end};
        *scan = end;
        return true;
    }
    return false;
}

typedef bool part_fn(const struct wml_tok *t, struct wml_tok_work *w, struct wml_str part, size_t head, struct wml_err *err);

static void push_token(struct wml_tok_work *w, int64_t id)
{
    WML_PUSH(&w->piece.v, ((struct wml_tok_piece){.at = (uint32_t)w->text.len, .id = (int32_t)id}));
}

/* Calls `part` for the text between tokens, in order with them. */
static bool walk(const struct wml_tok *t, struct wml_tok_work *w, const struct wml_trie *trie, struct wml_str s, size_t head,
                 part_fn *part, struct wml_err *err)
{
    size_t scan = 0, done = 0;
    struct found f;
    bool ok;
    while (next_of(t, trie, s, &scan, &f)) {
        if (!judge(t, w, s, done, &f, &ok, err)) return false;
        if (!ok) continue;
        if (done < f.from && !part(t, w, wml_str_sub(s, done, f.from), done < head ? WML_MIN(head, f.from) - done : 0, err))
            return false;
        push_token(w, f.token->id);
        done = f.to;
    }
    return done >= s.len || part(t, w, wml_str_sub(s, done, s.len), done < head ? head - done : 0, err);
}

static bool text_part(const struct wml_tok *t, struct wml_tok_work *w, struct wml_str part, size_t head, struct wml_err *err)
{
    (void)t;
    struct wml_tok_piece p = {.at = (uint32_t)w->text.len, .len = (uint32_t)part.len, .head = (uint32_t)head, .id = -1};
    wml_buf_str(&w->text, part);
    if (w->text.failed || w->text.len > WML_TOK_MAX_WORK)
        return wml_fail(err, WML_E_UNSUPPORTED, "normalized text grows beyond %d MiB", WML_TOK_MAX_WORK >> 20);
    WML_PUSH(&w->piece.v, p);
    return true;
}

static bool raw_part(const struct wml_tok *t, struct wml_tok_work *w, struct wml_str part, size_t head, struct wml_err *err)
{
    if (!wml_tok_normalize(t, w, &part, &head, err)) return false;
    return part.len == 0 || walk(t, w, &t->norm_added, part, WML_MIN(head, part.len), text_part, err);
}

bool wml_tok_extract(const struct wml_tok *t, struct wml_tok_work *w, struct wml_str text, struct wml_err *err)
{
    w->piece.v.len = 0;
    wml_buf_clear(&w->text);
    return walk(t, w, &t->raw_added, text, text.len ? wml_utf8_len(text.ptr[0]) : 0, raw_part, err);
}

/* What is found in normalized text: the token's own normal form. */
static bool shown_of(struct wml_tok *t, struct wml_tok_work *w, struct wml_tok_added *a, struct wml_err *err)
{
    struct wml_str s = a->content;
    size_t head = 0;
    a->shown = a->content;
    if (!a->normalized) return true;
    if (!wml_tok_normalize(t, w, &s, &head, err)) return false;
    if (!wml_str_eq(s, a->content)) a->shown = wml_arena_str(&t->arena, s);
    return true;
}

static void add_one(struct wml_tok *t, struct wml_tok_added a, int64_t *next)
{
    uintptr_t old = (uintptr_t)wml_map_get(&t->added_text, a.content); /* index + 1 */
    a.id = old ? t->added.at[old - 1].id : wml_tok_vocab_id(&t->vocab, a.content);
    if (a.id < 0) a.id = (*next)++;
    if (a.special) wml_map_put(&t->special, a.content, t);
    if (!old) old = t->added_by_id[a.id]; /* two texts with one id: the later one counts */
    if (old) {
        t->added.at[old - 1] = a;
    } else {
        WML_PUSH(&t->added, a);
        old = t->added.len;
    }
    t->added_by_id[a.id] = (uint32_t)old;
    wml_map_put(&t->added_text, a.content, (void *)old);
}

static bool read_one(const struct wml_json_val *v, struct wml_tok_added *a, struct wml_err *err)
{
    *a = (struct wml_tok_added){.content = wml_json_get_str(v, "content"), .id = -1};
    if (!a->content.ptr) return wml_tok_missing("an added token", "content", err);
    a->special = wml_json_get_bool(v, "special", false);
    a->single_word = wml_json_get_bool(v, "single_word", false);
    a->lstrip = wml_json_get_bool(v, "lstrip", false);
    a->rstrip = wml_json_get_bool(v, "rstrip", false);
    a->normalized = wml_json_get_bool(v, "normalized", !a->special);
    return true;
}

static bool build(struct wml_tok *t, bool normalized, struct wml_trie *trie, struct wml_err *err)
{
    struct wml_trie_key *key = wml_xcalloc(WML_MAX(t->added.len, 1), sizeof *key);
    size_t n = 0;
    for (size_t i = 0; i < t->added.len; i++)
        if (t->added.at[i].normalized == normalized && t->added.at[i].shown.len)
            key[n++] = (struct wml_trie_key){t->added.at[i].shown, (uint32_t)i};
    bool ok = wml_trie_build(trie, key, n, err);
    free(key);
    return ok;
}

static bool read_all(struct wml_tok *t, const struct wml_json_val *list, bool new_only, int64_t *next, struct wml_err *err)
{
    const struct wml_json_val *v;
    struct wml_json_iter it = {0};
    struct wml_str key;
    while (wml_json_next(list, &it, &key, &v)) {
        struct wml_tok_added a;
        if (!read_one(v, &a, err)) return false;
        if (!a.content.len || (new_only && wml_tok_id(t, a.content) >= 0)) continue;
        if (a.single_word && !t->word && !wml_tok_own_regex(t, WML_TOK_RUST_WORD, &t->word, err)) return false;
        if (new_only) a.content = wml_arena_str(&t->arena, a.content); /* the configuration is not kept */
        add_one(t, a, next);
    }
    return true;
}

bool wml_tok_load_added(struct wml_tok *t, const struct wml_json_val *list, const struct wml_json_val *config,
                        struct wml_err *err)
{
    const struct wml_json_val *more = wml_json_get(config, "added_tokens_decoder");
    int64_t next = (int64_t)t->n_model;
    t->n_added_ids = WML_MAX(t->vocab.n_ids, t->n_model + wml_json_len(list) + wml_json_len(more)) + 1;
    t->added_by_id = wml_big_alloc(t->n_added_ids * sizeof *t->added_by_id, err);
    if (!t->added_by_id) return false;
    memset(t->added_by_id, 0, t->n_added_ids * sizeof *t->added_by_id);
    if (!read_all(t, list, false, &next, err) || !read_all(t, more, true, &next, err)) return false;
    struct wml_tok_work *w = wml_tok_work_new();
    bool ok = true;
    for (size_t i = 0; ok && i < t->added.len; i++) ok = shown_of(t, w, &t->added.at[i], err);
    wml_tok_work_free(w);
    return ok && build(t, false, &t->raw_added, err) && build(t, true, &t->norm_added, err);
}

const struct wml_tok_added *wml_tok_added_of(const struct wml_tok *t, int64_t id)
{
    uint32_t i = id >= 0 && (uint64_t)id < t->n_added_ids ? t->added_by_id[id] : 0;
    return i ? &t->added.at[i - 1] : NULL;
}
