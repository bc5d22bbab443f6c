/* graph/text_lex.c - the pieces of the text form. The input is untrusted: nesting is limited, sizes are
 * compared with what was written, and memory grows only with the text. */
#include "graph/text_lex.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>

#include "base/num.h"

const char *const wml_text_attr_type[WML_ATTR_TYPES + 1] = {
    [WML_ATTR_UNDEFINED] = "undefined", [WML_ATTR_FLOAT] = "float", [WML_ATTR_INT] = "int",
    [WML_ATTR_STRING] = "string", [WML_ATTR_TENSOR] = "tensor", [WML_ATTR_GRAPH] = "graph",
    [WML_ATTR_FLOATS] = "floats", [WML_ATTR_INTS] = "ints", [WML_ATTR_STRINGS] = "strings",
    [WML_ATTR_TENSORS] = "tensors", [WML_ATTR_GRAPHS] = "graphs", [WML_ATTR_SPARSE] = "sparse_tensor",
    [WML_ATTR_SPARSES] = "sparse_tensors", [WML_ATTR_TYPE] = "type_proto", [WML_ATTR_TYPES] = "type_protos"};

bool wml_lex_fail(struct wml_lex *l, const char *at, const char *fmt, ...)
{
    char text[512];
    size_t line = 1, column = 1;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    for (const char *c = l->start; c < at; c++) {
        column = *c == '\n' ? 1 : column + 1;
        line += *c == '\n';
    }
    return wml_fail(l->err, WML_E_FORMAT, "line %zu, column %zu: %s", line, column, text);
}

