/* flow/html.h - what the HTML reports share: one style, escaping. Reports refer to nothing outside themselves. */
#ifndef WML_FLOW_HTML_H
#define WML_FLOW_HTML_H

#include "base/str.h"

/* The style sheet; colours follow the reader's light or dark setting. */
extern const char wml_html_style[];
/* Text of others, safe between tags and in quoted attributes. */
void wml_html_escape(struct wml_buf *b, struct wml_str s);
/* Cells of a table: a text; decibels (empty when they are not known, infinite ones as words). */
void wml_html_cell(struct wml_buf *b, const char *text);
void wml_html_ratio_cell(struct wml_buf *b, bool known, double db);

#endif
