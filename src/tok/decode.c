/* tok/decode.c - decoders: the texts of tokens, changed one by one or joined, and put behind each other. */
#include "tok/internal.h"

#include "text/words.h"

static struct wml_str string_at(const struct wml_tok_strings *s, size_t i)
{
    size_t from = i ? s->end.at[i - 1] : 0;
    return (struct wml_str){(s->bytes.ptr ? s->bytes.ptr : "") + from, s->end.at[i] - from};
}

static void end_string(struct wml_tok_strings *s)
{
    WML_PUSH(&s->end, s->bytes.len);
}

static void clear(struct wml_tok_strings *s)
{
    wml_buf_clear(&s->bytes);
    s->end.len = 0;
}

static bool run_bytes(const struct wml_tok_dec *d, struct wml_tok_strings *in, struct wml_tok_strings *out, struct wml_err *err)
{
    struct wml_buf raw = {0}, fixed = {0};
    (void)d;
    (void)err;
    for (size_t i = 0; i < in->end.len; i++) {
        struct wml_str s = string_at(in, i);
        size_t start = raw.len;
        for (const char *p = s.ptr, *end = s.ptr + s.len; p < end;) {
            int byte = wml_tok_char_byte(wml_utf8_next(&p));
            if (byte >= 0) {
                wml_buf_char(&raw, (char)byte);
                continue;
            }
            raw.len = start; /* not of the alphabet: an added token */
            wml_buf_str(&raw, s);
            break;
        }
    }
    wml_buf_str(&out->bytes, wml_tok_utf8_repair(wml_buf_view(&raw), &fixed));
    end_string(out);
    wml_buf_release(&raw);
    wml_buf_release(&fixed);
    return true;
}

/* All of `find` in s by `put`. */
static void replace(struct wml_str s, struct wml_str find, struct wml_str put, struct wml_buf *out)
{
    size_t done = 0, at;
    while (find.len && (at = wml_tok_find(s, done, find)) != SIZE_MAX) {
        wml_buf_add(out, s.ptr + done, at - done);
        wml_buf_str(out, put);
        done = at + find.len;
    }
    wml_buf_add(out, s.ptr + done, s.len - done);
}

