/* base/str.c - slices and the growing buffer of str.h. */
#include "base/str.h"

#include <stdarg.h>

enum { BUF_DEFAULT_MAX = 1 << 30 };

struct wml_str wml_str(const char *cstr)
{
    return cstr ? (struct wml_str){cstr, strlen(cstr)} : WML_NO_STR;
}

bool wml_str_eq(struct wml_str a, struct wml_str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

static unsigned char lower(char c)
{
    return (unsigned char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

bool wml_str_ieq(struct wml_str a, struct wml_str b)
{
    if (a.len != b.len) return false;
    for (size_t i = 0; i < a.len; i++)
        if (lower(a.ptr[i]) != lower(b.ptr[i])) return false;
    return true;
}

int wml_str_cmp(struct wml_str a, struct wml_str b)
{
    size_t n = WML_MIN(a.len, b.len);
    int order = n ? memcmp(a.ptr, b.ptr, n) : 0;
    if (order) return order;
    return (a.len > b.len) - (a.len < b.len);
}

bool wml_str_starts(struct wml_str s, const char *prefix)
{
    size_t n = strlen(prefix);
    return n <= s.len && memcmp(s.ptr ? s.ptr : "", prefix, n) == 0;
}

bool wml_str_ends(struct wml_str s, const char *suffix)
{
    size_t n = strlen(suffix);
    return n <= s.len && (n == 0 || memcmp(s.ptr + s.len - n, suffix, n) == 0);
}

size_t wml_str_find(struct wml_str s, char c)
{
    const char *at = s.len ? memchr(s.ptr, c, s.len) : NULL;
    return at ? (size_t)(at - s.ptr) : SIZE_MAX;
}

size_t wml_str_rfind(struct wml_str s, char c)
{
    for (size_t i = s.len; i-- > 0;)
        if (s.ptr[i] == c) return i;
    return SIZE_MAX;
}

bool wml_str_has(struct wml_str s, const char *part)
{
    size_t n = strlen(part);
    for (size_t i = 0; n && i + n <= s.len; i++)
        if (memcmp(s.ptr + i, part, n) == 0) return true;
    return n == 0;
}

struct wml_str wml_str_sub(struct wml_str s, size_t from, size_t to)
{
    to = WML_MIN(to, s.len);
    from = WML_MIN(from, to);
    return (struct wml_str){s.ptr ? s.ptr + from : NULL, to - from};
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

struct wml_str wml_str_trim(struct wml_str s)
{
    while (s.len && is_blank(s.ptr[0])) s = wml_str_sub(s, 1, s.len);
    while (s.len && is_blank(s.ptr[s.len - 1])) s.len--;
    return s;
}

bool wml_str_split(struct wml_str *rest, char sep, struct wml_str *part)
{
    if (!rest->ptr) return false;
    size_t at = wml_str_find(*rest, sep);
    *part = wml_str_sub(*rest, 0, at);
    *rest = at == SIZE_MAX ? WML_NO_STR : wml_str_sub(*rest, at + 1, rest->len);
    return true;
}

void wml_buf_release(struct wml_buf *b)
{
    if (!b) return;
    free(b->ptr);
    *b = (struct wml_buf){.max = b->max};
}

void wml_buf_clear(struct wml_buf *b)
{
    b->len = 0;
    b->failed = false;
    if (b->ptr) b->ptr[0] = '\0';
}

/* Makes room for n more bytes and the NUL. */
static bool grow(struct wml_buf *b, size_t n)
{
    size_t max = b->max ? b->max : BUF_DEFAULT_MAX;
    if (b->failed || b->len > max || n > max - b->len) {
        b->failed = true;
        return false;
    }
    if (b->cap > b->len && n < b->cap - b->len) return true;
    size_t cap = WML_MAX(b->cap + b->cap / 2, b->len + n + 1);
    char *ptr = realloc(b->ptr, WML_MAX(cap, 64));
    if (!ptr) {
        b->failed = true;
        return false;
    }
    b->ptr = ptr;
    b->cap = WML_MAX(cap, 64);
    return true;
}

void wml_buf_add(struct wml_buf *b, const void *bytes, size_t n)
{
    if (!grow(b, n)) return;
    if (n) memcpy(b->ptr + b->len, bytes, n);
    b->len += n;
    b->ptr[b->len] = '\0';
}

void wml_buf_str(struct wml_buf *b, struct wml_str s)
{
    wml_buf_add(b, s.ptr, s.len);
}

void wml_buf_cstr(struct wml_buf *b, const char *s)
{
    wml_buf_add(b, s, strlen(s));
}

void wml_buf_char(struct wml_buf *b, char c)
{
    wml_buf_add(b, &c, 1);
}

void wml_buf_fmt(struct wml_buf *b, const char *fmt, ...)
{
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n >= 0 && grow(b, (size_t)n)) {
        vsnprintf(b->ptr + b->len, (size_t)n + 1, fmt, again);
        b->len += (size_t)n;
    }
    va_end(again);
}

struct wml_str wml_buf_view(const struct wml_buf *b)
{
    return (struct wml_str){b->ptr ? b->ptr : "", b->len};
}

const char *wml_buf_text(const struct wml_buf *b)
{
    return b->ptr ? b->ptr : "";
}
