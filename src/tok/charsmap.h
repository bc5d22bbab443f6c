/* tok/charsmap.h - SentencePiece's precompiled table of replacements ("Precompiled" in tokenizer.json).
 *
 * The bytes: u32 size of a trie, the trie as a double array of u32 units (darts-clone: offset from bit 10, shifted by 8 more
 * where bit 9 is set; bit 8: a value follows; label in the low byte, value in the low 31 bits of a leaf), then texts that
 * end in NUL, which the values point at. */
#ifndef WML_TOK_CHARSMAP_H
#define WML_TOK_CHARSMAP_H

#include "tok/regex.h"
#include "tok/unicode.h"

struct wml_charsmap;
/* From base64. */
bool wml_charsmap_new(struct wml_str base64, struct wml_charsmap **out, struct wml_err *err);
void wml_charsmap_free(struct wml_charsmap *m);
/* Appends s rewritten: a grapheme cluster (UAX #29) below six bytes at once where the table has it, else its characters one
 * by one. That only the shortest entry that s begins with counts is what the `tokenizers` library does. */
bool wml_charsmap_apply(const struct wml_charsmap *m, struct wml_regex_match *match, struct wml_str s, size_t head,
                        struct wml_buf *out, size_t *head_out, struct wml_err *err);

#endif
