/* tok/encode.c - a text, or a pair, through all steps: pieces, ids, cut to length, set into the template, padded. */
#include "tok/internal.h"

struct wml_tok_work *wml_tok_work_new(void)
{
    struct wml_tok_work *w = wml_xcalloc(1, sizeof *w);
    w->match = wml_regex_match_new();
    w->cache = wml_tok_cache_new();
    return w;
}

void wml_tok_work_free(struct wml_tok_work *w)
{
    if (!w) return;
    wml_buf_release(&w->repaired);
    wml_buf_release(&w->text);
    wml_buf_release(&w->other);
    wml_buf_release(&w->word);
    for (size_t i = 0; i < WML_COUNT(w->norm); i++) wml_buf_release(&w->norm[i].s);
    WML_VEC_RELEASE(&w->piece.v);
    WML_VEC_RELEASE(&w->next.v);
    for (size_t i = 0; i < WML_COUNT(w->part); i++) WML_VEC_RELEASE(&w->part[i].v);
    WML_VEC_RELEASE(&w->symbol);
    WML_VEC_RELEASE(&w->merge);
    WML_VEC_RELEASE(&w->best);
    wml_regex_match_free(w->match);
    wml_tok_cache_free(w->cache);
    free(w);
}

void wml_tok_ids_release(struct wml_tok_ids *ids)
{
    if (!ids) return;
    free(ids->id);
    wml_tok_work_free(ids->work);
    *ids = (struct wml_tok_ids){0};
}

static bool encode_piece(const struct wml_tok *t, struct wml_tok_work *w, const struct wml_tok_piece *p,
                         struct wml_tok_list *out, struct wml_err *err)
{
    size_t before = out->v.len;
    if (p->id >= 0) {
        WML_PUSH(&out->v, p->id);
        return true;
    }
    struct wml_str word = {w->text.ptr + p->at, p->len};
    if (wml_tok_cache_get(w->cache, word, out)) return true;
    if (!t->algo->encode(t, w, word, out, err)) return false;
    if (out->v.len > before) wml_tok_cache_put(w->cache, word, out->v.at + before, out->v.len - before);
    return true;
}

/* Ids of the pieces, until they are enough. */
static bool encode_pieces(const struct wml_tok *t, struct wml_tok_work *w, size_t enough, struct wml_tok_list *out,
                          struct wml_err *err)
{
    for (size_t i = 0; i < w->piece.v.len && out->v.len < enough; i++)
        if (!encode_piece(t, w, &w->piece.v.at[i], out, err)) return false;
    return true;
}

static bool encode_text(const struct wml_tok *t, struct wml_tok_work *w, struct wml_str text, size_t enough,
                        struct wml_tok_list *out, struct wml_err *err)
{
    out->v.len = 0;
    if (text.len > WML_TOK_MAX_TEXT) {
        wml_fail(err, WML_E_UNSUPPORTED, "a text of %zu bytes is longer than %d MiB", text.len, WML_TOK_MAX_TEXT >> 20);
        return wml_hint(err, "give it line by line");
    }
    text = wml_tok_utf8_repair(text, &w->repaired);
    return wml_tok_extract(t, w, text, err) && wml_tok_pre_tokenize(t, w, err) && encode_pieces(t, w, enough, out, err);
}

static size_t count_tokens(const struct wml_tok_template *p)
{
    size_t n = 0;
    for (size_t i = 0; i < p->v.len; i++) n += p->v.at[i].kind == WML_SLOT_TOKEN;
    return n;
}

static void cut(struct wml_tok_list *l, size_t to, bool left)
{
    if (to >= l->v.len) return;
    if (left) memmove(l->v.at, l->v.at + (l->v.len - to), to * sizeof *l->v.at);
    l->v.len = to;
}

/* To equal lengths, the longer one first; an odd token goes to the longer one. */
static void cut_longest(struct wml_tok_list *a, struct wml_tok_list *b, size_t max, bool left)
{
    bool swap = a->v.len > b->v.len;
    size_t less = swap ? b->v.len : a->v.len, more;
    more = less > max ? less : WML_MAX(less, max - less);
    if (less + more > max) {
        less = max / 2;
        more = less + max % 2;
    }
    cut(a, swap ? more : less, left);
    cut(b, swap ? less : more, left);
}

static bool cut_to(struct wml_tok_work *w, bool pair, const struct wml_tok_opts *o, size_t max, struct wml_err *err)
{
    struct wml_tok_list *a = &w->part[0], *b = &w->part[1];
    size_t total = a->v.len + b->v.len;
    if (total <= max) return true;
    if (max == 0) {
        a->v.len = b->v.len = 0;
        return true;
    }
    if (o->cut == WML_TOK_LONGEST_FIRST) {
        if (pair) cut_longest(a, b, max, o->cut_left);
        else cut(a, max, o->cut_left);
        return true;
    }
    struct wml_tok_list *one = o->cut == WML_TOK_ONLY_FIRST ? a : b;
    if (one->v.len <= total - max) {
        wml_fail(err, WML_E_USAGE, "the %s text cannot be shortened by %zu tokens: it has %zu", one == a ? "first" : "second",
                 total - max, one->v.len);
        return wml_hint(err, "let both texts be shortened, or allow more tokens");
    }
    cut(one, one->v.len - (total - max), o->cut_left);
    return true;
}

