/* base/str.h - string slices and one growing buffer.
 *
 * struct wml_str does not own its bytes and need not end in NUL; ptr NULL means "absent", which
 * differs from empty. Text is UTF-8. struct wml_buf owns heap memory, always NUL-terminated once
 * something was added, and refuses to grow beyond its max: it then keeps `failed` set and ignores
 * further bytes, so a caller may check once at the end. */
#ifndef WML_BASE_STR_H
#define WML_BASE_STR_H

#include <stddef.h>
#include <stdint.h>
#include "base/err.h"

struct wml_str {
    const char *ptr;
    size_t len;
};

#define WML_STR(literal) ((struct wml_str){"" literal, sizeof(literal) - 1})
#define WML_NO_STR ((struct wml_str){0})
/* For printf with "%.*s". Long strings are cut at 1 MiB. */
#define WML_ARG(s) (int)((s).len < 1048576 ? (s).len : 1048576), ((s).ptr ? (s).ptr : "")

struct wml_str wml_str(const char *cstr); /* NULL gives an absent string */
bool wml_str_eq(struct wml_str a, struct wml_str b);
/* Inline: of a literal the compiler knows the length, and most comparisons end there. */
static inline bool wml_str_is(struct wml_str a, const char *cstr)
{
    const size_t n = cstr ? strlen(cstr) : 0;
    return a.len == n && (!n || memcmp(a.ptr, cstr, n) == 0);
}
bool wml_str_ieq(struct wml_str a, struct wml_str b); /* ASCII case ignored */
int wml_str_cmp(struct wml_str a, struct wml_str b);  /* byte order */
bool wml_str_starts(struct wml_str s, const char *prefix);
bool wml_str_ends(struct wml_str s, const char *suffix);
/* Position of the first (last) c, or SIZE_MAX. */
size_t wml_str_find(struct wml_str s, char c);
size_t wml_str_rfind(struct wml_str s, char c);
bool wml_str_has(struct wml_str s, const char *part);
struct wml_str wml_str_sub(struct wml_str s, size_t from, size_t to); /* clamped */
struct wml_str wml_str_trim(struct wml_str s);                        /* ASCII blanks */
/* Takes the part before the next sep off *rest; false when nothing is left. */
bool wml_str_split(struct wml_str *rest, char sep, struct wml_str *part);

struct wml_buf {
    char *ptr;
    size_t len, cap;
    size_t max;  /* 0: 1 GiB */
    bool failed; /* the maximum or the memory was exceeded */
};

void wml_buf_release(struct wml_buf *b);
void wml_buf_clear(struct wml_buf *b); /* keeps the memory */
void wml_buf_add(struct wml_buf *b, const void *bytes, size_t n);
void wml_buf_str(struct wml_buf *b, struct wml_str s);
void wml_buf_cstr(struct wml_buf *b, const char *s);
void wml_buf_char(struct wml_buf *b, char c);
void wml_buf_fmt(struct wml_buf *b, const char *fmt, ...) WML_PRINTF(2, 3);
struct wml_str wml_buf_view(const struct wml_buf *b); /* valid until the next change */
const char *wml_buf_text(const struct wml_buf *b);    /* NUL-terminated, "" when empty */

#endif
