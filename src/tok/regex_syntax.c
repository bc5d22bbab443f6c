/* tok/regex_syntax.c - Oniguruma's syntax (as Ruby has it) rewritten for PCRE2.
 *
 * What both write alike is copied. Rewritten: \s, \w and \b, whose sets differ; \h, \v; (?m), which is PCRE2's (?s); {n,m}+,
 * which repeats and is not possessive; names of scripts; brackets inside of brackets, and &&; characters that only PCRE2's extended classes
 * take for operators. Refused by name: what the two do differently and no tokenizer is known to use. */
#include "tok/regex.h"

#include "text/words.h"
#include "tok/unicode.h"

#define SPACE "\\x09-\\x0d\\x20\\x85\\xa0\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}"
/* Outside of brackets Oniguruma asks a table of Latin-1 first, which counts superscripts and fractions. */
#define WORD_SET "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}"
#define WORD WORD_SET "\\xb2\\xb3\\xb9\\xbc-\\xbe"
#define EDGE "(?:(?<=[" WORD "])(?![" WORD "])|(?<![" WORD "])(?=[" WORD "]))"
#define HEX "0-9A-Fa-f"

enum { MAX_DEPTH = 50 };

struct reader {
    struct wml_str in;
    size_t at;
    struct wml_buf *out;
    size_t group[MAX_DEPTH]; /* where open groups begin in out */
    size_t depth;
    size_t atom; /* where the last atom begins in out; SIZE_MAX: nothing to repeat */
};

static bool refuse(const struct reader *r, const char *what, struct wml_err *err)
{
    wml_fail(err, WML_E_UNSUPPORTED, "%s at byte %zu is not supported", what, r->at + 1);
    return wml_hint(err, "please report the tokenizer: patterns are rewritten from Oniguruma's syntax, and this part is not known");
}

static char peek(const struct reader *r, size_t ahead)
{
    return r->in.len - r->at > ahead ? r->in.ptr[r->at + ahead] : '\0';
}

static bool at_end(const struct reader *r)
{
    return r->at >= r->in.len;
}

static void copy(struct reader *r, size_t n)
{
    wml_buf_str(r->out, wml_str_sub(r->in, r->at, r->at + n));
    r->at += n;
}

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* \xHH, \x{H...}, \uHHHH: the digits go into \x{...}. */
static bool number(struct reader *r, struct wml_err *err)
{
    size_t most = peek(r, 1) == 'u' ? 4 : 2, n = 0;
    bool braces = peek(r, 1) == 'x' && peek(r, 2) == '{';
    r->at += braces ? 3 : 2;
    while (n < (braces ? 8 : most) && is_hex(peek(r, n))) n++;
    if (n == 0 || (braces && peek(r, n) != '}') || (most == 4 && n != 4)) return refuse(r, "this character number", err);
    wml_buf_fmt(r->out, "\\x{%.*s}", (int)n, r->in.ptr + r->at);
    r->at += n + braces;
    return true;
}

/* \p{Han}: PCRE2 takes the name of a script for all characters used with it, Oniguruma for those of it. */
static bool property(struct reader *r, struct wml_err *err)
{
    size_t name = r->at + 3, end = name;
    if (peek(r, 2) != '{') return refuse(r, "\\p without braces", err);
    if (peek(r, 3) == '^') name = ++end;
    while (end < r->in.len && r->in.ptr[end] != '}') end++;
    if (end == r->in.len) return refuse(r, "\\p without an end", err);
    copy(r, name - r->at);
    if (wml_regex_is_script(wml_str_sub(r->in, name, end))) wml_buf_cstr(r->out, "sc:");
    copy(r, end + 1 - r->at);
    return true;
}

/* An escape that stands for a set, as the inside of brackets; NULL: none. *no: the set is what is not in it. */
static const char *set_of(char c, bool in_class, bool *no)
{
    *no = c == 'S' || c == 'W' || c == 'H';
    if (c == 'w' || c == 'W') return in_class ? WORD_SET : WORD;
    return c == 's' || c == 'S' ? SPACE : c == 'h' || c == 'H' ? HEX : NULL;
}

/* An escape, inside of brackets or not. */
static bool escape(struct reader *r, bool in_class, struct wml_err *err)
{
    char c = peek(r, 1);
    bool no;
    const char *set = set_of(c, in_class, &no);
    if (set) {
        r->at += 2;
        if (in_class && !no) wml_buf_cstr(r->out, set);
        else wml_buf_fmt(r->out, "[%s%s]", no ? "^" : "", set);
        return true;
    }
    if (c == 'p' || c == 'P') return property(r, err);
    if (c == 'x' || c == 'u') return number(r, err);
    if (c == 'v') {
        r->at += 2;
        wml_buf_cstr(r->out, "\\x0b");
        return true;
    }
    if (c && strchr("nrtfaedD", c)) return copy(r, 2), true;
    if (!in_class && (c == 'b' || c == 'B')) {
        r->at += 2;
        wml_buf_cstr(r->out, c == 'b' ? EDGE : "(?!" EDGE ")");
        return true;
    }
    if (!in_class && c && strchr("Az", c)) return copy(r, 2), true;
    if (c == '\0' || (unsigned char)c >= 0x80 || is_hex(c) || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c < ' ')
        return refuse(r, "this escape", err);
    return copy(r, 2), true; /* a character that only loses its meaning */
}

