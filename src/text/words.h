/* text/words.h - small things about words: similar names, wildcards, UTF-8, sizes for people. */
#ifndef WML_TEXT_WORDS_H
#define WML_TEXT_WORDS_H

#include "base/str.h"

/* The name most like `word` (Damerau-Levenshtein, ASCII case ignored), or NULL when none is near. */
const char *wml_similar(struct wml_str word, const char *const *names, size_t n);
/* Shell wildcards * ? [a-z]; case matters. */
bool wml_glob_match(struct wml_str pattern, struct wml_str s);

bool wml_utf8_valid(struct wml_str s);
/* Columns on a terminal: combining marks 0, wide East Asian 2. */
size_t wml_utf8_width(struct wml_str s);
/* The longest prefix of at most `columns` columns, never half a character. */
size_t wml_utf8_prefix(struct wml_str s, size_t columns);

/* "1.5 MB" (powers of 1000), "1234" below 10000 bytes as "1234 B". */
void wml_size_text(struct wml_buf *out, uint64_t bytes);
/* "850 us", "12.3 ms", "4.51 s", "2 min 5 s". */
void wml_duration_text(struct wml_buf *out, double ms);
/* "1,234,567". */
void wml_count_text(struct wml_buf *out, uint64_t n);

#endif
