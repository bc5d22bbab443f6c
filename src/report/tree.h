/* report/tree.h - the nodes of a report. For renderers; commands build reports through report.h.
 *
 * Children are a linked list in calling order, so a report of any size costs one allocation per item and
 * a renderer is one walk. Everything lives in the report's arena. */
#ifndef WML_REPORT_TREE_H
#define WML_REPORT_TREE_H

#include "report/report.h"

enum wml_item_kind {
    WML_ITEM_OBJECT, /* also a row of a table */
    WML_ITEM_ARRAY,
    WML_ITEM_TABLE,
    WML_ITEM_STR,
    WML_ITEM_INT,
    WML_ITEM_NUM,
    WML_ITEM_BOOL,
    WML_ITEM_NULL,
    WML_ITEM_LINE, /* text only */
    WML_ITEM_GAP   /* text only */
};

enum { WML_DIGITS_ALL = 1000 }; /* digits of a number that is not rounded */

struct wml_item {
    enum wml_item_kind kind;
    enum wml_show show;
    enum wml_tone tone;
    unsigned digits;
    const char *key;
    const char *label; /* of an object and a table: the title */
    struct wml_str str;
    int64_t i; /* INT, BOOL */
    double num;
    struct wml_item *first, *last, *next;
    size_t n; /* children */
    const struct wml_column *column;
    size_t n_columns;
    size_t limit; /* rows shown in text; 0: all */
    struct wml_arena *arena;
};

const struct wml_item *wml_report_tree(const struct wml_report *r);
/* What JSON shows: the tree, or the one list in it. */
const struct wml_item *wml_report_document(const struct wml_report *r);

/* An object, array or table, as opposed to a scalar, line or gap. */
bool wml_item_is_container(const struct wml_item *it);
/* An array whose elements are scalars, or again such arrays: fits one line. */
bool wml_item_is_flat(const struct wml_item *it);
/* The cell of a row under a column, NULL when the row has none. */
const struct wml_item *wml_row_cell(const struct wml_item *row, const struct wml_column *c);
/* Whether a reader of the text would see anything of it. */
bool wml_item_is_visible(const struct wml_item *it);
/* A scalar or flat array as people read it: "4.7 MB", "yes", "1, 3, 48". Control characters are replaced;
 * line ends stay. */
void wml_item_text(const struct wml_item *it, struct wml_buf *out);

#endif
