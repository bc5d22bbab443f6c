/* CSV, row by row. */
#include "text/csv.h"

enum { MAX_FIELDS = 4096, MAX_FIELD = 16 << 20 };

void wml_csv_init(struct wml_csv *c, struct wml_str text)
{
    *c = (struct wml_csv){.text = text, .line = 1};
    if (wml_str_starts(text, "\xef\xbb\xbf")) c->at = 3;
}

void wml_csv_release(struct wml_csv *c)
{
    WML_VEC_RELEASE(&c->field);
    wml_arena_release(&c->arena);
}

static char peek(const struct wml_csv *c)
{
    return c->at < c->text.len ? c->text.ptr[c->at] : '\n';
}

/* A field in quotes; c->at stands behind the opening one. */
static bool quoted(struct wml_csv *c, struct wml_str *out, struct wml_err *err)
{
    struct wml_buf b = {.max = MAX_FIELD};
    size_t line = c->line;
    for (;; c->at++) {
        if (c->at >= c->text.len) {
            wml_buf_release(&b);
            return wml_fail(err, WML_E_FORMAT, "CSV line %zu: a quote is not closed", line);
        }
        char ch = c->text.ptr[c->at];
        if (ch == '"') {
            c->at++;
            if (c->at >= c->text.len || c->text.ptr[c->at] != '"') break;
        }
        if (ch == '\n') c->line++;
        wml_buf_char(&b, ch);
    }
    bool ok = !b.failed || wml_fail(err, WML_E_FORMAT, "CSV line %zu: a field is over 16 MiB", line);
    *out = wml_arena_str(&c->arena, b.len ? wml_buf_view(&b) : WML_STR(""));
    wml_buf_release(&b);
    return ok;
}

static bool one_field(struct wml_csv *c, struct wml_err *err)
{
    struct wml_str f;
    if (peek(c) == '"' && c->at < c->text.len) {
        c->at++;
        if (!quoted(c, &f, err)) return false;
        /* What follows the closing quote up to the comma is dropped, as other readers do. */
        while (c->at < c->text.len && peek(c) != ',' && peek(c) != '\n' && peek(c) != '\r') c->at++;
    } else {
        size_t start = c->at;
        while (c->at < c->text.len && peek(c) != ',' && peek(c) != '\n' && peek(c) != '\r') c->at++;
        f = wml_str_sub(c->text, start, c->at);
        if (f.len > MAX_FIELD) return wml_fail(err, WML_E_FORMAT, "CSV line %zu: a field is over 16 MiB", c->line);
    }
    if (c->field.len >= MAX_FIELDS)
        return wml_fail(err, WML_E_FORMAT, "CSV line %zu: more than %d fields", c->line, MAX_FIELDS);
    WML_PUSH(&c->field, f);
    return true;
}

bool wml_csv_next(struct wml_csv *c, struct wml_err *err)
{
    c->field.len = 0;
    wml_arena_reset(&c->arena);
    while (c->at < c->text.len && (peek(c) == '\n' || peek(c) == '\r')) {
        if (peek(c) == '\n') c->line++;
        c->at++;
    }
    if (c->at >= c->text.len) return false;
    for (;;) {
        if (!one_field(c, err)) return false;
        if (c->at >= c->text.len || peek(c) != ',') break;
        c->at++;
        if (c->at >= c->text.len) {
            WML_PUSH(&c->field, WML_STR(""));
            break;
        }
    }
    return true;
}

size_t wml_csv_find(const struct wml_csv *c, const char *name)
{
    for (size_t i = 0; i < c->field.len; i++)
        if (wml_str_is(wml_str_trim(c->field.at[i]), name)) return i;
    return SIZE_MAX;
}

void wml_csv_put(struct wml_buf *out, struct wml_str field, bool first)
{
    bool quote = false;
    for (size_t i = 0; i < field.len; i++) quote = quote || strchr(",\"\r\n", field.ptr[i]) != NULL;
    if (!first) wml_buf_char(out, ',');
    if (!quote) {
        wml_buf_str(out, field);
        return;
    }
    wml_buf_char(out, '"');
    for (size_t i = 0; i < field.len; i++) {
        if (field.ptr[i] == '"') wml_buf_char(out, '"');
        wml_buf_char(out, field.ptr[i]);
    }
    wml_buf_char(out, '"');
}
