/* tok/normalize.c - normalizers: the text of a part, rewritten step by step. BertNormalizer becomes its steps. Most work
 * character by character, so the head of the text is done first and its new length noted; ASCII goes by whole runs. */
#include "tok/internal.h"

#include "tok/charsmap.h"

typedef void part_fn(const struct wml_tok *t, const struct wml_tok_norm *n, struct wml_str part, struct wml_buf *out);

static void head_and_rest(part_fn *fn, const struct wml_tok *t, const struct wml_tok_norm *n, struct wml_str in, size_t head,
                          struct wml_tok_text *out)
{
    if (head) fn(t, n, wml_str_sub(in, 0, head), &out->s);
    out->head = out->s.len;
    fn(t, n, wml_str_sub(in, head, in.len), &out->s);
}

#define PER_CHARACTER(name)                                                                                            \
    static bool run_##name(const struct wml_tok *t, const struct wml_tok_norm *n, struct wml_tok_work *w,             \
                           struct wml_str in, size_t head, struct wml_tok_text *out, struct wml_err *err)             \
    {                                                                                                                  \
        (void)w;                                                                                                       \
        (void)err;                                                                                                     \
        head_and_rest(part_##name, t, n, in, head, out);                                                               \
        return true;                                                                                                   \
    }

static size_t ascii_run(const char *p, const char *end)
{
    const char *from = p;
    uint64_t eight;
    while (end - p >= 8 && (memcpy(&eight, p, 8), (eight & 0x8080808080808080u) == 0)) p += 8;
    while (p < end && (unsigned char)*p < 0x80) p++;
    return (size_t)(p - from);
}

/* Removes control characters, makes every white space a blank. */
static void part_clean(const struct wml_tok *t, const struct wml_tok_norm *n, struct wml_str part, struct wml_buf *out)
{
    const char *p = part.ptr, *end = p + part.len;
    (void)n;
    while (p < end) {
        size_t run = ascii_run(p, end), at = out->len;
        wml_buf_add(out, p, run);
        for (size_t i = 0; i < run && !out->failed; i++) {
            unsigned char c = (unsigned char)p[i];
            unsigned class = wml_char_class(t->chars, c);
            out->ptr[at] = class & WML_CHAR_SPACE ? ' ' : (char)c;
            at += c != 0 && !(class & WML_CHAR_CONTROL);
        }
        if (run && !out->failed) out->len = at;
        p += run;
        if (p == end) break;
        const char *from = p;
        unsigned class = wml_char_class(t->chars, wml_utf8_next(&p));
        if (class & WML_CHAR_CONTROL) continue;
        if (class & WML_CHAR_SPACE) wml_buf_char(out, ' ');
        else wml_buf_add(out, from, (size_t)(p - from));
    }
}
PER_CHARACTER(clean)

static bool is_han(uint32_t c) /* the blocks that BERT's own code takes for Chinese */
{
    return (c >= 0x4e00 && c <= 0x9fff) || (c >= 0x3400 && c <= 0x4dbf) || (c >= 0x20000 && c <= 0x2a6df) ||
           (c >= 0x2a700 && c <= 0x2b81f) || (c >= 0x2b920 && c <= 0x2ceaf) || (c >= 0xf900 && c <= 0xfaff) ||
           (c >= 0x2f800 && c <= 0x2fa1f);
}

static void part_han(const struct wml_tok *t, const struct wml_tok_norm *n, struct wml_str part, struct wml_buf *out)
{
    const char *p = part.ptr, *end = p + part.len, *copied = p;
    (void)t;
    (void)n;
    while (p < end) {
        p += ascii_run(p, end);
        if (p == end) break;
        const char *from = p;
        if (!is_han(wml_utf8_next(&p))) continue;
        wml_buf_add(out, copied, (size_t)(from - copied));
        wml_buf_char(out, ' ');
        wml_buf_add(out, from, (size_t)(p - from));
        wml_buf_char(out, ' ');
        copied = p;
    }
    wml_buf_add(out, copied, (size_t)(end - copied));
}
PER_CHARACTER(han)

static void without(const struct wml_tok *t, unsigned classes, struct wml_str part, struct wml_buf *out)
{
    const char *p = part.ptr, *end = p + part.len, *copied = p;
    while (p < end) {
        p += ascii_run(p, end); /* no mark is ASCII */
        if (p == end) break;
        const char *from = p;
        if (!(wml_char_class(t->chars, wml_utf8_next(&p)) & classes)) continue;
        wml_buf_add(out, copied, (size_t)(from - copied));
        copied = p;
    }
    wml_buf_add(out, copied, (size_t)(end - copied));
}

static void part_bare(const struct wml_tok *t, const struct wml_tok_norm *n, struct wml_str part, struct wml_buf *out)
{
    (void)n;
    without(t, WML_CHAR_NONSPACING, part, out);
}
PER_CHARACTER(bare)

static void part_accents(const struct wml_tok *t, const struct wml_tok_norm *n, struct wml_str part, struct wml_buf *out)
{
    (void)n;
    without(t, WML_CHAR_MARK, part, out);
}
PER_CHARACTER(accents)

static void part_lower(const struct wml_tok *t, const struct wml_tok_norm *n, struct wml_str part, struct wml_buf *out)
{
    const char *p = part.ptr, *end = p + part.len;
    (void)n;
    while (p < end) {
        size_t run = ascii_run(p, end), at = out->len;
        wml_buf_add(out, p, run);
        for (size_t i = at; i < out->len; i++)
            out->ptr[i] = (char)(out->ptr[i] + ((unsigned char)(out->ptr[i] - 'A') < 26) * ('a' - 'A'));
        p += run;
        if (p == end) break;
        const char *from = p;
        uint32_t ch = wml_utf8_next(&p);
        if (!(wml_char_class(t->chars, ch) & WML_CHAR_UPPER)) {
            wml_buf_add(out, from, (size_t)(p - from));
            continue;
        }
        wml_utf8_put(out, wml_char_lower(ch));
        if (ch == 0x130) wml_utf8_put(out, 0x307);
    }
}
PER_CHARACTER(lower)

/* What SentencePiece does for machine translation before its own table: 0 removes, else the replacement. */
static uint32_t nmt(uint32_t c)
{
    if ((c >= 1 && c <= 8) || c == 0xb || (c >= 0xe && c <= 0x1f) || c == 0x7f || c == 0x8f || c == 0x9f) return 0;
    bool blank = c == 9 || c == 0xa || c == 0xc || c == 0xd || c == 0x1680 || (c >= 0x200b && c <= 0x200f) || c == 0x2028 ||
                 c == 0x2029 || c == 0x2581 || c == 0xfeff || c == 0xfffd;
    return blank ? ' ' : c;
}

static void part_nmt(const struct wml_tok *t, const struct wml_tok_norm *n, struct wml_str part, struct wml_buf *out)
{
    (void)t;
    (void)n;
    for (const char *p = part.ptr, *end = p + part.len; p < end;) {
        uint32_t from = wml_utf8_next(&p), to = nmt(from);
        if (to || !from) wml_utf8_put(out, to);
    }
}
PER_CHARACTER(nmt)

static void part_bytes(const struct wml_tok *t, const struct wml_tok_norm *n, struct wml_str part, struct wml_buf *out)
{
    (void)t;
    (void)n;
    wml_tok_put_bytes(part, out);
}
PER_CHARACTER(bytes)

static bool run_form(const struct wml_tok *t, const struct wml_tok_norm *n, struct wml_tok_work *w, struct wml_str in,
                     size_t head, struct wml_tok_text *out, struct wml_err *err)
{
    (void)w;
    (void)err;
    out->head = wml_chars_form(t->chars, n->form, in, head, &out->s);
    return true;
}

static bool run_strip(const struct wml_tok *t, const struct wml_tok_norm *n, struct wml_tok_work *w, struct wml_str in,
                      size_t head, struct wml_tok_text *out, struct wml_err *err)
{
    const char *from = in.ptr, *end = from + in.len;
    (void)w;
    (void)err;
    for (const char *p = from; n->flag[0] && p < end && (wml_char_class(t->chars, wml_utf8_next(&p)) & WML_CHAR_SPACE);) from = p;
    while (n->flag[1] && end > from) {
        const char *p = end - 1, *at;
        while (((unsigned char)*p & 0xc0) == 0x80) p--;
        at = p;
        if (!(wml_char_class(t->chars, wml_utf8_next(&at)) & WML_CHAR_SPACE)) break;
        end = p;
    }
    wml_buf_add(&out->s, from, (size_t)(end - from));
    size_t gone = (size_t)(from - in.ptr);
    out->head = gone < head ? WML_MIN(head - gone, out->s.len) : 0;
    return true;
}

static bool run_prepend(const struct wml_tok *t, const struct wml_tok_norm *n, struct wml_tok_work *w, struct wml_str in,
                        size_t head, struct wml_tok_text *out, struct wml_err *err)
{
    (void)t;
    (void)w;
    (void)err;
    if (in.len) wml_buf_str(&out->s, n->put);
    out->head = head ? head + out->s.len : 0;
    wml_buf_str(&out->s, in);
    return true;
}

/* The next match of a literal or a pattern. */
static bool next_match(const struct wml_tok_norm *n, struct wml_tok_work *w, struct wml_str in, struct wml_regex_walk *walk,
                       size_t *start, size_t *end, struct wml_err *err)
{
    if (n->regex) return wml_regex_next(n->regex, w->match, in, walk, start, end, err);
    *start = wml_tok_find(in, walk->at, n->find);
    *end = walk->at = *start == SIZE_MAX ? in.len : *start + n->find.len;
    return true;
}

static bool run_replace(const struct wml_tok *t, const struct wml_tok_norm *n, struct wml_tok_work *w, struct wml_str in,
                        size_t head, struct wml_tok_text *out, struct wml_err *err)
{
    struct wml_regex_walk walk = {0, SIZE_MAX};
    size_t copied = 0, start, end;
    bool in_head = head > 0;
    (void)t;
    while (next_match(n, w, in, &walk, &start, &end, err)) {
        bool last = start == SIZE_MAX;
        if (last) start = end = in.len;
        if (in_head && start >= head) { /* the head ends before this match */
            out->head = out->s.len + (head - copied);
            in_head = false;
        }
        wml_buf_add(&out->s, in.ptr + copied, start - copied);
        if (last) return true;
        wml_buf_str(&out->s, n->put); /* which stems from the last character of the match */
        copied = end;
        if (in_head && end >= head) {
            out->head = end == head ? out->s.len : out->s.len - n->put.len;
            in_head = false;
        }
        if (out->s.failed) return true;
    }
    return false;
}

static bool run_charsmap(const struct wml_tok *t, const struct wml_tok_norm *n, struct wml_tok_work *w, struct wml_str in,
                         size_t head, struct wml_tok_text *out, struct wml_err *err)
{
    (void)t;
    return wml_charsmap_apply(n->map, w->match, in, head, &out->s, &out->head, err);
}

static struct wml_tok_norm *add(struct wml_tok *t, bool (*run)(const struct wml_tok *, const struct wml_tok_norm *,
                                struct wml_tok_work *, struct wml_str, size_t, struct wml_tok_text *, struct wml_err *))
{
    WML_PUSH(&t->norm, ((struct wml_tok_norm){.run = run}));
    return &t->norm.at[t->norm.len - 1];
}

static bool load_bert(struct wml_tok *t, const struct wml_json_val *v, struct wml_err *err)
{
    bool lower = wml_json_get_bool(v, "lowercase", true);
    (void)err;
    if (wml_json_get_bool(v, "clean_text", true)) add(t, run_clean);
    if (wml_json_get_bool(v, "handle_chinese_chars", true)) add(t, run_han);
    if (wml_json_get_bool(v, "strip_accents", lower)) { /* null: as lowercase says */
        add(t, run_form)->form = WML_NFD;
        add(t, run_bare);
    }
    if (lower) add(t, run_lower);
    return true;
}

#define SIMPLE(name, fn, more)                                                                                         \
    static bool load_##name(struct wml_tok *t, const struct wml_json_val *v, struct wml_err *err)                     \
    {                                                                                                                  \
        (void)v;                                                                                                       \
        (void)err;                                                                                                     \
        add(t, fn) more;                                                                                               \
        return true;                                                                                                   \
    }
SIMPLE(lower, run_lower, )
SIMPLE(accents, run_accents, )
SIMPLE(nmt, run_nmt, )
SIMPLE(bytes, run_bytes, )
SIMPLE(nfc, run_form, ->form = WML_NFC)
SIMPLE(nfd, run_form, ->form = WML_NFD)
SIMPLE(nfkc, run_form, ->form = WML_NFKC)
SIMPLE(nfkd, run_form, ->form = WML_NFKD)

static bool load_strip(struct wml_tok *t, const struct wml_json_val *v, struct wml_err *err)
{
    struct wml_tok_norm *n = add(t, run_strip);
    (void)err;
    n->flag[0] = wml_json_get_bool(v, "strip_left", true);
    n->flag[1] = wml_json_get_bool(v, "strip_right", true);
    return true;
}

static bool load_prepend(struct wml_tok *t, const struct wml_json_val *v, struct wml_err *err)
{
    struct wml_tok_norm *n = add(t, run_prepend);
    n->put = wml_json_get_str(v, "prepend");
    return n->put.ptr ? true : wml_tok_missing("the normalizer Prepend", "prepend", err);
}

static bool load_replace(struct wml_tok *t, const struct wml_json_val *v, struct wml_err *err)
{
    struct wml_tok_norm *n = add(t, run_replace);
    n->put = wml_json_get_str(v, "content");
    if (!n->put.ptr) return wml_tok_missing("the normalizer Replace", "content", err);
    return wml_tok_load_pattern(t, wml_json_get(v, "pattern"), "the normalizer Replace", &n->find, &n->regex, err);
}

static bool load_charsmap(struct wml_tok *t, const struct wml_json_val *v, struct wml_err *err)
{
    struct wml_str code = wml_json_get_str(v, "precompiled_charsmap");
    if (!code.ptr) return wml_tok_missing("the normalizer Precompiled", "precompiled_charsmap", err);
    return wml_charsmap_new(code, &add(t, run_charsmap)->map, err);
}

static bool load_sequence(struct wml_tok *t, const struct wml_json_val *v, struct wml_err *err)
{
    const struct wml_json_val *list = wml_json_get(v, "normalizers"), *one;
    struct wml_json_iter it = {0};
    struct wml_str key;
    if (!wml_json_is_array(list)) return wml_tok_missing("the normalizer Sequence", "normalizers", err);
    while (wml_json_next(list, &it, &key, &one))
        if (!wml_tok_load_normalizer(t, one, err)) return false;
    return true;
}

bool wml_tok_load_normalizer(struct wml_tok *t, const struct wml_json_val *v, struct wml_err *err)
{
    static const struct {
        const char *name;
        bool (*load)(struct wml_tok *t, const struct wml_json_val *v, struct wml_err *err);
    } kinds[] = {
        {"BertNormalizer", load_bert}, {"Lowercase", load_lower}, {"StripAccents", load_accents}, {"Nmt", load_nmt},
        {"ByteLevel", load_bytes}, {"NFC", load_nfc}, {"NFD", load_nfd}, {"NFKC", load_nfkc}, {"NFKD", load_nfkd},
        {"Strip", load_strip}, {"Prepend", load_prepend}, {"Replace", load_replace}, {"Precompiled", load_charsmap},
        {"Sequence", load_sequence},
    };
    struct wml_str type = wml_json_get_str(v, "type");
    if (wml_json_is_null(v)) return true;
    for (size_t i = 0; i < WML_COUNT(kinds); i++) {
        if (!wml_str_is(type, kinds[i].name)) continue;
        if (t->norm.len > WML_TOK_MAX_PARTS) return wml_fail(err, WML_E_FORMAT, "more than %d normalizers", WML_TOK_MAX_PARTS);
        return kinds[i].load(t, v, err);
    }
    return wml_tok_unsupported("normalizer", type, err);
}

bool wml_tok_normalize(const struct wml_tok *t, struct wml_tok_work *w, struct wml_str *s, size_t *head, struct wml_err *err)
{
    for (size_t i = 0; i < t->norm.len && s->len; i++) {
        struct wml_tok_text *out = &w->norm[i & 1];
        wml_buf_clear(&out->s);
        out->head = 0;
        if (!t->norm.at[i].run(t, &t->norm.at[i], w, *s, *head, out, err)) return false;
        if (out->s.failed || out->s.len > WML_TOK_MAX_WORK)
            return wml_fail(err, WML_E_UNSUPPORTED, "normalized text grows beyond %d MiB", WML_TOK_MAX_WORK >> 20);
        *s = wml_buf_view(&out->s);
        *head = out->head;
    }
    return true;
}