/* One pair of brackets, with those inside. */
static bool class(struct reader *r, size_t depth, struct wml_err *err)
{
    bool first = true;
    if (depth > MAX_DEPTH) return refuse(r, "so many brackets", err);
    if (peek(r, 1) == ':') return refuse(r, "a POSIX bracket", err);
    copy(r, 1);
    if (peek(r, 0) == '^') copy(r, 1);
    for (; !at_end(r); first = false) {
        char c = peek(r, 0);
        if (c == ']' && !first) return copy(r, 1), true;
        if (c == '[') {
            if (!class(r, depth + 1, err)) return false;
        } else if (c == '\\') {
            if (!escape(r, true, err)) return false;
        } else if (c == '&' && peek(r, 1) == '&') {
            copy(r, 2);
        } else if (c == '-' && !first && peek(r, 1) != ']' && peek(r, 1) != '[' && peek(r, 1) != '-') {
            copy(r, 1); /* a range */
        } else if (strchr("-]&|~^", c) && c) {
            wml_buf_fmt(r->out, "\\%c", c);
            r->at++;
        } else {
            copy(r, wml_utf8_len(c));
        }
    }
    return refuse(r, "a bracket without an end", err);
}

/* (?i) and (?i-m: ...: only i, m and x are options of Ruby. */
static bool options(struct reader *r, struct wml_err *err)
{
    for (char c = peek(r, 0); c != ')' && c != ':'; c = peek(r, 0)) {
        if (c == 'm') wml_buf_char(r->out, 's');
        else if (c == 'i' || c == 'x' || c == '-') wml_buf_char(r->out, c);
        else return refuse(r, "this group", err);
        r->at++;
    }
    return true;
}

static bool group(struct reader *r, struct wml_err *err)
{
    static const char *const same[] = {"(?:", "(?=", "(?!", "(?>", "(?<=", "(?<!"};
    size_t begin = r->out->len;
    if (r->depth == MAX_DEPTH) return refuse(r, "so many groups", err);
    r->group[r->depth++] = begin;
    r->atom = SIZE_MAX;
    if (peek(r, 1) == '*') return refuse(r, "a verb", err);
    if (peek(r, 1) != '?') return copy(r, 1), true;
    for (size_t i = 0; i < WML_COUNT(same); i++)
        if (wml_str_starts(wml_str_sub(r->in, r->at, r->in.len), same[i])) return copy(r, strlen(same[i])), true;
    copy(r, 2);
    if (!options(r, err)) return false;
    if (peek(r, 0) == ')') r->depth--; /* holds to the end of the group around it */
    copy(r, 1);
    return true;
}

/* * + ? {n,m} and what follows: ? is lazy; + is possessive, but after {n,m} it repeats. */
static bool repeat(struct reader *r, bool *is_one, struct wml_err *err)
{
    size_t n = 1;
    char c = peek(r, 0);
    *is_one = true;
    if (c == '{') {
        size_t digits = 0;
        while (peek(r, n) && strchr("0123456789,", peek(r, n))) digits += peek(r, n++) != ',';
        *is_one = peek(r, n) == '}' && digits > 0;
        if (!*is_one) return true; /* a brace as it is */
        n++;
    }
    if (r->atom == SIZE_MAX) return refuse(r, "a repetition of nothing", err);
    copy(r, n);
    if (peek(r, 0) == '?') {
        copy(r, 1);
    } else if (peek(r, 0) == '+' && c != '{') {
        copy(r, 1);
    } else if (peek(r, 0) == '+') {
        struct wml_buf whole = {0};
        wml_buf_fmt(&whole, "(?:%.*s)+", (int)(r->out->len - r->atom), r->out->ptr + r->atom);
        r->out->len = r->atom;
        wml_buf_str(r->out, wml_buf_view(&whole));
        wml_buf_release(&whole);
        r->at++;
    }
    return true;
}

static bool one(struct reader *r, struct wml_err *err)
{
    char c = peek(r, 0);
    bool is_one;
    if (strchr("*+?{", c) && c) {
        if (!repeat(r, &is_one, err)) return false;
        if (is_one) return true;
        r->atom = r->out->len;
        wml_buf_cstr(r->out, "\\{");
        r->at++;
        return true;
    }
    if (c == '(') return group(r, err);
    if (c == ')') {
        if (r->depth == 0) return refuse(r, "a ) without (", err);
        r->atom = r->group[--r->depth];
        return copy(r, 1), true;
    }
    if (c == '|') return r->atom = SIZE_MAX, copy(r, 1), true;
    r->atom = r->out->len;
    if (c == '[') return class(r, 0, err);
    if (c == '\\') return escape(r, false, err);
    copy(r, wml_utf8_len(c));
    return true;
}

bool wml_regex_translate(struct wml_str pattern, struct wml_buf *out, struct wml_err *err)
{
    struct reader r = {.in = pattern, .out = out, .atom = SIZE_MAX};
    if (!wml_utf8_valid(pattern)) return wml_fail(err, WML_E_FORMAT, "it is no UTF-8");
    while (!at_end(&r))
        if (!one(&r, err)) return false;
    if (r.depth) return refuse(&r, "a ( without )", err);
    return out->failed ? wml_fail(err, WML_E_FORMAT, "it is too long") : true;
}
