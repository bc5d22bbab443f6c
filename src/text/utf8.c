/* UTF-8: validity, and columns on a terminal. */
#include "text/words.h"

/* The character at s and its length; length 1 and U+FFFD for bytes that are no UTF-8. */
static uint32_t decode(struct wml_str s, size_t *len)
{
    const unsigned char *p = (const unsigned char *)s.ptr;
    size_t n = p[0] < 0x80 ? 1 : (p[0] & 0xe0) == 0xc0 ? 2 : (p[0] & 0xf0) == 0xe0 ? 3 : (p[0] & 0xf8) == 0xf0 ? 4 : 0;
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    *len = 1;
    if (n == 1) return p[0];
    if (n == 0 || n > s.len) return 0xfffd;
    uint32_t c = p[0] & (0x7fu >> n);
    for (size_t i = 1; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80) return 0xfffd;
        c = c << 6 | (p[i] & 0x3fu);
    }
    if (c < least[n] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) return 0xfffd;
    *len = n;
    return c;
}

bool wml_utf8_valid(struct wml_str s)
{
    while (s.len) {
        size_t n;
        uint32_t c = decode(s, &n);
        if (c == 0xfffd && n == 1) return false;
        s = wml_str_sub(s, n, s.len);
    }
    return true;
}

struct range { uint32_t first, last; };

static bool in(const struct range *r, size_t n, uint32_t c)
{
    for (size_t i = 0; i < n; i++)
        if (c >= r[i].first && c <= r[i].last) return true;
    return false;
}

static size_t columns(uint32_t c)
{
    static const struct range none[] = {{0x300, 0x36f}, {0x483, 0x489}, {0x591, 0x5bd}, {0x610, 0x61a},
        {0x64b, 0x65f}, {0x200b, 0x200f}, {0x20d0, 0x20ff}, {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}};
    static const struct range wide[] = {{0x1100, 0x115f}, {0x2e80, 0x303e}, {0x3041, 0xa4cf}, {0xa960, 0xa97f},
        {0xac00, 0xd7a3}, {0xf900, 0xfaff}, {0xfe30, 0xfe6f}, {0xff01, 0xff60}, {0xffe0, 0xffe6},
        {0x1f300, 0x1f64f}, {0x1f900, 0x1f9ff}, {0x20000, 0x3fffd}};
    if (c < 0x20 || c == 0x7f) return 0;
    if (c < 0x300) return 1;
    return in(none, WML_COUNT(none), c) ? 0 : in(wide, WML_COUNT(wide), c) ? 2 : 1;
}

size_t wml_utf8_width(struct wml_str s)
{
    size_t width = 0;
    while (s.len) {
        size_t n;
        width += columns(decode(s, &n));
        s = wml_str_sub(s, n, s.len);
    }
    return width;
}

size_t wml_utf8_prefix(struct wml_str s, size_t limit)
{
    size_t width = 0, at = 0;
    while (at < s.len) {
        size_t n;
        size_t w = columns(decode(wml_str_sub(s, at, s.len), &n));
        if (width + w > limit) break;
        width += w;
        at += n;
    }
    return at;
}
