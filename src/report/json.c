/* report/json.c - a report as one JSON document: members in calling order, arrays of scalars on one line
 * so that shapes and samples stay readable. What has no key is for people only and left out. */
#include "report/render.h"

#include "report/tree.h"
#include "text/json.h"

enum { MAX_DEPTH = 100 }; /* below the writer's own limit */

static void put_scalar(struct wml_json *j, const struct wml_item *it)
{
    switch (it->kind) {
    case WML_ITEM_STR:
        wml_json_put_str(j, it->str);
        break;
    case WML_ITEM_INT:
        wml_json_put_int(j, it->i);
        break;
    case WML_ITEM_BOOL:
        wml_json_put_bool(j, it->i != 0);
        break;
    case WML_ITEM_NUM:
        /* Rounding digits mean nothing for 1.2e-07. */
        if (it->digits == WML_DIGITS_ALL || it->show == WML_SHOW_SCIENCE)
            wml_json_put_num(j, it->num);
        else
            wml_json_put_fixed(j, it->num, it->digits);
        break;
    default:
        wml_json_put_null(j);
    }
}

static bool is_text_only(const struct wml_item *it)
{
    return it->kind == WML_ITEM_LINE || it->kind == WML_ITEM_GAP;
}

static void put_flat(const struct wml_item *it, struct wml_buf *out, bool spaced)
{
    bool first = true;
    wml_buf_char(out, '[');
    for (const struct wml_item *e = it->first; e; e = e->next) {
        if (is_text_only(e)) continue;
        if (!first) wml_buf_cstr(out, spaced ? ", " : ",");
        first = false;
        struct wml_json one = {.out = out};
        if (e->kind == WML_ITEM_ARRAY)
            put_flat(e, out, spaced);
        else
            put_scalar(&one, e);
    }
    wml_buf_char(out, ']');
}

static void put(struct wml_json *j, const struct wml_item *it)
{
    if (!wml_item_is_container(it)) {
        put_scalar(j, it);
        return;
    }
    if (j->depth >= MAX_DEPTH) {
        wml_json_put_null(j);
        return;
    }
    if (wml_item_is_flat(it)) {
        struct wml_buf text = {0};
        put_flat(it, &text, j->indent > 0);
        wml_json_put_raw(j, wml_buf_view(&text));
        wml_buf_release(&text);
        return;
    }
    bool object = it->kind == WML_ITEM_OBJECT;
    wml_json_begin(j, object ? '{' : '[');
    for (const struct wml_item *e = it->first; e; e = e->next) {
        if (is_text_only(e) || (object && !e->key)) continue;
        if (object) wml_json_key(j, e->key);
        put(j, e);
    }
    wml_json_end(j, object ? '}' : ']');
}

static void render_json(const struct wml_report *r, const struct wml_render_opts *o, struct wml_buf *out)
{
    struct wml_json j = {.out = out, .indent = o->indent};
    put(&j, wml_report_document(r));
    wml_buf_char(out, '\n');
}

const struct wml_renderer wml_renderer_json = {
    .name = "json",
    .summary = "one JSON document",
    .render = render_json,
};
