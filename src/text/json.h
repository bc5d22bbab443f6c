/* text/json.h - JSON read and written; the library behind it is yyjson.
 *
 * Reading: wml_json_parse gives a document; values are pointers into it and live as long. Every getter
 * accepts NULL and gives its fallback for a missing value or another type, so chains need no tests.
 * Writing: struct wml_json streams into a buffer in calling order; commas and indents are its business. */
#ifndef WML_TEXT_JSON_H
#define WML_TEXT_JSON_H

#include "base/arena.h"
#include "base/pair.h"
#include "base/str.h"

struct wml_json_doc;
struct wml_json_val;

/* Strict JSON, at most 1 GiB, depth at most 100, a BOM is skipped. Errors give line and column. The bytes
 * are copied. */
bool wml_json_parse(struct wml_str text, struct wml_json_doc **out, struct wml_err *err);
/* The same, and NaN, Infinity and -Infinity are numbers: Python's json module writes them. */
bool wml_json_parse_python(struct wml_str text, struct wml_json_doc **out, struct wml_err *err);
bool wml_json_load(const char *path, struct wml_json_doc **out, struct wml_err *err);
void wml_json_free(struct wml_json_doc *d);

const struct wml_json_val *wml_json_root(const struct wml_json_doc *d);
bool wml_json_is_object(const struct wml_json_val *v);
bool wml_json_is_array(const struct wml_json_val *v);
bool wml_json_is_string(const struct wml_json_val *v);
bool wml_json_is_number(const struct wml_json_val *v);
bool wml_json_is_bool(const struct wml_json_val *v);
bool wml_json_is_null(const struct wml_json_val *v); /* also NULL */
/* Member of an object, NULL when absent. */
const struct wml_json_val *wml_json_get(const struct wml_json_val *object, const char *key);
/* Elements of an array, members of an object. */
size_t wml_json_len(const struct wml_json_val *v);
/* NULL beyond the end. O(i) unless all elements are scalars: walk long arrays with wml_json_next. */
const struct wml_json_val *wml_json_at(const struct wml_json_val *array, size_t i);
/* Walks an object or array: `*it` starts as 0. key is absent for arrays. false at the end. */
struct wml_json_iter { size_t i; const void *at; };
bool wml_json_next(const struct wml_json_val *v, struct wml_json_iter *it, struct wml_str *key,
                   const struct wml_json_val **value);

struct wml_str wml_json_str(const struct wml_json_val *v);                  /* absent: no string */
int64_t wml_json_int(const struct wml_json_val *v, int64_t fallback);       /* whole numbers only */
double wml_json_num(const struct wml_json_val *v, double fallback);
bool wml_json_bool(const struct wml_json_val *v, bool fallback);
/* Member getters. */
struct wml_str wml_json_get_str(const struct wml_json_val *object, const char *key);
int64_t wml_json_get_int(const struct wml_json_val *object, const char *key, int64_t fallback);
double wml_json_get_num(const struct wml_json_val *object, const char *key, double fallback);
bool wml_json_get_bool(const struct wml_json_val *object, const char *key, bool fallback);
/* The value as compact JSON text. */
void wml_json_print(const struct wml_json_val *v, struct wml_buf *out);
/* The members of an object whose values are strings, in the arena; gives their number. */
size_t wml_json_pairs(const struct wml_json_val *object, struct wml_arena *arena, struct wml_pair **out);

struct wml_json { /* the writer; zero but for out */
    struct wml_buf *out;
    unsigned indent; /* spaces per level; 0: one line */
    unsigned depth;
    bool has_item[104]; /* per level */
    bool after_key;
};

void wml_json_begin(struct wml_json *j, char bracket); /* '{' or '[' */
void wml_json_end(struct wml_json *j, char bracket);   /* '}' or ']' */
void wml_json_key(struct wml_json *j, const char *key);
void wml_json_key_str(struct wml_json *j, struct wml_str key);
void wml_json_put_str(struct wml_json *j, struct wml_str s); /* absent: null. Bad UTF-8 becomes U+FFFD */
void wml_json_put_cstr(struct wml_json *j, const char *s);
void wml_json_put_path(struct wml_json *j, const char *path); /* absolute, for a reader with another current folder */
void wml_json_put_int(struct wml_json *j, int64_t v);
void wml_json_put_uint(struct wml_json *j, uint64_t v);
/* Shortest text that reads back the same, "0.1"; NaN and infinities: null. */
void wml_json_put_num(struct wml_json *j, double v);
/* Rounded to at most `digits` after the point, trailing zeros cut to one ("12.0"). */
void wml_json_put_fixed(struct wml_json *j, double v, unsigned digits);
void wml_json_put_bool(struct wml_json *j, bool v);
void wml_json_put_null(struct wml_json *j);
void wml_json_put_raw(struct wml_json *j, struct wml_str json); /* already JSON */
void wml_json_put_val(struct wml_json *j, const struct wml_json_val *v);
/* {"key":"value",...} */
void wml_json_put_pairs(struct wml_json *j, const struct wml_pair *p, size_t n);

#endif
