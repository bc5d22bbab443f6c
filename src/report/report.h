/* report/report.h - what a command found, as one tree that every renderer reads.
 *
 * An item is an object, an array, a table or a scalar. `key` is its name in JSON; `label` its name in
 * text. A NULL label means "JSON only", a NULL key "text only". Labels and keys must outlive the report
 * (literals); every string value is copied. Order of calls is the order of output. */
#ifndef WML_REPORT_REPORT_H
#define WML_REPORT_REPORT_H

#include "base/arena.h"

struct wml_report;
struct wml_item;
struct wml_json_val;

struct wml_report *wml_report_new(void);
void wml_report_free(struct wml_report *r);
/* The root object. */
struct wml_item *wml_report_root(struct wml_report *r);
bool wml_report_is_empty(const struct wml_report *r);
/* The result is a file, and the report only tells of it: where nothing but results is wanted (-q), its text is not
 * shown. JSON is. */
void wml_report_tells_of_file(struct wml_report *r);
bool wml_report_is_about_file(const struct wml_report *r);

/* The document is a list: JSON shows this array or table, without the object around it. A failure takes that back. */
void wml_report_list(struct wml_report *r, struct wml_item *list);

/* How numbers are shown as text; JSON always has the bare number in the unit that the key names. */
enum wml_show {
    WML_SHOW_PLAIN,    /* 12, 3.25 */
    WML_SHOW_COUNT,    /* 1,234,567 */
    WML_SHOW_BYTES,    /* 4.7 MB */
    WML_SHOW_MS,       /* milliseconds: 12.3 ms, 4.51 s */
    WML_SHOW_MS2,      /* 12.34, for columns with the unit in their heading */
    WML_SHOW_PERCENT,  /* 12.3 % */
    WML_SHOW_SCIENCE   /* 1.2e-07 */
};
enum wml_tone { WML_TONE_PLAIN, WML_TONE_GOOD, WML_TONE_WARN, WML_TONE_BAD, WML_TONE_VALUE, WML_TONE_DIM };

/* Containers. title: heading of the section in text; NULL: no heading, rows join the parent's. */
struct wml_item *wml_item_object(struct wml_item *parent, const char *key, const char *title);
struct wml_item *wml_item_array(struct wml_item *parent, const char *key, const char *label);

/* Scalars. In an array the key is ignored. */
void wml_item_str(struct wml_item *in, const char *key, const char *label, struct wml_str v);
void wml_item_cstr(struct wml_item *in, const char *key, const char *label, const char *v);
void wml_item_fmt(struct wml_item *in, const char *key, const char *label, const char *fmt, ...)
    WML_PRINTF(4, 5);
void wml_item_int(struct wml_item *in, const char *key, const char *label, int64_t v, enum wml_show s);
/* Rounded in JSON to `digits` after the point; NaN and infinities become null and "-". */
void wml_item_num(struct wml_item *in, const char *key, const char *label, double v, unsigned digits,
                  enum wml_show s);
void wml_item_bool(struct wml_item *in, const char *key, const char *label, bool v);
void wml_item_null(struct wml_item *in, const char *key, const char *label);
/* Tone of the scalar or line added last, for terminals with colour. */
void wml_item_tone(struct wml_item *in, enum wml_tone tone);

/* Text only: one free line, with an optional tone; and an empty line. */
void wml_item_line(struct wml_item *in, enum wml_tone tone, const char *fmt, ...) WML_PRINTF(3, 4);
void wml_item_gap(struct wml_item *in);

/* A table: an array of objects in JSON, aligned columns in text. Columns with a NULL label are JSON
 * only, with a NULL key text only. Rows hold scalars whose keys are those of columns (text-only columns:
 * by label); other members appear in JSON only. */
struct wml_column {
    const char *key, *label;
    bool right;         /* numbers */
    unsigned max_width; /* longer text is cut on the left with "..."; 0: as needed */
};
struct wml_item *wml_item_table(struct wml_item *parent, const char *key, const char *title,
                                const struct wml_column *column, size_t n_columns);
struct wml_item *wml_table_row(struct wml_item *table);
/* Text shows the first n rows and "... and N more"; JSON has all. */
void wml_table_limit(struct wml_item *table, size_t n);

/* A value of a parsed JSON document, copied member by member (JSON only unless label). */
void wml_item_json(struct wml_item *in, const char *key, const struct wml_json_val *v);

/* A copy of a name that lives as long as the report: for keys and labels that are no literals. */
const char *wml_item_name(const struct wml_item *in, struct wml_str name);

/* The item under a key of an object, NULL when absent. */
struct wml_item *wml_item_find(struct wml_item *in, const char *key);

#endif
