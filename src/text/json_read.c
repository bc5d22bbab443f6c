/* JSON read through yyjson. Depth is checked before parsing, since the library has no limit of its own
 * and callers recurse. */
#include "text/json.h"

#include <inttypes.h>
#include <math.h>
#include <yyjson.h>
#include "os/file.h"

enum { MAX_DEPTH = 100 };
static const uint64_t MAX_BYTES = UINT64_C(1) << 30;

struct wml_json_doc {
    yyjson_doc *doc;
};

static yyjson_val *val(const struct wml_json_val *v)
{
    return (yyjson_val *)(uintptr_t)v;
}

static void locate(struct wml_str text, size_t at, size_t *line, size_t *column)
{
    *line = *column = 1;
    for (size_t i = 0; i < at && i < text.len; i++) {
        *column += 1;
        if (text.ptr[i] == '\n') {
            *line += 1;
            *column = 1;
        }
    }
}

/* Position of the bracket that goes too deep, or SIZE_MAX. */
static size_t too_deep(struct wml_str text)
{
    size_t depth = 0;
    bool quoted = false;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (quoted) {
            if (c == '\\') i++;
            else if (c == '"') quoted = false;
        } else if (c == '"') quoted = true;
        else if (c == '{' || c == '[') {
            if (++depth > MAX_DEPTH) return i;
        } else if ((c == '}' || c == ']') && depth) depth--;
    }
    return SIZE_MAX;
}

static bool parse(struct wml_str text, yyjson_read_flag flags, struct wml_json_doc **out, struct wml_err *err)
{
    yyjson_read_err bad = {0};
    size_t line, column, deep;
    *out = NULL;
    if (text.len > MAX_BYTES) return wml_fail(err, WML_E_FORMAT, "JSON of %zu bytes is too long", text.len);
    if (wml_str_starts(text, "\xef\xbb\xbf")) text = wml_str_sub(text, 3, text.len);
    if ((deep = too_deep(text)) != SIZE_MAX) {
        locate(text, deep, &line, &column);
        return wml_fail(err, WML_E_FORMAT, "invalid JSON at line %zu, column %zu: nested deeper than %d", line, column,
                        MAX_DEPTH);
    }
    yyjson_doc *doc = yyjson_read_opts((char *)(uintptr_t)(text.ptr ? text.ptr : ""), text.len, flags, NULL, &bad);
    if (!doc) {
        locate(text, bad.pos, &line, &column);
        return wml_fail(err, WML_E_FORMAT, "invalid JSON at line %zu, column %zu: %s", line, column, bad.msg);
    }
    *out = wml_xcalloc(1, sizeof **out);
    (*out)->doc = doc;
    return true;
}

bool wml_json_parse(struct wml_str text, struct wml_json_doc **out, struct wml_err *err)
{
    return parse(text, 0, out, err);
}

bool wml_json_parse_python(struct wml_str text, struct wml_json_doc **out, struct wml_err *err)
{
    return parse(text, YYJSON_READ_ALLOW_INF_AND_NAN, out, err);
}

bool wml_json_load(const char *path, struct wml_json_doc **out, struct wml_err *err)
{
    struct wml_buf text = {0};
    bool ok = wml_file_read(path, MAX_BYTES, &text, err) &&
              (wml_json_parse(wml_buf_view(&text), out, err) || wml_wrap(err, "%s", path));
    wml_buf_release(&text);
    return ok;
}

void wml_json_free(struct wml_json_doc *d)
{
    if (!d) return;
    yyjson_doc_free(d->doc);
    free(d);
}

const struct wml_json_val *wml_json_root(const struct wml_json_doc *d)
{
    return d ? (const struct wml_json_val *)yyjson_doc_get_root(d->doc) : NULL;
}

bool wml_json_is_object(const struct wml_json_val *v)
{
    return yyjson_is_obj(val(v));
}

bool wml_json_is_array(const struct wml_json_val *v)
{
    return yyjson_is_arr(val(v));
}

bool wml_json_is_string(const struct wml_json_val *v)
{
    return yyjson_is_str(val(v));
}

bool wml_json_is_number(const struct wml_json_val *v)
{
    return yyjson_is_num(val(v));
}

bool wml_json_is_bool(const struct wml_json_val *v)
{
    return yyjson_is_bool(val(v));
}

bool wml_json_is_null(const struct wml_json_val *v)
{
    return !v || yyjson_is_null(val(v));
}

const struct wml_json_val *wml_json_get(const struct wml_json_val *object, const char *key)
{
    return (const struct wml_json_val *)yyjson_obj_get(val(object), key);
}

size_t wml_json_len(const struct wml_json_val *v)
{
    return yyjson_is_obj(val(v)) ? yyjson_obj_size(val(v)) : yyjson_arr_size(val(v));
}

