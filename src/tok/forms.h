/* tok/forms.h - what unicode.c and forms.c share: the tables behind the normal forms. */
#ifndef WML_TOK_FORMS_H
#define WML_TOK_FORMS_H

#include "tok/unicode.h"

struct wml_forms;
/* The stream of unicode.inc, which must outlive the result: per character the distance from the one before, 16 x length +
 * 1 (compatibility) + 2 (composed again by NFC), and its parts in UTF-16 units. */
struct wml_forms *wml_forms_new(const uint16_t *stream, size_t n);
void wml_forms_free(struct wml_forms *f);
const struct wml_forms *wml_chars_forms(const struct wml_chars *c);
unsigned wml_char_combining(uint32_t ch); /* canonical combining class */

#endif
