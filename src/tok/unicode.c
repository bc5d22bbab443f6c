/* tok/unicode.c - classes and lower case of characters from the runs of unicode.inc; repair of UTF-8. */
#include "tok/unicode.h"

#include "base/arena.h"
#include "tok/forms.h"

struct lower_run {
    uint32_t first, last, step;
    int32_t add;
};

#include "tok/unicode.inc"

enum { DIRECT = 0x20000 }; /* planes 0 and 1 have a table; the others have few runs */

struct wml_chars {
    uint8_t direct[DIRECT];
    struct wml_forms *forms;
};

/* The value that holds at ch: runs are position << 8 | value, 0 before the first. */
static unsigned run_at(const uint32_t *run, size_t n, uint32_t ch)
{
    size_t from = 0, to = n;
    while (from < to) {
        size_t mid = (from + to) / 2;
        if (run[mid] >> 8 <= ch) from = mid + 1;
        else to = mid;
    }
    return from ? run[from - 1] & 0xff : 0;
}

struct wml_chars *wml_chars_new(void)
{
    struct wml_chars *c = wml_xcalloc(1, sizeof *c);
    for (size_t i = 0; i < WML_COUNT(class_runs); i++) {
        size_t from = class_runs[i] >> 8, to = i + 1 < WML_COUNT(class_runs) ? class_runs[i + 1] >> 8 : DIRECT;
        if (from >= DIRECT) break;
        memset(c->direct + from, (int)(class_runs[i] & 0xff), WML_MIN(to, DIRECT) - from);
    }
    c->forms = wml_forms_new(mapping_stream, WML_COUNT(mapping_stream));
    return c;
}

void wml_chars_free(struct wml_chars *c)
{
    if (!c) return;
    wml_forms_free(c->forms);
    free(c);
}

unsigned wml_char_class(const struct wml_chars *c, uint32_t ch)
{
    return ch < DIRECT ? c->direct[ch] : run_at(class_runs, WML_COUNT(class_runs), ch);
}

const struct wml_forms *wml_chars_forms(const struct wml_chars *c)
{
    return c->forms;
}

unsigned wml_char_combining(uint32_t ch)
{
    return run_at(combining_runs, WML_COUNT(combining_runs), ch);
}

uint32_t wml_char_lower(uint32_t ch)
{
    size_t from = 0, to = WML_COUNT(lower_runs);
    if (ch == 0x130) return 'i';
    while (from < to) {
        size_t mid = (from + to) / 2;
        if (lower_runs[mid].first <= ch) from = mid + 1;
        else to = mid;
    }
    if (from == 0) return ch;
    const struct lower_run *r = &lower_runs[from - 1];
    return ch <= r->last && (ch - r->first) % r->step == 0 ? (uint32_t)((int32_t)ch + r->add) : ch;
}

/* Length of the character at s when it is right (*good), else of the longest wrong part. */
static size_t look(const unsigned char *s, size_t n, bool *good)
{
    unsigned char low = 0x80, high = 0xbf;
    size_t len;
    *good = s[0] < 0x80;
    if (s[0] < 0x80) return 1;
    if (s[0] >= 0xc2 && s[0] <= 0xdf) len = 2;
    else if ((s[0] & 0xf0) == 0xe0) len = 3;
    else if (s[0] >= 0xf0 && s[0] <= 0xf4) len = 4;
    else return 1;
    if (s[0] == 0xe0) low = 0xa0;
    else if (s[0] == 0xed) high = 0x9f;
    else if (s[0] == 0xf0) low = 0x90;
    else if (s[0] == 0xf4) high = 0x8f;
    for (size_t i = 1; i < len; i++, low = 0x80, high = 0xbf)
        if (i >= n || s[i] < low || s[i] > high) return i;
    *good = true;
    return len;
}

/* The first byte that is no UTF-8, or the length. ASCII goes by eight. */
static size_t good_until(const unsigned char *p, size_t n)
{
    size_t at = 0;
    while (at < n) {
        uint64_t eight;
        if (n - at >= 8 && (memcpy(&eight, p + at, 8), (eight & 0x8080808080808080u) == 0)) {
            at += 8;
            continue;
        }
        bool good;
        size_t len = look(p + at, n - at, &good);
        if (!good) return at;
        at += len;
    }
    return n;
}

struct wml_str wml_tok_utf8_repair(struct wml_str s, struct wml_buf *fixed)
{
    const unsigned char *p = (const unsigned char *)s.ptr;
    size_t at = s.len ? good_until(p, s.len) : 0;
    if (at == s.len) return s.ptr ? s : WML_STR("");
    wml_buf_clear(fixed);
    wml_buf_add(fixed, p, at);
    while (at < s.len) {
        bool good;
        size_t len = look(p + at, s.len - at, &good);
        if (good) wml_buf_add(fixed, p + at, len);
        else wml_buf_add(fixed, "\xef\xbf\xbd", 3);
        at += len;
    }
    return wml_buf_view(fixed);
}
