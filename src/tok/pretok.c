/* tok/pretok.c - pre-tokenizers: pieces of text into smaller pieces. Those that change text (a blank before the first word, a
 * sign for blanks, bytes as characters) write all pieces anew. BertPreTokenizer and ByteLevel become their steps. */
#include "tok/internal.h"

struct splitter { /* one piece being split at matches */
    struct wml_tok_work *w;
    const struct wml_tok_pre *p;
    struct wml_tok_piece base;
    size_t first; /* where its pieces begin in w->next */
    bool was_match, held;
    size_t held_from, held_to; /* a match that may join what follows */
};

static void emit(struct splitter *s, size_t from, size_t to)
{
    struct wml_tok_piece n = {.at = s->base.at + (uint32_t)from, .len = (uint32_t)(to - from), .id = -1};
    n.head = from < s->base.head ? WML_MIN(s->base.head - (uint32_t)from, n.len) : 0;
    WML_PUSH(&s->w->next.v, n);
}

static void extend(struct splitter *s, size_t to)
{
    struct wml_tok_piece *last = &s->w->next.v.at[s->w->next.v.len - 1];
    last->len = s->base.at + (uint32_t)to - last->at;
    if (last->at < s->base.at + s->base.head) last->head = WML_MIN(s->base.at + s->base.head - last->at, last->len);
}

/* The next part, a match or what lies between two. */
static void split_at(struct splitter *s, size_t from, size_t to, bool match)
{
    bool any = s->w->next.v.len > s->first;
    match ^= s->p->invert;
    switch (s->p->behavior) {
    case WML_SPLIT_REMOVED:
        if (!match) emit(s, from, to);
        break;
    case WML_SPLIT_ISOLATED:
        emit(s, from, to);
        break;
    case WML_SPLIT_CONTIGUOUS:
        if (match == s->was_match && any) extend(s, to);
        else emit(s, from, to);
        break;
    case WML_SPLIT_MERGED_WITH_PREVIOUS:
        if (match && !s->was_match && any) extend(s, to);
        else emit(s, from, to);
        break;
    case WML_SPLIT_MERGED_WITH_NEXT:
        if (s->held) emit(s, s->held_from, match ? s->held_to : to);
        else if (!match) emit(s, from, to);
        s->held = match;
        s->held_from = from;
        s->held_to = to;
        break;
    }
    s->was_match = match;
}

static void split_end(struct splitter *s)
{
    if (s->held) emit(s, s->held_from, s->held_to);
    size_t len = s->first;
    for (size_t i = s->first; i < s->w->next.v.len; i++) /* empty parts count for the behaviours only */
        if (s->w->next.v.at[i].len) s->w->next.v.at[len++] = s->w->next.v.at[i];
    s->w->next.v.len = len;
}

/* Tokens go on as they are; false: this is one. */
static bool begin(struct splitter *s, const struct wml_tok_pre *p, struct wml_tok_work *w, size_t i)
{
    *s = (struct splitter){.w = w, .p = p, .base = w->piece.v.at[i], .first = w->next.v.len};
    if (s->base.id < 0) return true;
    WML_PUSH(&w->next.v, s->base);
    return false;
}

static struct wml_str text_of(const struct wml_tok_work *w, const struct wml_tok_piece *p)
{
    return (struct wml_str){w->text.ptr + p->at, p->len};
}

static bool run_classes(const struct wml_tok *t, const struct wml_tok_pre *p, struct wml_tok_work *w, struct wml_err *err)
{
    (void)err;
    for (size_t i = 0; i < w->piece.v.len; i++) {
        struct splitter s;
        if (!begin(&s, p, w, i)) continue;
        struct wml_str in = text_of(w, &s.base);
        size_t done = 0;
        for (const char *at = in.ptr, *end = in.ptr + in.len; at < end;) {
            size_t from = (size_t)(at - in.ptr);
            if (!(wml_char_class(t->chars, wml_utf8_next(&at)) & p->classes)) continue;
            if (done < from) split_at(&s, done, from, false);
            done = (size_t)(at - in.ptr);
            split_at(&s, from, done, true);
        }
        if (done < in.len) split_at(&s, done, in.len, false);
        split_end(&s);
    }
    return true;
}

static bool run_regex(const struct wml_tok *t, const struct wml_tok_pre *p, struct wml_tok_work *w, struct wml_err *err)
{
    (void)t;
    for (size_t i = 0; i < w->piece.v.len; i++) {
        struct splitter s;
        struct wml_regex_walk walk = {0, SIZE_MAX};
        size_t done = 0, from, to;
        if (!begin(&s, p, w, i)) continue;
        struct wml_str in = text_of(w, &s.base);
        for (;;) {
            if (!wml_regex_next(p->regex, w->match, in, &walk, &from, &to, err)) return false;
            if (from == SIZE_MAX) break;
            if (done != from) split_at(&s, done, from, false);
            split_at(&s, from, to, true);
            done = to;
        }
        if (done != in.len) split_at(&s, done, in.len, false);
        split_end(&s);
    }
    return true;
}

size_t wml_tok_find(struct wml_str s, size_t from, struct wml_str part)
{
    while (from < s.len && part.len <= s.len - from) {
        const char *hit = memchr(s.ptr + from, part.ptr[0], s.len - from - part.len + 1);
        if (!hit) break;
        from = (size_t)(hit - s.ptr);
        if (memcmp(hit, part.ptr, part.len) == 0) return from;
        from++;
    }
    return SIZE_MAX;
}

