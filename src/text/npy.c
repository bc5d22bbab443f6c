/* numpy arrays: the header is a Python dict literal in ASCII, of which numpy writes exactly three keys.
 * Anything else, object arrays and text arrays are refused. */
#include "text/npy.h"

#include <inttypes.h>
#include "base/num.h"
#include "os/file.h"
#include "os/path.h"
#include "text/npz.h"

struct header {
    struct wml_str descr, shape;
    bool fortran;
};

static struct wml_str skip_blank(struct wml_str s)
{
    while (s.len && (s.ptr[0] == ' ' || s.ptr[0] == '\n' || s.ptr[0] == ',')) s = wml_str_sub(s, 1, s.len);
    return s;
}

/* A quoted word at the start of *s. */
static bool take_quoted(struct wml_str *s, struct wml_str *out)
{
    if (!s->len || (s->ptr[0] != '\'' && s->ptr[0] != '"')) return false;
    struct wml_str rest = wml_str_sub(*s, 1, s->len);
    size_t end = wml_str_find(rest, s->ptr[0]);
    if (end == SIZE_MAX) return false;
    *out = wml_str_sub(rest, 0, end);
    *s = wml_str_sub(rest, end + 1, rest.len);
    return true;
}

static bool take_entry(struct wml_str *s, struct header *h)
{
    struct wml_str key;
    if (!take_quoted(s, &key)) return false;
    *s = skip_blank(*s);
    if (!s->len || s->ptr[0] != ':') return false;
    *s = skip_blank(wml_str_sub(*s, 1, s->len));
    if (wml_str_is(key, "descr")) return take_quoted(s, &h->descr);
    if (wml_str_is(key, "fortran_order")) {
        h->fortran = wml_str_starts(*s, "True");
        if (!h->fortran && !wml_str_starts(*s, "False")) return false;
        *s = wml_str_sub(*s, h->fortran ? 4 : 5, s->len);
        return true;
    }
    if (!wml_str_is(key, "shape") || !s->len || s->ptr[0] != '(') return false;
    size_t end = wml_str_find(*s, ')');
    if (end == SIZE_MAX) return false;
    h->shape = wml_str_sub(*s, 1, end);
    *s = wml_str_sub(*s, end + 1, s->len);
    return true;
}

static bool parse_dict(struct wml_str s, struct header *h)
{
    s = wml_str_trim(s);
    if (s.len < 2 || s.ptr[0] != '{' || s.ptr[s.len - 1] != '}') return false;
    s = skip_blank(wml_str_sub(s, 1, s.len - 1));
    while (s.len) {
        if (!take_entry(&s, h)) return false;
        s = skip_blank(s);
    }
    return h->descr.len && h->shape.ptr;
}

static bool parse_shape(struct wml_str s, struct wml_npy *a)
{
    struct wml_str part;
    while (wml_str_split(&s, ',', &part)) {
        int64_t n;
        part = wml_str_trim(part);
        if (!part.len) continue;
        if (a->rank == WML_NPY_MAX_RANK || !wml_parse_i64(part, &n) || n < 0) return false;
        a->dim[a->rank++] = n;
    }
    return true;
}

static bool find_type(struct wml_str descr, struct wml_npy *a, bool *swap, struct wml_err *err)
{
    struct wml_str name = descr;
    char order = descr.ptr[0];
    *swap = order == '>';
    if (strchr("<>|=", order)) name = wml_str_sub(descr, 1, descr.len);
    for (int d = 1; d < WML_DTYPE_COUNT; d++) {
        const char *npy = wml_dtype_info(d)->npy;
        if (!npy || !wml_str_is(name, npy)) continue;
        a->dtype = (enum wml_dtype)d;
        return true;
    }
    wml_fail(err, WML_E_UNSUPPORTED, "array '%.*s' has the element type '%.*s'", WML_ARG(a->name), WML_ARG(descr));
    return wml_hint(err, "save it as numbers, e.g. array.astype('float32'); text and objects are not supported");
}

