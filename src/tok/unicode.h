/* tok/unicode.h - characters: UTF-8, classes, lower case, the normal forms NFD, NFC, NFKD, NFKC (UAX #15).
 *
 * Written here, since no package that the build may fetch for every target carries a library for it, and since ids must
 * equal those of the `tokenizers` library, which mixes versions of Unicode: scripts/unicode-tables asks the library for
 * the facts. Text given to these functions is valid UTF-8 (see wml_tok_utf8_repair). */
#ifndef WML_TOK_UNICODE_H
#define WML_TOK_UNICODE_H

#include "base/str.h"

enum wml_char_class { /* bits */
    WML_CHAR_PUNCT = 1,      /* categories P, and the symbols among ASCII */
    WML_CHAR_NONSPACING = 2, /* category Mn */
    WML_CHAR_MARK = 4,       /* categories M, as StripAccents knows them */
    WML_CHAR_CONTROL = 8,    /* what BERT's cleaning removes */
    WML_CHAR_NUMERIC = 16,   /* categories N */
    WML_CHAR_SPACE = 32,     /* White_Space */
    WML_CHAR_UPPER = 64,     /* has another lower case */
    WML_CHAR_UNSTABLE = 128  /* normal forms change it, or move it, or join it to what is before it */
};

struct wml_chars; /* tables made for quick use; never change */
struct wml_chars *wml_chars_new(void);
void wml_chars_free(struct wml_chars *c);
unsigned wml_char_class(const struct wml_chars *c, uint32_t ch);
uint32_t wml_char_lower(uint32_t ch); /* of a character with WML_CHAR_UPPER; U+0130 is followed by U+0307 */

enum wml_form { WML_NFD, WML_NFC, WML_NFKD, WML_NFKC };
/* Appends the form of `s`. `head` bytes of s, 0 or whole characters, became as many bytes of the result as are returned. */
size_t wml_chars_form(const struct wml_chars *c, enum wml_form form, struct wml_str s, size_t head, struct wml_buf *out);

/* The text itself when it is UTF-8; else a copy in `fixed` with each longest wrong part (Unicode 15, table 3-8) as U+FFFD. */
struct wml_str wml_tok_utf8_repair(struct wml_str s, struct wml_buf *fixed);

/* The character at *p, which moves behind it. */
static inline uint32_t wml_utf8_next(const char **p)
{
    const unsigned char *u = (const unsigned char *)*p;
    if (u[0] < 0x80) return *p += 1, u[0];
    if (u[0] < 0xe0) return *p += 2, (u[0] & 0x1fu) << 6 | (u[1] & 0x3fu);
    if (u[0] < 0xf0) return *p += 3, (u[0] & 0xfu) << 12 | (u[1] & 0x3fu) << 6 | (u[2] & 0x3fu);
    return *p += 4, (u[0] & 7u) << 18 | (u[1] & 0x3fu) << 12 | (u[2] & 0x3fu) << 6 | (u[3] & 0x3fu);
}

/* Length of the character that begins with this byte. */
static inline size_t wml_utf8_len(char first)
{
    unsigned char u = (unsigned char)first;
    return u < 0x80 ? 1 : u < 0xe0 ? 2 : u < 0xf0 ? 3 : 4;
}

static inline size_t wml_utf8_write(uint32_t ch, char to[4])
{
    if (ch < 0x80) return to[0] = (char)ch, 1;
    if (ch < 0x800) return to[0] = (char)(0xc0 | ch >> 6), to[1] = (char)(0x80 | (ch & 0x3f)), 2;
    to[0] = (char)(ch < 0x10000 ? 0xe0 | ch >> 12 : 0xf0 | ch >> 18);
    if (ch < 0x10000) return to[1] = (char)(0x80 | (ch >> 6 & 0x3f)), to[2] = (char)(0x80 | (ch & 0x3f)), 3;
    to[1] = (char)(0x80 | (ch >> 12 & 0x3f));
    return to[2] = (char)(0x80 | (ch >> 6 & 0x3f)), to[3] = (char)(0x80 | (ch & 0x3f)), 4;
}

static inline void wml_utf8_put(struct wml_buf *b, uint32_t ch)
{
    char c[4];
    wml_buf_add(b, c, wml_utf8_write(ch, c));
}

#endif
