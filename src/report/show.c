/* report/show.c - one value as people read it, shared by the renderers that write for people. */
#include "report/tree.h"

#include <inttypes.h>
#include <math.h>

#include "text/words.h"

bool wml_item_is_container(const struct wml_item *it)
{
    return it->kind == WML_ITEM_OBJECT || it->kind == WML_ITEM_ARRAY || it->kind == WML_ITEM_TABLE;
}

bool wml_item_is_flat(const struct wml_item *it)
{
    if (it->kind != WML_ITEM_ARRAY) return false;
    for (const struct wml_item *e = it->first; e; e = e->next)
        if (wml_item_is_container(e) && !wml_item_is_flat(e)) return false;
    return true;
}

const struct wml_item *wml_row_cell(const struct wml_item *row, const struct wml_column *c)
{
    for (const struct wml_item *it = row->first; it; it = it->next) {
        if (c->key ? it->key && strcmp(it->key, c->key) == 0
                   : c->label && it->label && strcmp(it->label, c->label) == 0)
            return it;
    }
    return NULL;
}

static bool any_visible(const struct wml_item *it)
{
    for (const struct wml_item *e = it->first; e; e = e->next)
        if (e->kind != WML_ITEM_GAP && wml_item_is_visible(e)) return true;
    return false;
}

bool wml_item_is_visible(const struct wml_item *it)
{
    switch (it->kind) {
    case WML_ITEM_OBJECT:
        return any_visible(it);
    case WML_ITEM_TABLE:
        for (size_t i = 0; i < it->n_columns; i++)
            if (it->column[i].label) return it->n > 0;
        return false;
    default:
        return it->label != NULL;
    }
}

static void add_clean(struct wml_buf *out, struct wml_str s)
{
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        bool c1 = c == 0xc2 && i + 1 < s.len && ((unsigned char)s.ptr[i + 1] & 0xe0) == 0x80;
        if (c1) i++;
        if (c == '\t')
            wml_buf_char(out, ' ');
        else if (c1 || (c < 0x20 && c != '\n') || c == 0x7f)
            wml_buf_char(out, '?');
        else
            wml_buf_char(out, (char)c);
    }
}

/* Text of an untrusted model may carry escape codes, or no UTF-8 at all. */
static void add_string(struct wml_buf *out, struct wml_str s)
{
    if (wml_utf8_valid(s)) {
        add_clean(out, s);
        return;
    }
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        wml_buf_char(out, c < 0x20 || c >= 0x7f ? '?' : (char)c);
    }
}

static void add_plain(struct wml_buf *out, double v, unsigned digits)
{
    char text[400];
    if (digits == WML_DIGITS_ALL) {
        snprintf(text, sizeof text, "%.6g", v);
    } else {
        snprintf(text, sizeof text, "%.*f", (int)WML_MIN(digits, 17u), v);
        if (strchr(text, '.')) {
            size_t n = strlen(text);
            while (text[n - 1] == '0') n--;
            if (text[n - 1] == '.') n--;
            text[n] = '\0';
        }
    }
    wml_buf_cstr(out, strcmp(text, "-0") == 0 ? "0" : text);
}

static void add_number(struct wml_buf *out, const struct wml_item *it)
{
    bool whole = it->kind == WML_ITEM_INT;
    double v = whole ? (double)it->i : it->num;
    uint64_t size = whole    ? (it->i < 0 ? 0 - (uint64_t)it->i : (uint64_t)it->i)
                    : v < 0  ? (uint64_t)WML_MIN(-v + 0.5, 1e18)
                             : (uint64_t)WML_MIN(v + 0.5, 1e18);
    switch (it->show) {
    case WML_SHOW_COUNT:
        if (v < 0) wml_buf_char(out, '-');
        wml_count_text(out, size);
        break;
    case WML_SHOW_BYTES:
        if (v < 0) wml_buf_char(out, '-');
        wml_size_text(out, size);
        break;
    case WML_SHOW_MS:
        if (v < 0) wml_buf_char(out, '-');
        wml_duration_text(out, fabs(v));
        break;
    case WML_SHOW_MS2:
        wml_buf_fmt(out, "%.2f", v);
        break;
    case WML_SHOW_PERCENT:
        wml_buf_fmt(out, "%.1f %%", v);
        break;
    case WML_SHOW_SCIENCE:
        wml_buf_fmt(out, v == 0 ? "%.0f" : "%.1e", v);
        break;
    default:
        if (whole)
            wml_buf_fmt(out, "%" PRId64, it->i);
        else
            add_plain(out, v, it->digits);
    }
}

static void add_array(const struct wml_item *it, struct wml_buf *out)
{
    if (!it->first) wml_buf_cstr(out, "none");
    for (const struct wml_item *e = it->first; e; e = e->next) {
        if (e != it->first) wml_buf_cstr(out, ", ");
        if (e->kind == WML_ITEM_ARRAY) wml_buf_char(out, '[');
        if (e->kind != WML_ITEM_ARRAY || e->first) wml_item_text(e, out);
        if (e->kind == WML_ITEM_ARRAY) wml_buf_char(out, ']');
    }
}

void wml_item_text(const struct wml_item *it, struct wml_buf *out)
{
    switch (it->kind) {
    case WML_ITEM_STR:
        if (it->str.len)
            add_string(out, it->str);
        else
            wml_buf_char(out, '-');
        break;
    case WML_ITEM_LINE:
        add_string(out, it->str);
        break;
    case WML_ITEM_INT:
    case WML_ITEM_NUM:
        add_number(out, it);
        break;
    case WML_ITEM_BOOL:
        wml_buf_cstr(out, it->i ? "yes" : "no");
        break;
    case WML_ITEM_ARRAY:
        add_array(it, out);
        break;
    default:
        wml_buf_char(out, '-');
    }
}
