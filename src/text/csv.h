/* text/csv.h - CSV as RFC 4180 with LF or CRLF: read row by row from memory, written with quoting. */
#ifndef WML_TEXT_CSV_H
#define WML_TEXT_CSV_H

#include "base/vec.h"

struct wml_csv {
    struct wml_str text;
    size_t at, line;
    struct wml_arena arena; /* unquoted fields alias the text */
    WML_VEC(struct wml_str) field;
};

void wml_csv_init(struct wml_csv *c, struct wml_str text); /* text must outlive it; a BOM is skipped */
void wml_csv_release(struct wml_csv *c);
/* The next row in c->field; false at the end, or on an error (err->code != WML_OK): quote not closed,
 * over 4096 fields, over 16 MiB in a field. Blank lines are skipped. Fields are valid until the next call. */
bool wml_csv_next(struct wml_csv *c, struct wml_err *err);
/* Column by header name, SIZE_MAX when absent: for the row read last. */
size_t wml_csv_find(const struct wml_csv *c, const char *name);
/* Adds one field to a row that is being written; first: no comma before it. */
void wml_csv_put(struct wml_buf *out, struct wml_str field, bool first);

#endif