/* Tokens and their types; without a template the texts follow each other. */
static void set_out(const struct wml_tok *t, struct wml_tok_work *w, bool pair, bool bare, struct wml_tok_ids *out)
{
    static const struct wml_tok_slot plain[] = {{WML_SLOT_FIRST, 0, -1}, {WML_SLOT_SECOND, 0, -1}};
    const struct wml_tok_template *p = pair ? &t->pair : &t->single;
    const struct wml_tok_slot *slot = p->v.len ? p->v.at : plain;
    size_t n = p->v.len ? p->v.len : 1u + pair;
    out->len = 0;
    for (size_t i = 0; i < n; i++) {
        if (slot[i].kind == WML_SLOT_TOKEN) {
            if (bare) continue;
            out->id[out->len] = slot[i].id;
            out->type[out->len++] = slot[i].type;
            continue;
        }
        const struct wml_tok_list *l = &w->part[slot[i].kind == WML_SLOT_SECOND];
        for (size_t k = 0; k < l->v.len; k++) {
            out->id[out->len] = l->v.at[k];
            out->type[out->len++] = slot[i].type >= 0 ? slot[i].type : slot[i].kind == WML_SLOT_SECOND;
        }
    }
    for (size_t i = 0; i < out->len; i++) out->mask[i] = 1;
}

static void pad(const struct wml_tok_opts *o, struct wml_tok_ids *out)
{
    size_t more = o->pad_to > out->len ? o->pad_to - out->len : 0, from = o->pad_left ? 0 : out->len;
    int64_t *const array[] = {out->id, out->mask, out->type};
    const int64_t value[] = {o->pad_id, 0, o->pad_type};
    for (size_t a = 0; a < WML_COUNT(array) && more; a++) {
        if (o->pad_left) memmove(array[a] + more, array[a], out->len * sizeof *array[a]);
        for (size_t i = 0; i < more; i++) array[a][from + i] = value[a];
    }
    out->len += more;
}

/* One block for the three arrays, as long as the result can get. */
static bool make_room(const struct wml_tok *t, const struct wml_tok_opts *o, struct wml_tok_ids *out, bool pair,
                      struct wml_err *err)
{
    const struct wml_tok_work *w = out->work;
    size_t n = count_tokens(pair ? &t->pair : &t->single);
    const struct wml_tok_template *p = pair ? &t->pair : &t->single;
    for (size_t i = 0; i < p->v.len; i++) /* a template may use a text more than once */
        if (p->v.at[i].kind != WML_SLOT_TOKEN) n += w->part[p->v.at[i].kind == WML_SLOT_SECOND].v.len;
    if (!p->v.len) n = w->part[0].v.len + w->part[1].v.len;
    n = WML_MAX(WML_MAX(n, o->pad_to), 1);
    if (n <= out->work->room) return true;
    if (o->pad_to > SIZE_MAX / 64) return wml_fail(err, WML_E_USAGE, "padding to %zu tokens is too much", o->pad_to);
    free(out->id);
    out->work->room = 0;
    out->id = wml_big_alloc((uint64_t)n * 3 * sizeof *out->id, err);
    if (!out->id) return false;
    out->work->room = n;
    out->mask = out->id + n;
    out->type = out->mask + n;
    return true;
}

static bool start(const struct wml_tok *t, const struct wml_tok_opts *o, bool pair, struct wml_tok_ids *out, size_t *max,
                  struct wml_err *err)
{
    size_t special = o->bare ? 0 : count_tokens(pair ? &t->pair : &t->single);
    *max = o->max_length ? o->max_length : SIZE_MAX;
    out->len = 0;
    out->cut = false;
    if (*max < special) {
        wml_fail(err, WML_E_USAGE, "a maximum of %zu tokens has no room for the %zu special tokens of this model", *max, special);
        return wml_hint(err, "allow more tokens, or leave the special ones out");
    }
    if (*max != SIZE_MAX) *max -= special;
    if (o->pad_to && o->pad_id < 0) {
        wml_fail(err, WML_E_USAGE, "this tokenizer has no token for padding");
        return wml_hint(err, "name the token to pad with, for example the end of text");
    }
    if (!out->work) out->work = wml_tok_work_new();
    if (out->work->stamp != t->stamp) wml_tok_cache_clear(out->work->cache);
    out->work->stamp = t->stamp;
    return true;
}

bool wml_tok_encode(const struct wml_tok *t, struct wml_str text, struct wml_str pair, const struct wml_tok_opts *o,
                    struct wml_tok_ids *out, struct wml_err *err)
{
    static const struct wml_tok_opts none = {0};
    size_t max;
    o = o ? o : &none;
    if (!start(t, o, pair.ptr != NULL, out, &max, err)) return false;
    struct wml_tok_work *w = out->work;
    /* One more than fits tells that something is cut off. Of a pair all must be known: the longer one is cut first. */
    size_t enough = max == SIZE_MAX || pair.ptr || o->cut_left ? SIZE_MAX : max + 1;
    w->part[1].v.len = 0;
    if (!encode_text(t, w, text, enough, &w->part[0], err)) return false;
    if (pair.ptr && !encode_text(t, w, pair, enough, &w->part[1], err)) return false;
    size_t before = w->part[0].v.len + w->part[1].v.len;
    if (!cut_to(w, pair.ptr != NULL, o, max, err)) return false;
    out->cut = w->part[0].v.len + w->part[1].v.len < before;
    if (!make_room(t, o, out, pair.ptr != NULL, err)) return false;
    set_out(t, w, pair.ptr != NULL, o->bare, out);
    pad(o, out);
    return true;
}
