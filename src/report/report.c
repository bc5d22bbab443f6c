/* report/report.c - building the tree of a report, and the questions renderers ask about it. */
#include "report/report.h"

#include <math.h>
#include <stdarg.h>

#include "base/num.h"
#include "report/tree.h"
#include "text/json.h"

struct wml_report {
    struct wml_arena arena;
    struct wml_item *root;
    bool about_file;
    struct wml_item *list; /* NULL: the root is the document */
};

static struct wml_item *new_item(struct wml_arena *arena, enum wml_item_kind kind, const char *key,
                                 const char *label)
{
    struct wml_item *it = WML_NEW(arena, struct wml_item);
    it->kind = kind;
    it->key = key;
    it->label = label;
    it->arena = arena;
    return it;
}

static struct wml_item *add(struct wml_item *parent, enum wml_item_kind kind, const char *key,
                            const char *label)
{
    struct wml_item *it = new_item(parent->arena, kind, key, label);
    if (parent->last)
        parent->last->next = it;
    else
        parent->first = it;
    parent->last = it;
    parent->n++;
    return it;
}

struct wml_report *wml_report_new(void)
{
    struct wml_report *r = wml_xcalloc(1, sizeof *r);
    r->root = new_item(&r->arena, WML_ITEM_OBJECT, NULL, NULL);
    return r;
}

void wml_report_tells_of_file(struct wml_report *r)
{
    r->about_file = true;
}

bool wml_report_is_about_file(const struct wml_report *r)
{
    return r->about_file;
}

void wml_report_list(struct wml_report *r, struct wml_item *list)
{
    r->list = list;
}

const struct wml_item *wml_report_document(const struct wml_report *r)
{
    return r->list ? r->list : r->root;
}

void wml_report_free(struct wml_report *r)
{
    if (!r) return;
    wml_arena_release(&r->arena);
    free(r);
}

struct wml_item *wml_report_root(struct wml_report *r)
{
    return r->root;
}

const struct wml_item *wml_report_tree(const struct wml_report *r)
{
    return r->root;
}

bool wml_report_is_empty(const struct wml_report *r)
{
    return !r->root->first;
}

struct wml_item *wml_item_object(struct wml_item *parent, const char *key, const char *title)
{
    return add(parent, WML_ITEM_OBJECT, key, title);
}

struct wml_item *wml_item_array(struct wml_item *parent, const char *key, const char *label)
{
    return add(parent, WML_ITEM_ARRAY, key, label);
}

void wml_item_str(struct wml_item *in, const char *key, const char *label, struct wml_str v)
{
    struct wml_item *it = add(in, v.ptr ? WML_ITEM_STR : WML_ITEM_NULL, key, label);
    it->str = wml_arena_str(in->arena, v);
}

void wml_item_cstr(struct wml_item *in, const char *key, const char *label, const char *v)
{
    wml_item_str(in, key, label, wml_str(v));
}

/* printf into the arena; the va_list is used up. */
static WML_PRINTF(2, 0) struct wml_str format(struct wml_arena *arena, const char *fmt, va_list ap)
{
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    size_t len = n < 0 ? 0 : (size_t)n;
    char *text = wml_arena_alloc(arena, len + 1);
    text[0] = '\0';
    if (len) vsnprintf(text, len + 1, fmt, again);
    va_end(again);
    return (struct wml_str){text, len};
}

void wml_item_fmt(struct wml_item *in, const char *key, const char *label, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    struct wml_item *it = add(in, WML_ITEM_STR, key, label);
    it->str = format(in->arena, fmt, ap);
    va_end(ap);
}

void wml_item_int(struct wml_item *in, const char *key, const char *label, int64_t v, enum wml_show s)
{
    struct wml_item *it = add(in, WML_ITEM_INT, key, label);
    it->i = v;
    it->show = s;
}

void wml_item_num(struct wml_item *in, const char *key, const char *label, double v, unsigned digits,
                  enum wml_show s)
{
    struct wml_item *it = add(in, isfinite(v) ? WML_ITEM_NUM : WML_ITEM_NULL, key, label);
    it->num = v;
    it->digits = digits;
    it->show = s;
}

void wml_item_bool(struct wml_item *in, const char *key, const char *label, bool v)
{
    add(in, WML_ITEM_BOOL, key, label)->i = v;
}

void wml_item_null(struct wml_item *in, const char *key, const char *label)
{
    add(in, WML_ITEM_NULL, key, label);
}

void wml_item_tone(struct wml_item *in, enum wml_tone tone)
{
    if (in->last) in->last->tone = tone;
}

void wml_item_line(struct wml_item *in, enum wml_tone tone, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    struct wml_item *it = add(in, WML_ITEM_LINE, NULL, "");
    it->str = format(in->arena, fmt, ap);
    it->tone = tone;
    va_end(ap);
}

void wml_item_gap(struct wml_item *in)
{
    add(in, WML_ITEM_GAP, NULL, "");
}

struct wml_item *wml_item_table(struct wml_item *parent, const char *key, const char *title,
                                const struct wml_column *column, size_t n_columns)
{
    struct wml_item *it = add(parent, WML_ITEM_TABLE, key, title);
    struct wml_column *copy = WML_NEW_ARRAY(parent->arena, struct wml_column, n_columns);
    if (n_columns) memcpy(copy, column, n_columns * sizeof *copy);
    it->column = copy;
    it->n_columns = n_columns;
    return it;
}

struct wml_item *wml_table_row(struct wml_item *table)
{
    return add(table, WML_ITEM_OBJECT, NULL, NULL);
}

void wml_table_limit(struct wml_item *table, size_t n)
{
    table->limit = n;
}

/* A JSON number keeps its exact text's value: whole numbers as integers, others unrounded. */
static void copy_number(struct wml_item *in, const char *key, const struct wml_json_val *v)
{
    struct wml_buf text = {0};
    int64_t whole;
    wml_json_print(v, &text);
    if (wml_parse_i64(wml_buf_view(&text), &whole))
        wml_item_int(in, key, NULL, whole, WML_SHOW_PLAIN);
    else
        wml_item_num(in, key, NULL, wml_json_num(v, NAN), WML_DIGITS_ALL, WML_SHOW_PLAIN);
    wml_buf_release(&text);
}

void wml_item_json(struct wml_item *in, const char *key, const struct wml_json_val *v)
{
    if (wml_json_is_string(v)) {
        wml_item_str(in, key, NULL, wml_json_str(v));
    } else if (wml_json_is_number(v)) {
        copy_number(in, key, v);
    } else if (wml_json_is_bool(v)) {
        wml_item_bool(in, key, NULL, wml_json_bool(v, false));
    } else if (wml_json_is_object(v) || wml_json_is_array(v)) {
        bool object = wml_json_is_object(v);
        struct wml_item *it = add(in, object ? WML_ITEM_OBJECT : WML_ITEM_ARRAY, key, NULL);
        struct wml_json_iter at = {0};
        struct wml_str name;
        const struct wml_json_val *member;
        while (wml_json_next(v, &at, &name, &member))
            wml_item_json(it, object ? wml_arena_cstr(in->arena, name) : NULL, member);
    } else {
        wml_item_null(in, key, NULL);
    }
}

struct wml_item *wml_item_find(struct wml_item *in, const char *key)
{
    for (struct wml_item *it = in->first; it; it = it->next)
        if (it->key && strcmp(it->key, key) == 0) return it;
    return NULL;
}