static void swap_bytes(unsigned char *p, size_t n, size_t width)
{
    for (size_t i = 0; i + width <= n; i += width)
        for (size_t k = 0; k < width / 2; k++) {
            unsigned char t = p[i + k];
            p[i + k] = p[i + width - 1 - k];
            p[i + width - 1 - k] = t;
        }
}

/* Fortran to C order: element by element, the index counted up in C order. */
static void reorder(const struct wml_npy *a, const unsigned char *from, unsigned char *to, size_t n, size_t width)
{
    size_t stride[WML_NPY_MAX_RANK], index[WML_NPY_MAX_RANK] = {0}, at = 0, step = width;
    for (size_t i = 0; i < a->rank; i++) {
        stride[i] = step;
        step *= (size_t)a->dim[i];
    }
    for (size_t k = 0; k < n; k++) {
        memcpy(to + k * width, from + at, width);
        for (size_t i = a->rank; i-- > 0;) {
            at += stride[i];
            if (++index[i] < (size_t)a->dim[i]) break;
            at -= stride[i] * (size_t)a->dim[i];
            index[i] = 0;
        }
    }
}

static bool convert(struct wml_npy *a, bool fortran, bool swap, size_t n, size_t width, struct wml_npys *out,
                    struct wml_err *err)
{
    unsigned char *copy = wml_big_alloc(a->data.len + 1, err);
    if (!copy) return false;
    WML_PUSH(&out->owned, copy);
    if (fortran && a->rank > 1) reorder(a, a->data.ptr, copy, n, width);
    else memcpy(copy, a->data.ptr, a->data.len);
    if (swap) swap_bytes(copy, a->data.len, wml_dtype_info((int)a->dtype)->cls == WML_CLASS_COMPLEX ? width / 2 : width);
    a->data.ptr = copy;
    return true;
}

bool wml_npy_parse(struct wml_span bytes, struct wml_str name, struct wml_npys *out, struct wml_err *err)
{
    struct wml_rd r = wml_rd(bytes.ptr, bytes.len);
    struct wml_span magic, text;
    struct wml_npy a = {.name = wml_arena_str(&out->arena, name)};
    struct header h = {0};
    uint8_t major, minor;
    uint16_t short_len = 0;
    uint32_t len = 0;
    bool swap;
    if (!wml_rd_bytes(&r, 6, &magic, err) || memcmp(magic.ptr, "\x93NUMPY", 6) != 0)
        return wml_fail(err, WML_E_FORMAT, "'%.*s' is no numpy array", WML_ARG(name));
    if (!wml_rd_u8(&r, &major, err) || !wml_rd_u8(&r, &minor, err)) return false;
    if (major < 1 || major > 3)
        return wml_fail(err, WML_E_FORMAT, "'%.*s': npy version %u.%u is not known", WML_ARG(name), major, minor);
    if (!(major == 1 ? wml_rd_u16(&r, &short_len, err) : wml_rd_u32(&r, &len, err))) return false;
    if (major == 1) len = short_len;
    if (!wml_rd_bytes(&r, len, &text, err)) return wml_wrap(err, "'%.*s'", WML_ARG(name));
    if (!parse_dict((struct wml_str){(const char *)text.ptr, text.len}, &h) || !parse_shape(h.shape, &a))
        return wml_fail(err, WML_E_FORMAT, "'%.*s': the npy header cannot be read", WML_ARG(name));
    if (!find_type(h.descr, &a, &swap, err)) return false;
    size_t size;
    uint64_t n, total;
    if (!wml_dims_count(a.dim, a.rank, &n) || !wml_dtype_bytes((int)a.dtype, n, &total) || !wml_to_size(total, &size))
        return wml_fail(err, WML_E_FORMAT, "'%.*s' is too large", WML_ARG(name));
    if (!wml_rd_bytes(&r, total, &a.data, err)) return wml_wrap(err, "'%.*s'", WML_ARG(name));
    size_t width = wml_dtype_info((int)a.dtype)->bits / 8;
    bool fortran = h.fortran && a.rank > 1 && n > 0;
    if ((fortran || (swap && width > 1)) && !convert(&a, fortran, swap && width > 1, n, width, out, err)) return false;
    WML_PUSH(&out->v, a);
    return true;
}

