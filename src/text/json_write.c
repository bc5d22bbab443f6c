/* JSON written in calling order into a buffer. */
#include "os/path.h"
#include "text/json.h"

#include <inttypes.h>
#include <math.h>

static void line(struct wml_json *j)
{
    if (!j->indent) return;
    wml_buf_char(j->out, '\n');
    for (unsigned i = 0; i < j->depth * j->indent; i++) wml_buf_char(j->out, ' ');
}

/* Before every value: the comma and the line, unless a key stands before it. */
static void lead(struct wml_json *j)
{
    if (j->after_key) {
        j->after_key = false;
        return;
    }
    if (!j->depth) return;
    if (j->has_item[j->depth]) wml_buf_char(j->out, ',');
    j->has_item[j->depth] = true;
    line(j);
}

void wml_json_begin(struct wml_json *j, char bracket)
{
    lead(j);
    wml_buf_char(j->out, bracket);
    if (j->depth + 1 < WML_COUNT(j->has_item)) j->depth++;
    j->has_item[j->depth] = false;
}

void wml_json_end(struct wml_json *j, char bracket)
{
    bool any = j->has_item[j->depth];
    if (j->depth) j->depth--;
    if (any) line(j);
    wml_buf_char(j->out, bracket);
}

/* Length of the valid UTF-8 sequence at s, 0 when it is none. */
static size_t sequence(struct wml_str s)
{
    const unsigned char *p = (const unsigned char *)s.ptr;
    size_t n = p[0] < 0x80 ? 1 : p[0] >= 0xc2 && p[0] < 0xe0 ? 2 : (p[0] & 0xf0) == 0xe0 ? 3 : p[0] >= 0xf0 && p[0] < 0xf5 ? 4 : 0;
    if (n > s.len) return 0;
    for (size_t i = 1; i < n; i++)
        if ((p[i] & 0xc0) != 0x80) return 0;
    if (n == 3 && ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] >= 0xa0))) return 0;
    if (n == 4 && ((p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] >= 0x90))) return 0;
    return n;
}

static void quote(struct wml_buf *out, struct wml_str s)
{
    wml_buf_char(out, '"');
    while (s.len) {
        unsigned char c = (unsigned char)s.ptr[0];
        size_t n = sequence(s);
        if (c == '"' || c == '\\') wml_buf_fmt(out, "\\%c", c);
        else if (c == '\n') wml_buf_cstr(out, "\\n");
        else if (c == '\t') wml_buf_cstr(out, "\\t");
        else if (c == '\r') wml_buf_cstr(out, "\\r");
        else if (c < 0x20 || c == 0x7f) wml_buf_fmt(out, "\\u%04x", c);
        else if (n) wml_buf_add(out, s.ptr, n);
        else wml_buf_cstr(out, "\xef\xbf\xbd");
        s = wml_str_sub(s, n ? n : 1, s.len);
    }
    wml_buf_char(out, '"');
}

void wml_json_key_str(struct wml_json *j, struct wml_str key)
{
    lead(j);
    quote(j->out, key);
    wml_buf_cstr(j->out, j->indent ? ": " : ":");
    j->after_key = true;
}

void wml_json_key(struct wml_json *j, const char *key)
{
    wml_json_key_str(j, wml_str(key));
}

void wml_json_put_str(struct wml_json *j, struct wml_str s)
{
    lead(j);
    if (s.ptr) quote(j->out, s);
    else wml_buf_cstr(j->out, "null");
}

void wml_json_put_cstr(struct wml_json *j, const char *s)
{
    wml_json_put_str(j, wml_str(s));
}

void wml_json_put_path(struct wml_json *j, const char *path)
{
    struct wml_buf full = {0};
    struct wml_err ignored = {0};
    if (wml_path_absolute(&full, wml_str(path), &ignored)) wml_json_put_str(j, wml_buf_view(&full));
    else wml_json_put_cstr(j, path);
    wml_buf_release(&full);
}

void wml_json_put_int(struct wml_json *j, int64_t v)
{
    lead(j);
    wml_buf_fmt(j->out, "%" PRId64, v);
}

void wml_json_put_uint(struct wml_json *j, uint64_t v)
{
    lead(j);
    wml_buf_fmt(j->out, "%" PRIu64, v);
}

void wml_json_put_num(struct wml_json *j, double v)
{
    char text[40];
    lead(j);
    if (!isfinite(v)) {
        wml_buf_cstr(j->out, "null");
        return;
    }
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, v);
        if (strtod(text, NULL) == v) break;
    }
    /* "1e-07" is written as "1e-7". */
    char *e = strchr(text, 'e');
    if (e && e[1] && e[2] == '0' && e[3]) memmove(e + 2, e + 3, strlen(e + 3) + 1);
    wml_buf_cstr(j->out, text);
    if (!strpbrk(text, ".e")) wml_buf_cstr(j->out, ".0");
}

void wml_json_put_fixed(struct wml_json *j, double v, unsigned digits)
{
    char text[400];
    lead(j);
    if (!isfinite(v)) {
        wml_buf_cstr(j->out, "null");
        return;
    }
    int n = snprintf(text, sizeof text, "%.*f", (int)WML_MIN(digits, 30u), v);
    size_t len = n > 0 && (size_t)n < sizeof text ? (size_t)n : 0;
    if (memchr(text, '.', len)) {
        while (len > 2 && text[len - 1] == '0' && text[len - 2] != '.') len--;
        wml_buf_add(j->out, text, len);
    } else {
        wml_buf_add(j->out, text, len);
        wml_buf_cstr(j->out, ".0");
    }
}

void wml_json_put_bool(struct wml_json *j, bool v)
{
    lead(j);
    wml_buf_cstr(j->out, v ? "true" : "false");
}

void wml_json_put_null(struct wml_json *j)
{
    lead(j);
    wml_buf_cstr(j->out, "null");
}

void wml_json_put_raw(struct wml_json *j, struct wml_str json)
{
    lead(j);
    wml_buf_str(j->out, json);
}

void wml_json_put_pairs(struct wml_json *j, const struct wml_pair *p, size_t n)
{
    wml_json_begin(j, '{');
    for (size_t i = 0; i < n; i++) {
        wml_json_key(j, p[i].key);
        wml_json_put_cstr(j, p[i].value);
    }
    wml_json_end(j, '}');
}