static bool run_literal(const struct wml_tok *t, const struct wml_tok_pre *p, struct wml_tok_work *w, struct wml_err *err)
{
    (void)t;
    (void)err;
    for (size_t i = 0; i < w->piece.v.len; i++) {
        struct splitter s;
        size_t done = 0, from;
        if (!begin(&s, p, w, i)) continue;
        struct wml_str in = text_of(w, &s.base);
        while ((from = wml_tok_find(in, done, p->text)) != SIZE_MAX) {
            if (done != from) split_at(&s, done, from, false);
            done = from + p->text.len;
            split_at(&s, from, done, true);
        }
        if (done != in.len) split_at(&s, done, in.len, false);
        split_end(&s);
    }
    return true;
}

static bool run_length(const struct wml_tok *t, const struct wml_tok_pre *p, struct wml_tok_work *w, struct wml_err *err)
{
    (void)t;
    (void)err;
    for (size_t i = 0; i < w->piece.v.len; i++) {
        struct splitter s;
        size_t done = 0, n = 0;
        if (!begin(&s, p, w, i)) continue;
        struct wml_str in = text_of(w, &s.base);
        for (size_t at = 0; at < in.len;) {
            at += wml_utf8_len(in.ptr[at]);
            if (++n < p->length && at < in.len) continue;
            split_at(&s, done, at, false);
            done = at;
            n = 0;
        }
        split_end(&s);
    }
    return true;
}

/* Writes every piece of text anew by `one`, which appends to w->other and returns the new head. */
static bool rewrite(const struct wml_tok_pre *p, struct wml_tok_work *w, struct wml_err *err,
                    size_t (*one)(const struct wml_tok_pre *p, struct wml_str in, size_t head, struct wml_buf *out))
{
    wml_buf_clear(&w->other);
    for (size_t i = 0; i < w->piece.v.len; i++) {
        struct wml_tok_piece n = w->piece.v.at[i];
        if (n.id < 0) {
            size_t at = w->other.len, head = one(p, text_of(w, &n), n.head, &w->other);
            n.at = (uint32_t)at;
            n.len = (uint32_t)(w->other.len - at);
            n.head = (uint32_t)head;
        }
        WML_PUSH(&w->next.v, n);
    }
    if (w->other.failed || w->other.len > WML_TOK_MAX_WORK)
        return wml_fail(err, WML_E_UNSUPPORTED, "pre-tokenized text grows beyond %d MiB", WML_TOK_MAX_WORK >> 20);
    struct wml_buf swap = w->text;
    w->text = w->other;
    w->other = swap;
    return true;
}

static size_t one_blank(const struct wml_tok_pre *p, struct wml_str in, size_t head, struct wml_buf *out)
{
    bool add = !wml_str_starts(in, " ");
    (void)p;
    if (add) wml_buf_char(out, ' ');
    wml_buf_str(out, in);
    return head ? head + add : 0;
}

static bool run_blank(const struct wml_tok *t, const struct wml_tok_pre *p, struct wml_tok_work *w, struct wml_err *err)
{
    (void)t;
    return rewrite(p, w, err, one_blank);
}

static size_t one_bytes(const struct wml_tok_pre *p, struct wml_str in, size_t head, struct wml_buf *out)
{
    size_t start = out->len;
    (void)p;
    wml_tok_put_bytes(wml_str_sub(in, 0, head), out);
    size_t new_head = out->len - start;
    wml_tok_put_bytes(wml_str_sub(in, head, in.len), out);
    return new_head;
}

static bool run_bytes(const struct wml_tok *t, const struct wml_tok_pre *p, struct wml_tok_work *w, struct wml_err *err)
{
    (void)t;
    return rewrite(p, w, err, one_bytes);
}

static void put_signs(struct wml_str in, struct wml_str sign, struct wml_buf *out)
{
    for (size_t done = 0; done < in.len;) {
        const char *blank = memchr(in.ptr + done, ' ', in.len - done);
        size_t to = blank ? (size_t)(blank - in.ptr) : in.len;
        wml_buf_add(out, in.ptr + done, to - done);
        if (blank) wml_buf_str(out, sign);
        done = to + 1;
    }
}

static size_t one_sign(const struct wml_tok_pre *p, struct wml_str in, size_t head, struct wml_buf *out)
{
    size_t start = out->len;
    bool begins = in.len >= p->text.len && memcmp(in.ptr, p->text.ptr, p->text.len) == 0;
    begins = begins || wml_str_starts(in, " ");
    bool wanted = p->prepend == WML_PREPEND_ALWAYS || (p->prepend == WML_PREPEND_FIRST && head > 0);
    if (wanted && !begins && in.len) wml_buf_str(out, p->text);
    put_signs(wml_str_sub(in, 0, head), p->text, out);
    size_t new_head = head ? out->len - start : 0;
    put_signs(wml_str_sub(in, head, in.len), p->text, out);
    return new_head;
}

static bool run_sign(const struct wml_tok *t, const struct wml_tok_pre *p, struct wml_tok_work *w, struct wml_err *err)
{
    (void)t;
    return rewrite(p, w, err, one_sign);
}

const struct wml_tok_pre wml_tok_pre_classes = {.run = run_classes}, wml_tok_pre_regex = {.run = run_regex},
                         wml_tok_pre_literal = {.run = run_literal}, wml_tok_pre_length = {.run = run_length},
                         wml_tok_pre_blank = {.run = run_blank}, wml_tok_pre_bytes = {.run = run_bytes},
                         wml_tok_pre_sign = {.run = run_sign};

bool wml_tok_pre_tokenize(const struct wml_tok *t, struct wml_tok_work *w, struct wml_err *err)
{
    for (size_t i = 0; i < t->pre.len; i++) {
        w->next.v.len = 0;
        if (!t->pre.at[i].run(t, &t->pre.at[i], w, err)) return false;
        struct wml_tok_pieces swap = w->piece;
        w->piece = w->next;
        w->next = swap;
    }
    return true;
}