const struct wml_npy *wml_npys_find(const struct wml_npys *a, struct wml_str name)
{
    for (size_t i = 0; i < a->v.len; i++)
        if (wml_str_eq(a->v.at[i].name, name)) return &a->v.at[i];
    return NULL;
}

void wml_npys_release(struct wml_npys *a)
{
    for (size_t i = 0; i < a->owned.len; i++) free(a->owned.at[i]);
    for (size_t i = 0; i < a->map.len; i++) wml_map_close(&a->map.at[i]);
    WML_VEC_RELEASE(&a->owned);
    WML_VEC_RELEASE(&a->map);
    WML_VEC_RELEASE(&a->v);
    wml_arena_release(&a->arena);
    *a = (struct wml_npys){0};
}

static bool load_file(const char *path, struct wml_npys *out, struct wml_err *err)
{
    struct wml_map_file map;
    if (!wml_map_open(path, &map, err)) return false;
    WML_PUSH(&out->map, map);
    struct wml_span bytes = map.bytes;
    bool ok = bytes.len >= 4 && memcmp(bytes.ptr, "PK", 2) == 0
                  ? wml_npz_parse(bytes, out, err)
                  : wml_npy_parse(bytes, wml_path_stem(wml_str(path)), out, err);
    wml_map_drop(bytes); /* checksums have brought all of it in; few want all of it at a time */
    return ok || wml_wrap(err, "%s", path);
}

bool wml_npy_load(const char *path, struct wml_npys *out, struct wml_err *err)
{
    struct wml_dir_list list = {0};
    bool ok = true;
    *out = (struct wml_npys){0};
    if (!wml_dir_exists(path)) ok = load_file(path, out, err);
    else {
        ok = wml_dir_list(path, &list, err);
        for (size_t i = 0; ok && i < list.v.len; i++) {
            struct wml_buf inner = {0};
            if (list.v.at[i].is_dir || !wml_str_ends(list.v.at[i].name, ".npy")) continue;
            wml_path_join(&inner, wml_str(path), list.v.at[i].name);
            ok = load_file(wml_buf_text(&inner), out, err);
            wml_buf_release(&inner);
        }
        if (ok && !out->v.len) ok = wml_fail(err, WML_E_NOT_FOUND, "the folder %s holds no .npy file", path);
        wml_dir_list_release(&list);
    }
    if (!ok) wml_npys_release(out);
    return ok;
}

void wml_npy_header(const struct wml_npy *a, struct wml_buf *out)
{
    struct wml_buf dict = {0};
    const struct wml_dtype_info *info = wml_dtype_info((int)a->dtype);
    wml_buf_fmt(&dict, "{'descr': '%c%s', 'fortran_order': False, 'shape': (", info->bits > 8 ? '<' : '|', info->npy);
    for (size_t i = 0; i < a->rank; i++) wml_buf_fmt(&dict, "%s%" PRId64, i ? ", " : "", a->dim[i]);
    wml_buf_cstr(&dict, a->rank == 1 ? ",), }" : "), }");
    while ((10 + dict.len + 1) % 64) wml_buf_char(&dict, ' ');
    wml_buf_char(&dict, '\n');
    wml_buf_add(out, "\x93NUMPY\x01\x00", 8);
    wml_buf_char(out, (char)(dict.len & 0xff));
    wml_buf_char(out, (char)(dict.len >> 8));
    wml_buf_str(out, wml_buf_view(&dict));
    wml_buf_release(&dict);
}

bool wml_npy_save(const char *path, const struct wml_npy *array, struct wml_err *err)
{
    struct wml_buf header = {0};
    struct wml_out o = {0};
    if (!wml_dtype_info((int)array->dtype)->npy)
        return wml_fail(err, WML_E_UNSUPPORTED, "numpy has no element type %s", wml_dtype_name((int)array->dtype));
    wml_npy_header(array, &header);
    bool ok = wml_out_open(&o, path, err) && wml_out_write(&o, header.ptr, header.len, err) &&
              wml_out_write(&o, array->data.ptr, array->data.len, err) && wml_out_commit(&o, err);
    wml_out_release(&o);
    wml_buf_release(&header);
    return ok;
}