/* English as people write it, as BERT's decoder does. */
static void clean_up(struct wml_str s, struct wml_buf *out)
{
    static const char *const rule[][2] = {{" .", "."}, {" ?", "?"}, {" !", "!"}, {" ,", ","}, {" ' ", "'"}, {" n't", "n't"},
        {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
    struct wml_buf a = {0}, b = {0};
    wml_buf_str(&a, s);
    for (size_t i = 0; i < WML_COUNT(rule); i++) {
        wml_buf_clear(&b);
        replace(wml_buf_view(&a), wml_str(rule[i][0]), wml_str(rule[i][1]), &b);
        struct wml_buf swap = a;
        a = b;
        b = swap;
    }
    wml_buf_str(out, wml_buf_view(&a));
    wml_buf_release(&a);
    wml_buf_release(&b);
}

static bool run_wordpiece(const struct wml_tok_dec *d, struct wml_tok_strings *in, struct wml_tok_strings *out,
                          struct wml_err *err)
{
    struct wml_buf one = {0};
    (void)err;
    for (size_t i = 0; i < in->end.len; i++) {
        struct wml_str s = string_at(in, i);
        bool part = s.len >= d->text.len && (d->text.len == 0 || memcmp(s.ptr, d->text.ptr, d->text.len) == 0);
        wml_buf_clear(&one);
        if (i && !part) wml_buf_char(&one, ' ');
        wml_buf_str(&one, i && part ? wml_str_sub(s, d->text.len, s.len) : s);
        if (d->flag) clean_up(wml_buf_view(&one), &out->bytes);
        else wml_buf_str(&out->bytes, wml_buf_view(&one));
        end_string(out);
    }
    wml_buf_release(&one);
    return true;
}

static bool run_metaspace(const struct wml_tok_dec *d, struct wml_tok_strings *in, struct wml_tok_strings *out,
                          struct wml_err *err)
{
    (void)err;
    for (size_t i = 0; i < in->end.len; i++) { /* flag: a sign was put before the first word */
        replace(string_at(in, i), d->text, i == 0 && d->flag ? WML_STR("") : WML_STR(" "), &out->bytes);
        end_string(out);
    }
    return true;
}

static bool run_bpe(const struct wml_tok_dec *d, struct wml_tok_strings *in, struct wml_tok_strings *out, struct wml_err *err)
{
    (void)err;
    for (size_t i = 0; i < in->end.len; i++) {
        replace(string_at(in, i), d->text, i + 1 == in->end.len ? WML_STR("") : WML_STR(" "), &out->bytes);
        end_string(out);
    }
    return true;
}

static bool run_replace(const struct wml_tok_dec *d, struct wml_tok_strings *in, struct wml_tok_strings *out, struct wml_err *err)
{
    struct wml_regex_match *m = d->regex ? wml_regex_match_new() : NULL;
    bool ok = true;
    for (size_t i = 0; ok && i < in->end.len; i++) {
        struct wml_str s = string_at(in, i);
        struct wml_regex_walk walk = {0, SIZE_MAX};
        size_t done = 0, from, to;
        if (!d->regex) replace(s, d->text, d->put, &out->bytes);
        while (d->regex && (ok = wml_regex_next(d->regex, m, s, &walk, &from, &to, err))) {
            wml_buf_add(&out->bytes, s.ptr + done, WML_MIN(from, s.len) - done);
            if (from == SIZE_MAX) break;
            wml_buf_str(&out->bytes, d->put);
            done = to;
        }
        end_string(out);
    }
    wml_regex_match_free(m);
    return ok;
}

static int hex(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* "<0x61>", or -1. */
static int byte_token(struct wml_str s)
{
    if (s.len != 6 || !wml_str_starts(s, "<0x") || s.ptr[5] != '>') return -1;
    if (s.ptr[3] == '+') return hex(s.ptr[4]); /* Rust reads a sign here */
    return hex(s.ptr[3]) < 0 || hex(s.ptr[4]) < 0 ? -1 : hex(s.ptr[3]) * 16 + hex(s.ptr[4]);
}

static void put_run(struct wml_buf *raw, struct wml_tok_strings *out)
{
    bool good = wml_utf8_valid(wml_buf_view(raw));
    if (raw->len == 0) return;
    if (good) wml_buf_str(&out->bytes, wml_buf_view(raw));
    for (size_t i = 0; !good && i < raw->len; i++) wml_buf_cstr(&out->bytes, "\xef\xbf\xbd");
    end_string(out);
    wml_buf_clear(raw);
}

static bool run_fallback(const struct wml_tok_dec *d, struct wml_tok_strings *in, struct wml_tok_strings *out,
                         struct wml_err *err)
{
    struct wml_buf raw = {0};
    (void)d;
    (void)err;
    for (size_t i = 0; i < in->end.len; i++) {
        int byte = byte_token(string_at(in, i));
        if (byte >= 0) {
            wml_buf_char(&raw, (char)byte);
            continue;
        }
        put_run(&raw, out);
        wml_buf_str(&out->bytes, string_at(in, i));
        end_string(out);
    }
    put_run(&raw, out);
    wml_buf_release(&raw);
    return true;
}

static bool run_fuse(const struct wml_tok_dec *d, struct wml_tok_strings *in, struct wml_tok_strings *out, struct wml_err *err)
{
    (void)d;
    (void)err;
    wml_buf_str(&out->bytes, wml_buf_view(&in->bytes));
    end_string(out);
    return true;
}

static bool run_strip(const struct wml_tok_dec *d, struct wml_tok_strings *in, struct wml_tok_strings *out, struct wml_err *err)
{
    size_t n = d->text.len;
    (void)err;
    for (size_t i = 0; i < in->end.len; i++) {
        struct wml_str s = string_at(in, i);
        for (size_t k = 0; k < d->start && s.len >= n && memcmp(s.ptr, d->text.ptr, n) == 0; k++) s = wml_str_sub(s, n, s.len);
        for (size_t k = 0; k < d->stop && s.len >= n && memcmp(s.ptr + s.len - n, d->text.ptr, n) == 0; k++) s.len -= n;
        wml_buf_str(&out->bytes, s);
        end_string(out);
    }
    return true;
}

const struct wml_tok_dec wml_tok_dec_bytes = {.run = run_bytes}, wml_tok_dec_wordpiece = {.run = run_wordpiece},
                         wml_tok_dec_metaspace = {.run = run_metaspace}, wml_tok_dec_bpe = {.run = run_bpe},
                         wml_tok_dec_replace = {.run = run_replace}, wml_tok_dec_fallback = {.run = run_fallback},
                         wml_tok_dec_fuse = {.run = run_fuse}, wml_tok_dec_strip = {.run = run_strip};

bool wml_tok_decode(const struct wml_tok *t, const int64_t *id, size_t n, bool with_special, struct wml_buf *out,
                    struct wml_err *err)
{
    struct wml_tok_strings s[2] = {0};
    size_t now = 0;
    bool ok = true;
    for (size_t i = 0; i < n; i++) {
        const struct wml_tok_added *a = wml_tok_added_of(t, id[i]);
        struct wml_str text = a ? a->shown : wml_tok_vocab_text(&t->vocab, id[i]);
        if (!text.ptr || (!with_special && wml_map_has(&t->special, text))) continue;
        if (!t->has_decoder && s[0].end.len) wml_buf_char(&s[0].bytes, ' ');
        wml_buf_str(&s[0].bytes, text);
        end_string(&s[0]);
    }
    for (size_t i = 0; ok && i < t->dec.len && s[now].end.len; i++, now = !now) {
        clear(&s[!now]);
        ok = t->dec.at[i].run(&t->dec.at[i], &s[now], &s[!now], err);
        if (ok && s[!now].bytes.failed) ok = wml_fail(err, WML_E_UNSUPPORTED, "decoded text grows beyond 1 GiB");
    }
    if (ok) wml_buf_str(out, wml_buf_view(&s[now].bytes));
    for (int i = 0; i < 2; i++) {
        wml_buf_release(&s[i].bytes);
        WML_VEC_RELEASE(&s[i].end);
    }
    return ok;
}
