/* A subset of YAML, turned into JSON text: one mapping per level of indentation, plain or quoted scalars, comments.
 * Config files are written by hand, so what is not understood is refused with its line, never guessed. */
#include "text/yaml.h"

#include "base/num.h"
#include "os/file.h"

enum { MAX_DEPTH = 16, MAX_FILE = 1 << 20 };

struct yaml {
    struct wml_json json;
    size_t indent[MAX_DEPTH]; /* of each open mapping */
    size_t depth;
    size_t line;
    bool wants_child; /* the last key had no value */
};

static bool fail(const struct yaml *y, struct wml_err *err, const char *what)
{
    return wml_fail(err, WML_E_FORMAT, "line %zu: %s", y->line, what);
}

static bool is_any(struct wml_str s, const char *const *words)
{
    for (; *words; words++)
        if (wml_str_is(s, *words)) return true;
    return false;
}

/* Without a comment: '#' at the start or behind a blank, outside quotes. */
static struct wml_str uncommented(struct wml_str s)
{
    char quote = 0;
    for (size_t i = 0; i < s.len; i++) {
        if (quote) quote = s.ptr[i] == quote ? 0 : quote;
        else if (s.ptr[i] == '"' || s.ptr[i] == '\'') quote = s.ptr[i];
        else if (s.ptr[i] == '#' && (!i || s.ptr[i - 1] == ' ' || s.ptr[i - 1] == '\t')) return (struct wml_str){s.ptr, i};
    }
    return s;
}

static bool unquote(struct yaml *y, struct wml_str *s, bool *quoted, struct wml_err *err)
{
    char q = s->len ? s->ptr[0] : 0;
    *quoted = q == '"' || q == '\'';
    if (!*quoted) return true;
    if (s->len < 2 || s->ptr[s->len - 1] != q) return fail(y, err, "a quote is not closed");
    *s = (struct wml_str){s->ptr + 1, s->len - 2};
    for (size_t i = 0; i < s->len; i++)
        if (s->ptr[i] == '\\' || s->ptr[i] == q) return fail(y, err, "escapes are not understood here");
    return true;
}

static bool put_scalar(struct yaml *y, struct wml_str s, struct wml_err *err)
{
    static const char *const yes[] = {"true", "True", "TRUE", "yes", "Yes", "on", "On", NULL};
    static const char *const no[] = {"false", "False", "FALSE", "no", "No", "off", "Off", NULL};
    static const char *const null[] = {"null", "Null", "~", NULL};
    bool quoted;
    int64_t whole;
    double number;
    if (!unquote(y, &s, &quoted, err)) return false;
    if (quoted) wml_json_put_str(&y->json, s);
    else if (strchr("[{&*!|>%@`", s.ptr[0])) return fail(y, err, "only mappings of plain values are understood");
    else if (is_any(s, yes)) wml_json_put_bool(&y->json, true);
    else if (is_any(s, no)) wml_json_put_bool(&y->json, false);
    else if (is_any(s, null)) wml_json_put_null(&y->json);
    else if (wml_parse_i64(s, &whole)) wml_json_put_int(&y->json, whole);
    else if (wml_parse_f64(s, &number)) wml_json_put_num(&y->json, number);
    else wml_json_put_str(&y->json, s);
    return true;
}

/* Opens and closes mappings until the line's indentation is that of the innermost one. */
static bool settle(struct yaml *y, size_t indent, struct wml_err *err)
{
    if (y->wants_child) {
        y->wants_child = false;
        if (indent > y->indent[y->depth - 1]) {
            if (y->depth == MAX_DEPTH) return fail(y, err, "nested too deeply");
            wml_json_begin(&y->json, '{');
            y->indent[y->depth++] = indent;
            return true;
        }
        wml_json_put_null(&y->json);
    }
    while (y->depth > 1 && indent < y->indent[y->depth - 1]) {
        wml_json_end(&y->json, '}');
        y->depth--;
    }
    return indent == y->indent[y->depth - 1] || fail(y, err, "this indentation fits no mapping above");
}

static bool read_line(struct yaml *y, struct wml_str line, struct wml_err *err)
{
    size_t indent = 0, colon = 0;
    bool quoted;
    while (indent < line.len && line.ptr[indent] == ' ') indent++;
    if (indent < line.len && line.ptr[indent] == '\t') return fail(y, err, "a tab as indentation");
    struct wml_str s = wml_str_trim(uncommented(line));
    if (!s.len || wml_str_is(s, "---") || wml_str_is(s, "...") || wml_str_is(s, "{}")) return true;
    if (s.ptr[0] == '-') return fail(y, err, "sequences are not understood");
    while (colon < s.len && !(s.ptr[colon] == ':' && (colon + 1 == s.len || s.ptr[colon + 1] == ' '))) colon++;
    if (colon == s.len) return fail(y, err, "expected `name: value`");
    struct wml_str key = wml_str_trim((struct wml_str){s.ptr, colon});
    struct wml_str value = wml_str_trim((struct wml_str){s.ptr + colon + 1, s.len - colon - 1});
    if (!settle(y, indent, err) || !unquote(y, &key, &quoted, err)) return false;
    if (!key.len) return fail(y, err, "an empty name");
    wml_json_key_str(&y->json, key);
    y->wants_child = !value.len;
    return !value.len || put_scalar(y, value, err);
}

bool wml_yaml_parse(struct wml_str text, struct wml_json_doc **out, struct wml_err *err)
{
    struct wml_buf json = {0};
    struct yaml y = {.json = {.out = &json}, .depth = 1};
    bool ok = true;
    wml_json_begin(&y.json, '{');
    for (size_t at = 0; ok && at < text.len; at++) {
        size_t end = at;
        while (end < text.len && text.ptr[end] != '\n') end++;
        y.line++;
        struct wml_str line = {text.ptr + at, end - at};
        if (line.len && line.ptr[line.len - 1] == '\r') line.len--;
        if (y.line == 1 && wml_str_starts(line, "\xef\xbb\xbf")) line = (struct wml_str){line.ptr + 3, line.len - 3};
        ok = read_line(&y, line, err);
        at = end;
    }
    if (y.wants_child) wml_json_put_null(&y.json);
    while (y.depth--) wml_json_end(&y.json, '}');
    ok = ok && wml_json_parse(wml_buf_view(&json), out, err);
    wml_buf_release(&json);
    return ok;
}

bool wml_yaml_load(const char *path, struct wml_json_doc **out, struct wml_err *err)
{
    struct wml_buf text = {0};
    bool ok = wml_file_read(path, MAX_FILE, &text, err) && (wml_yaml_parse(wml_buf_view(&text), out, err) || wml_wrap(err, "%s", path));
    wml_buf_release(&text);
    return ok;
}