char wml_lex_peek(struct wml_lex *l)
{
    while (l->p < l->end) {
        if (*l->p == '#') {
            while (l->p < l->end && *l->p != '\n') l->p++;
        } else if (*l->p == ' ' || *l->p == '\t' || *l->p == '\n' || *l->p == '\r') l->p++;
        else return *l->p ? *l->p : 1; /* 0 means the end */
    }
    return 0;
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

bool wml_lex_at_word(struct wml_lex *l)
{
    return is_letter(wml_lex_peek(l));
}

bool wml_lex_at_name(struct wml_lex *l)
{
    return wml_lex_at_word(l) || wml_lex_peek(l) == '"';
}

bool wml_lex_expected(struct wml_lex *l, const char *what)
{
    char c = wml_lex_peek(l);
    size_t n = 0;
    if (!c) return wml_lex_fail(l, l->p, "expected %s, found the end of the text", what);
    while (l->p + n < l->end && n < 40 && (is_letter(l->p[n]) || is_digit(l->p[n]))) n++;
    if (!n && (c < ' ' || c > '~'))
        return wml_lex_fail(l, l->p, "expected %s, found byte 0x%02x", what, (unsigned)(unsigned char)*l->p);
    return wml_lex_fail(l, l->p, "expected %s, found '%.*s'", what, n ? (int)n : 1, l->p);
}

bool wml_lex_take(struct wml_lex *l, const char *text)
{
    size_t n = strlen(text);
    wml_lex_peek(l);
    if ((size_t)(l->end - l->p) < n || memcmp(l->p, text, n) != 0) return false;
    l->p += n;
    return true;
}

bool wml_lex_want(struct wml_lex *l, const char *text, const char *where)
{
    char what[100];
    if (wml_lex_take(l, text)) return true;
    snprintf(what, sizeof what, "'%s' %s", text, where);
    return wml_lex_expected(l, what);
}

bool wml_lex_word(struct wml_lex *l, struct wml_str *out, const char *what)
{
    if (!wml_lex_at_word(l)) return wml_lex_expected(l, what);
    const char *from = l->p;
    while (l->p < l->end && (is_letter(*l->p) || is_digit(*l->p))) l->p++;
    *out = (struct wml_str){from, (size_t)(l->p - from)};
    return true;
}

static int hex(char c)
{
    if (is_digit(c)) return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The character after a backslash. */
static bool escape(struct wml_lex *l, char *out)
{
    char c = l->p < l->end ? *l->p++ : 0;
    *out = c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c;
    if (c == '"' || c == '\\' || *out != c) return true;
    if (c == 'x' && l->end - l->p >= 2 && hex(l->p[0]) >= 0 && hex(l->p[1]) >= 0) {
        *out = (char)(unsigned char)(hex(l->p[0]) * 16 + hex(l->p[1]));
        l->p += 2;
        return true;
    }
    return wml_lex_fail(l, l->p - (c != 0), "unknown escape: \\\" \\\\ \\n \\t \\r and \\x00 to \\xff are known");
}

bool wml_lex_string(struct wml_lex *l, struct wml_str *out)
{
    const char *open = l->p;
    if (wml_lex_peek(l) != '"') return wml_lex_expected(l, "a string");
    open = l->p++;
    size_t n = 0, longest = 0;
    for (const char *c = l->p; c < l->end && *c != '"'; c++) {
        if (*c == '\\' && c + 1 < l->end) c++;
        longest++;
    }
    char *text = wml_arena_alloc(&l->m->arena, longest + 2);
    while (l->p < l->end && *l->p != '"') {
        char c = *l->p++;
        if (c == '\\' && !escape(l, &c)) return false;
        if (n <= longest) text[n++] = c;
    }
    if (l->p == l->end) return wml_lex_fail(l, open, "the string that starts here has no end");
    l->p++;
    text[n] = 0;
    *out = (struct wml_str){text, n};
    if (l->end - l->p >= 3 && !memcmp(l->p, "...", 3))
        return wml_lex_fail(l, open, "the string was cut when it was printed: print it with all data");
    return true;
}

bool wml_lex_name(struct wml_lex *l, struct wml_str *out, const char *what)
{
    if (wml_lex_peek(l) == '"') return wml_lex_string(l, out);
    if (!wml_lex_word(l, out, what)) return false;
    *out = wml_arena_str(&l->m->arena, *out);
    return true;
}

static bool number_char(const char *from, const char *p)
{
    if (is_digit(*p) || is_letter(*p) || *p == '.') return true;
    return (*p == '-' || *p == '+') && (p == from || p[-1] == 'e' || p[-1] == 'E');
}

bool wml_lex_number(struct wml_lex *l, struct wml_lex_number *out)
{
    char c = wml_lex_peek(l);
    const char *from = l->p;
    *out = (struct wml_lex_number){.is_negative = c == '-'};
    if (!c) return wml_lex_expected(l, "a number");
    while (l->p < l->end && number_char(from, l->p)) l->p++;
    struct wml_str s = {from, (size_t)(l->p - from)};
    bool ok = c == '-' ? wml_parse_i64(s, &out->i) : wml_parse_u64(s, &out->u);
    out->is_int = ok;
    out->d = c == '-' ? (double)out->i : (double)out->u;
    if (ok) return true;
    if (s.len && s.len <= 60 && wml_parse_f64(s, &out->d)) {
        bool digits_only = true;
        for (size_t i = c == '-' || c == '+'; i < s.len; i++) digits_only = digits_only && is_digit(s.ptr[i]);
        if (!digits_only) return true;
        return wml_lex_fail(l, from, "the number '%.*s' does not fit 64 bits", WML_ARG(s));
    }
    l->p = from;
    return wml_lex_expected(l, "a number");
}

bool wml_lex_int(struct wml_lex *l, int64_t *out)
{
    struct wml_lex_number n;
    wml_lex_peek(l);
    const char *from = l->p;
    if (!wml_lex_number(l, &n)) return false;
    if (!n.is_int) return wml_lex_fail(l, from, "expected a whole number");
    if (!n.is_negative && n.u > INT64_MAX) return wml_lex_fail(l, from, "the number does not fit 64 signed bits");
    *out = n.is_negative ? n.i : (int64_t)n.u;
    return true;
}

bool wml_lex_enter(struct wml_lex *l)
{
    if (l->depth++ < WML_TEXT_DEPTH) return true;
    return wml_lex_fail(l, l->p, "nested deeper than %d levels", WML_TEXT_DEPTH);
}

/* ---- types ---- */

static bool dims(struct wml_lex *l, enum wml_dtype elem, struct wml_type **out)
{
    WML_VEC(struct wml_axis) axis = {0};
    int64_t rank = -1;
    if (wml_lex_take(l, "...") || wml_lex_peek(l) == ']') goto done;
    do {
        struct wml_axis a = {.size = -1};
        if (wml_lex_at_name(l)) {
            if (!wml_lex_name(l, &a.symbol, "a size")) return false;
        } else if (!wml_lex_take(l, "?")) {
            const char *at = (wml_lex_peek(l), l->p);
            if (!wml_lex_int(l, &a.size)) return false;
            if (a.size < 0) return wml_lex_fail(l, at, "a size is negative: ? is an unknown one");
        }
        WML_PUSH_IN(&l->m->arena, &axis, a);
    } while (wml_lex_take(l, ","));
    rank = (int64_t)axis.len;
done:
    if (!wml_lex_want(l, "]", "after the sizes")) return false;
    *out = wml_type_tensor(l->m, elem, rank, axis.at);
    return true;
}

static bool elem_name(struct wml_lex *l, enum wml_dtype *out)
{
    struct wml_str word;
    const char *at = (wml_lex_peek(l), l->p);
    if (!wml_lex_word(l, &word, "a type")) return false;
    *out = wml_dtype_parse(word);
    if (*out || wml_str_is(word, "undefined")) return true;
    return wml_lex_fail(l, at, "'%.*s' is no type", WML_ARG(word));
}

static bool dense_type(struct wml_lex *l, struct wml_type **out)
{
    enum wml_dtype elem;
    if (!elem_name(l, &elem)) return false;
    if (wml_lex_take(l, "[")) return dims(l, elem, out);
    *out = wml_type_tensor(l->m, elem, 0, NULL);
    return true;
}

static bool map_type(struct wml_lex *l, struct wml_type **out)
{
    enum wml_dtype key;
    struct wml_map_type *map = WML_NEW(&l->m->arena, struct wml_map_type);
    if (!elem_name(l, &key) || !wml_lex_want(l, ",", "after the type of keys")) return false;
    if (!wml_lex_type(l, &map->value)) return false;
    map->key = (int32_t)key;
    map->msg.has = 1u << 1;
    (*out = WML_NEW(&l->m->arena, struct wml_type))->map = map;
    return true;
}

static bool opaque_type(struct wml_lex *l, struct wml_type **out)
{
    struct wml_opaque_type *o = WML_NEW(&l->m->arena, struct wml_opaque_type);
    if (!wml_lex_string(l, &o->domain) || !wml_lex_want(l, ",", "after the domain")) return false;
    if (!wml_lex_string(l, &o->name)) return false;
    (*out = WML_NEW(&l->m->arena, struct wml_type))->opaque = o;
    return true;
}

static bool sparse_type(struct wml_lex *l, struct wml_type **out)
{
    if (!dense_type(l, out)) return false;
    (*out)->sparse = (*out)->tensor;
    (*out)->tensor = NULL;
    return true;
}

bool wml_lex_type(struct wml_lex *l, struct wml_type **out)
{
    static const char *const kind[] = {"seq(", "optional(", "map(", "sparse(", "opaque("};
    struct wml_type *inner = NULL;
    size_t i = 0;
    *out = NULL;
    if (wml_lex_take(l, "?")) return true;
    while (i < WML_COUNT(kind) && !wml_lex_take(l, kind[i])) i++;
    if (i == WML_COUNT(kind)) return dense_type(l, out);
    if (!wml_lex_enter(l)) return false;
    bool ok = i == 2   ? map_type(l, out)
              : i == 3 ? sparse_type(l, out)
              : i == 4 ? opaque_type(l, out)
                       : wml_lex_type(l, &inner);
    l->depth--;
    if (!ok || !wml_lex_want(l, ")", "after the inner type")) return false;
    if (i == 0) *out = wml_type_sequence(l->m, inner);
    if (i == 1) *out = wml_type_optional(l->m, inner);
    return true;
}

/* ---- elements ---- */

/* Whether the integer fits `bits` bits; its two's complement in *out. */
static bool fit_integer(const struct wml_lex_number *n, unsigned bits, bool has_sign, uint64_t *out)
{
    uint64_t top = (uint64_t)1 << (bits - 1);
    *out = n->is_negative ? (uint64_t)n->i : n->u;
    if (n->is_negative) return n->i == 0 || (has_sign && n->i >= -(int64_t)(top - 1) - 1);
    return n->u <= (has_sign ? top - 1 : top - 1 + top);
}

/* Adds element i; the buffer grows by whole bytes. */
static bool add_bits(struct wml_buf *b, unsigned bits, size_t i, uint64_t v)
{
    if (bits < 8) {
        if (i * bits % 8 == 0) wml_buf_char(b, 0);
        if (b->failed) return false;
        b->ptr[b->len - 1] = (char)((unsigned char)b->ptr[b->len - 1] | (unsigned)((v & ((1u << bits) - 1)) << (i * bits % 8)));
        return true;
    }
    for (unsigned k = 0; k < bits; k += 8) wml_buf_char(b, (char)(unsigned char)(v >> k & 0xff));
    return !b->failed;
}

/* The bits of a float, after 0x. */
static bool hex_number(struct wml_lex *l, const char *at, unsigned bits, uint64_t *v)
{
    const char *first = l->p;
    for (*v = 0; l->p < l->end && hex(*l->p) >= 0; l->p++) {
        if (*v >> 60) return wml_lex_fail(l, at, "the number has more than %u bits", bits);
        *v = *v << 4 | (uint64_t)hex(*l->p);
    }
    if (l->p == first) return wml_lex_expected(l, "hexadecimal digits");
    if (bits < 64 && *v >> bits) return wml_lex_fail(l, at, "the number has more than %u bits", bits);
    return true;
}

static bool number_element(struct wml_lex *l, int dtype, size_t i, struct wml_buf *b)
{
    const struct wml_dtype_info *info = wml_dtype_info(dtype);
    struct wml_lex_number n;
    unsigned char bytes[16] = {0};
    uint64_t v = 0;
    const char *at = (wml_lex_peek(l), l->p);
    if (info->cls == WML_CLASS_BOOL && (wml_lex_take(l, "true") || wml_lex_take(l, "false")))
        return add_bits(b, 8, i, *at == 't');
    if (info->cls == WML_CLASS_FLOAT && wml_lex_take(l, "0x")) {
        if (!hex_number(l, at, info->bits, &v)) return false;
        return add_bits(b, info->bits, i, v);
    }
    if (!wml_lex_number(l, &n)) return false;
    if (info->cls == WML_CLASS_FLOAT && info->bits >= 16) {
        wml_dtype_store(dtype, bytes, 0, n.d);
        wml_buf_add(b, bytes, info->bits / 8);
        return true;
    }
    if (info->cls == WML_CLASS_FLOAT) return wml_lex_fail(l, at, "type %s is written by its bits, as 0x3c", info->text);
    if (!n.is_int) return wml_lex_fail(l, at, "an element of type %s is a whole number", info->text);
    if (!fit_integer(&n, info->bits, info->cls == WML_CLASS_INT, &v))
        return wml_lex_fail(l, at, "the number does not fit type %s", info->text);
    return add_bits(b, info->bits, i, v);
}

/* The dims of a tensor that this type describes. */
static struct wml_tensor *blank_tensor(struct wml_lex *l, const char *at, const struct wml_type *type)
{
    int64_t count;
    enum wml_dtype elem = wml_type_elem(type);
    if (!type || !type->tensor || !elem || !wml_type_is_static(type)) {
        wml_lex_fail(l, at, "a constant needs a tensor type whose sizes are all known");
        return NULL;
    }
    if (!wml_type_count(type, &count)) return NULL;
    struct wml_tensor *t = WML_NEW(&l->m->arena, struct wml_tensor);
    t->dtype = (int32_t)elem;
    t->msg.has = 1u << 2;
    for (size_t i = 0; i < (size_t)wml_type_rank(type); i++)
        WML_PUSH_IN(&l->m->arena, &t->dims, wml_type_axis(type, i).size);
    return t;
}

bool wml_lex_elements(struct wml_lex *l, const struct wml_type *type, struct wml_tensor **out)
{
    struct wml_buf b = {0};
    size_t n = 0;
    const char *at = (wml_lex_peek(l), l->p);
    struct wml_tensor *t = blank_tensor(l, at, type);
    if (!t || !wml_lex_want(l, "{", "before the elements")) return false;
    if (wml_lex_take(l, "..."))
        return wml_lex_fail(l, at, "the elements were left out when this was printed: print it with all data");
    int dtype = t->dtype == WML_C64 ? WML_F32 : t->dtype == WML_C128 ? WML_F64 : t->dtype;
    bool ok = true;
    while (ok && wml_lex_peek(l) && wml_lex_peek(l) != '}' && (!n || (ok = wml_lex_want(l, ",", "between elements")))) {
        struct wml_str s;
        if (dtype == WML_STRING) ok = wml_lex_string(l, &s);
        else ok = number_element(l, dtype, n, &b);
        if (ok && dtype == WML_STRING) WML_PUSH_IN(&l->m->arena, &t->string_data, s);
        n++;
    }
    uint64_t want = 0;
    ok = ok && wml_lex_want(l, "}", "after the elements") && wml_tensor_count(t, &want, l->err);
    if (ok && dtype != t->dtype) ok = want <= SIZE_MAX / 2 && (want *= 2, true);
    if (ok && n != want)
        ok = wml_lex_fail(l, at, "%zu elements are written, the type needs %" PRIu64, n, want);
    if (ok && dtype != WML_STRING)
        t = wml_tensor_copy(l->m, (enum wml_dtype)t->dtype, t->dims.len, t->dims.at, b.ptr, b.len, l->err);
    wml_buf_release(&b);
    *out = t;
    return ok && t;
}

bool wml_lex_tensor(struct wml_lex *l, struct wml_tensor **out)
{
    struct wml_type *type;
    return wml_lex_type(l, &type) && wml_lex_elements(l, type, out);
}

bool wml_lex_sparse(struct wml_lex *l, const struct wml_type *type, struct wml_sparse_tensor **out)
{
    const char *at = (wml_lex_peek(l), l->p);
    struct wml_tensor *shape = blank_tensor(l, at, type);
    struct wml_sparse_tensor *s = *out = WML_NEW(&l->m->arena, struct wml_sparse_tensor);
    if (!shape) return false;
    for (size_t i = 0; i < shape->dims.len; i++) WML_PUSH_IN(&l->m->arena, &s->dims, shape->dims.at[i]);
    if (!wml_lex_want(l, "sparse(", "before the elements") || !wml_lex_tensor(l, &s->values)) return false;
    if (!wml_lex_want(l, ",", "after the values") || !wml_lex_tensor(l, &s->indices)) return false;
    return wml_lex_want(l, ")", "after the indices");
}