const struct wml_json_val *wml_json_at(const struct wml_json_val *array, size_t i)
{
    return (const struct wml_json_val *)yyjson_arr_get(val(array), i);
}

bool wml_json_next(const struct wml_json_val *v, struct wml_json_iter *it, struct wml_str *key,
                   const struct wml_json_val **value)
{
    yyjson_val *at;
    if (it->i >= wml_json_len(v)) return false;
    bool object = yyjson_is_obj(val(v));
    if (it->i == 0) at = unsafe_yyjson_get_first(val(v));
    else at = (yyjson_val *)(uintptr_t)it->at;
    *key = object ? (struct wml_str){yyjson_get_str(at), yyjson_get_len(at)} : WML_NO_STR;
    *value = (const struct wml_json_val *)(object ? at + 1 : at);
    it->at = unsafe_yyjson_get_next(val(*value));
    it->i++;
    return true;
}

struct wml_str wml_json_str(const struct wml_json_val *v)
{
    if (!yyjson_is_str(val(v))) return WML_NO_STR;
    return (struct wml_str){yyjson_get_str(val(v)), yyjson_get_len(val(v))};
}

int64_t wml_json_int(const struct wml_json_val *v, int64_t fallback)
{
    if (yyjson_is_uint(val(v))) {
        uint64_t u = yyjson_get_uint(val(v));
        return u <= INT64_MAX ? (int64_t)u : fallback;
    }
    if (yyjson_is_int(val(v))) return yyjson_get_sint(val(v));
    if (yyjson_is_real(val(v))) {
        double d = yyjson_get_real(val(v));
        if (d == floor(d) && fabs(d) < 9e15) return (int64_t)d;
    }
    return fallback;
}

double wml_json_num(const struct wml_json_val *v, double fallback)
{
    return yyjson_is_num(val(v)) ? yyjson_get_num(val(v)) : fallback;
}

bool wml_json_bool(const struct wml_json_val *v, bool fallback)
{
    return yyjson_is_bool(val(v)) ? yyjson_get_bool(val(v)) : fallback;
}

struct wml_str wml_json_get_str(const struct wml_json_val *object, const char *key)
{
    return wml_json_str(wml_json_get(object, key));
}

int64_t wml_json_get_int(const struct wml_json_val *object, const char *key, int64_t fallback)
{
    return wml_json_int(wml_json_get(object, key), fallback);
}

double wml_json_get_num(const struct wml_json_val *object, const char *key, double fallback)
{
    return wml_json_num(wml_json_get(object, key), fallback);
}

bool wml_json_get_bool(const struct wml_json_val *object, const char *key, bool fallback)
{
    return wml_json_bool(wml_json_get(object, key), fallback);
}

/* Integers stay integers with all their digits; a point stays a point. */
static void put_number(struct wml_json *j, yyjson_val *v)
{
    if (yyjson_is_uint(v)) wml_json_put_uint(j, yyjson_get_uint(v));
    else if (yyjson_is_int(v)) wml_json_put_int(j, yyjson_get_sint(v));
    else wml_json_put_num(j, yyjson_get_num(v));
}

void wml_json_put_val(struct wml_json *j, const struct wml_json_val *v)
{
    struct wml_json_iter it = {0};
    struct wml_str key;
    const struct wml_json_val *inner;
    bool object = wml_json_is_object(v);
    if (object || wml_json_is_array(v)) {
        wml_json_begin(j, object ? '{' : '[');
        while (wml_json_next(v, &it, &key, &inner)) {
            if (object) wml_json_key_str(j, key);
            wml_json_put_val(j, inner);
        }
        wml_json_end(j, object ? '}' : ']');
    } else if (wml_json_is_string(v)) wml_json_put_str(j, wml_json_str(v));
    else if (wml_json_is_bool(v)) wml_json_put_bool(j, wml_json_bool(v, false));
    else if (wml_json_is_number(v)) put_number(j, val(v));
    else wml_json_put_null(j);
}

void wml_json_print(const struct wml_json_val *v, struct wml_buf *out)
{
    struct wml_json j = {.out = out};
    wml_json_put_val(&j, v);
}

size_t wml_json_pairs(const struct wml_json_val *object, struct wml_arena *arena, struct wml_pair **out)
{
    struct wml_json_iter it = {0};
    struct wml_str key;
    const struct wml_json_val *v;
    size_t n = 0;
    *out = WML_NEW_ARRAY(arena, struct wml_pair, wml_json_len(object) + 1);
    while (wml_json_next(object, &it, &key, &v))
        (*out)[n++] = (struct wml_pair){wml_arena_cstr(arena, key), wml_arena_cstr(arena, wml_json_str(v))};
    return n;
}
