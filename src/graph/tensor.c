/* graph/tensor.c - sizes, bytes and making of tensors. Typed lists (float_data, int32_data, ...) and raw
 * data read alike; the only form that is ever copied is one whose varints must be decoded. */
#include "graph/tensor.h"

#include <inttypes.h>

#include "base/num.h"
#include "graph/store.h"

enum { SMALL_MAX = 1 << 24 };

bool wml_tensor_count(const struct wml_tensor *t, uint64_t *count, struct wml_err *err)
{
    if (wml_dims_count(t->dims.at, t->dims.len, count)) return true;
    for (size_t i = 0; i < t->dims.len; i++)
        if (t->dims.at[i] < 0)
            return wml_fail(err, WML_E_FORMAT, "tensor '%.*s': dimension %zu is %" PRId64, WML_ARG(t->name), i,
                            t->dims.at[i]);
    return wml_fail(err, WML_E_FORMAT, "tensor '%.*s': its dimensions overflow", WML_ARG(t->name));
}

bool wml_tensor_size(const struct wml_tensor *t, uint64_t *bytes, struct wml_err *err)
{
    uint64_t n = 0;
    if (!wml_tensor_count(t, &n, err)) return false;
    if (wml_dtype_bytes(t->dtype, n, bytes)) return true;
    return wml_fail(err, WML_E_UNSUPPORTED, "tensor '%.*s': elements of type %s have no fixed size", WML_ARG(t->name),
                    wml_dtype_name(t->dtype));
}

static bool wrong_size(const struct wml_tensor *t, uint64_t have, uint64_t want, struct wml_err *err)
{
    return wml_fail(err, WML_E_FORMAT, "tensor '%.*s': %" PRIu64 " bytes of data, its dimensions need %" PRIu64,
                    WML_ARG(t->name), have, want);
}

/* The list of fixed-width elements that stands for raw data, if any. */
static bool fixed_list(const struct wml_tensor *t, struct wml_span *out)
{
    if (t->float_data.ptr && (t->dtype == WML_F32 || t->dtype == WML_C64)) *out = t->float_data;
    else if (t->double_data.ptr && (t->dtype == WML_F64 || t->dtype == WML_C128)) *out = t->double_data;
    else return false;
    return true;
}

bool wml_tensor_peek(const struct wml_tensor *t, struct wml_span *out)
{
    uint64_t want = 0;
    if (!wml_tensor_size(t, &want, NULL)) return false;
    if (t->view.ptr) *out = t->view;
    else if (t->payload == WML_PAYLOAD_EXTERNAL || t->payload == WML_PAYLOAD_DERIVED) return false;
    else if (t->raw.ptr) *out = t->raw;
    else if (!fixed_list(t, out)) {
        if (want) return false;
        *out = (struct wml_span){(const unsigned char *)"", 0};
    }
    return out->len == want;
}

static bool external_bytes(struct wml_model *m, struct wml_tensor *t, uint64_t want, struct wml_span *out,
                           struct wml_err *err)
{
    struct wml_source *f = NULL;
    if (!wml_tensor_parse_external(t, err) || !wml_model_source(m, t->ext.location, &f, err))
        return wml_wrap(err, "tensor '%.*s'", WML_ARG(t->name));
    uint64_t length = t->ext.has_length ? t->ext.length : want;
    if (length != want) return wrong_size(t, length, want, err);
    if (t->ext.offset > f->bytes.len || want > f->bytes.len - t->ext.offset) {
        wml_fail(err, WML_E_FORMAT, "tensor '%.*s': bytes %" PRIu64 " to %" PRIu64 " of external data '%.*s', which has "
                 "%zu bytes", WML_ARG(t->name), t->ext.offset, t->ext.offset + want, WML_ARG(t->ext.location),
                 f->bytes.len);
        return wml_hint(err, "the data file is cut or belongs to another model: fetch it again");
    }
    *out = (struct wml_span){f->bytes.ptr + t->ext.offset, (size_t)want};
    return true;
}

/* Varints of int32_data, int64_data or uint64_data as packed elements of the type. */
static bool decode_varints(struct wml_model *m, struct wml_tensor *t, struct wml_span list, uint64_t want,
                           struct wml_span *out, struct wml_err *err)
{
    unsigned bits = wml_dtype_info(t->dtype)->bits;
    size_t width = bits < 8 ? 1 : bits / 8, at = 0;
    struct wml_rd r = wml_rd(list.ptr, list.len);
    if (want / width > list.len) return wrong_size(t, list.len * width, want, err);
    unsigned char *bytes = wml_big_alloc(want + 8, err);
    if (!bytes) return false;
    wml_model_own(m, bytes);
    while (wml_rd_left(&r)) {
        uint64_t v = 0;
        if (!wml_rd_varint(&r, &v, err)) return wml_wrap(err, "tensor '%.*s'", WML_ARG(t->name));
        if (at + width > want) return wrong_size(t, at + width, want, err);
        memcpy(bytes + at, &v, width); /* little endian: the low bytes */
        at += width;
    }
    if (at != want) return wrong_size(t, at, want, err);
    *out = (struct wml_span){bytes, (size_t)want};
    return true;
}

struct gather {
    unsigned char *at;
};

static bool gather_bytes(void *arg, const void *bytes, size_t n, struct wml_err *err)
{
    struct gather *g = arg;
    (void)err;
    if (n) memcpy(g->at, bytes, n);
    g->at += n;
    return true;
}

bool wml_tensor_open_sources(struct wml_model *m, const struct wml_tensor *t, struct wml_err *err)
{
    struct wml_span ignored;
    if (t->payload != WML_PAYLOAD_DERIVED) return true;
    const struct wml_derived *how = t->derived;
    if (how->source && !wml_tensor_bytes(m, (struct wml_tensor *)(uintptr_t)how->source, &ignored, err)) return false;
    for (size_t i = 0; i < how->n_also; i++)
        if (!wml_tensor_bytes(m, (struct wml_tensor *)(uintptr_t)how->also[i], &ignored, err)) return false;
    return true;
}

static bool derived_bytes(struct wml_model *m, struct wml_tensor *t, struct wml_span *out, struct wml_err *err)
{
    if (!wml_tensor_open_sources(m, t, err)) return false;
    unsigned char *block = wml_big_alloc(t->derived->size + 1, err);
    if (!block) return false;
    wml_model_own(m, block);
    struct gather g = {block};
    if (!wml_tensor_produce(t, gather_bytes, &g, err)) return false;
    t->raw = (struct wml_span){block, (size_t)t->derived->size};
    *out = t->raw;
    return true;
}

bool wml_tensor_bytes(struct wml_model *m, struct wml_tensor *t, struct wml_span *out, struct wml_err *err)
{
    uint64_t want = 0;
    struct wml_span s = {0};
    if (!wml_tensor_size(t, &want, err)) return false;
    if (t->view.ptr) {
        *out = t->view;
        return true;
    }
    bool wide = t->dtype == WML_U32 || t->dtype == WML_U64;
    if (t->payload == WML_PAYLOAD_EXTERNAL) {
        if (!external_bytes(m, t, want, &s, err)) return false;
    } else if (t->payload == WML_PAYLOAD_DERIVED) {
        if (!derived_bytes(m, t, &s, err)) return false;
    } else if (t->raw.ptr) s = t->raw;
    else if (fixed_list(t, &s)) {
    } else if (t->int64_data.ptr && t->dtype == WML_I64) {
        if (!decode_varints(m, t, t->int64_data, want, &s, err)) return false;
    } else if (t->uint64_data.ptr && wide) {
        if (!decode_varints(m, t, t->uint64_data, want, &s, err)) return false;
    } else if (t->int32_data.ptr && !wide && t->dtype != WML_I64) {
        if (!decode_varints(m, t, t->int32_data, want, &s, err)) return false;
    }
    if (s.len != want) return wrong_size(t, s.len, want, err);
    if (!s.ptr) s.ptr = (const unsigned char *)"";
    if (t->raw.ptr != s.ptr || t->payload == WML_PAYLOAD_DERIVED) t->view = s;
    *out = s;
    return true;
}

bool wml_tensor_produce(const struct wml_tensor *t,
                        bool (*write)(void *arg, const void *bytes, size_t n, struct wml_err *err), void *arg,
                        struct wml_err *err)
{
    struct wml_span source = {0};
    const struct wml_derived *how = t->derived;
    if (how->source && !wml_tensor_peek(how->source, &source))
        return wml_fail(err, WML_E_INTERNAL, "tensor '%.*s': the bytes it is made from are not at hand", WML_ARG(t->name));
    const size_t step = how->chunk ? how->chunk : WML_CHUNK;
    unsigned char *chunk = wml_xrealloc(NULL, step);
    bool ok = true;
    for (uint64_t at = 0; ok && at < how->size; at += step) {
        size_t n = (size_t)WML_MIN(how->size - at, (uint64_t)step);
        ok = how->produce(how->arg, source, at, chunk, n, err) && write(arg, chunk, n, err);
    }
    free(chunk);
    return ok;
}

static bool small(struct wml_model *m, struct wml_tensor *t, struct wml_span *s, size_t *n, struct wml_err *err)
{
    uint64_t count = 0;
    if (!wml_tensor_count(t, &count, err)) return false;
    if (count > SMALL_MAX)
        return wml_fail(err, WML_E_UNSUPPORTED, "tensor '%.*s' has %" PRIu64 " elements: too many for a list of numbers",
                        WML_ARG(t->name), count);
    *n = (size_t)count;
    return wml_tensor_bytes(m, t, s, err);
}

bool wml_tensor_ints(struct wml_model *m, struct wml_tensor *t, int64_t **out, size_t *n, struct wml_err *err)
{
    struct wml_span s;
    if (!wml_dtype_is_integer(t->dtype) && t->dtype != WML_BOOL)
        return wml_fail(err, WML_E_UNSUPPORTED, "tensor '%.*s' holds %s, integers were expected", WML_ARG(t->name),
                        wml_dtype_name(t->dtype));
    if (!small(m, t, &s, n, err)) return false;
    *out = WML_NEW_ARRAY(&m->arena, int64_t, *n + 1);
    for (size_t i = 0; i < *n; i++) {
        if (t->dtype == WML_I64 || t->dtype == WML_U64) memcpy(*out + i, s.ptr + 8 * i, 8);
        else (*out)[i] = (int64_t)wml_dtype_load(t->dtype, s.ptr, i);
    }
    return true;
}

bool wml_tensor_doubles(struct wml_model *m, struct wml_tensor *t, double **out, size_t *n, struct wml_err *err)
{
    struct wml_span s;
    if (!wml_dtype_info(t->dtype)->bits || wml_dtype_info(t->dtype)->cls == WML_CLASS_COMPLEX)
        return wml_fail(err, WML_E_UNSUPPORTED, "tensor '%.*s' holds %s, numbers were expected", WML_ARG(t->name),
                        wml_dtype_name(t->dtype));
    if (!small(m, t, &s, n, err)) return false;
    *out = WML_NEW_ARRAY(&m->arena, double, *n + 1);
    for (size_t i = 0; i < *n; i++) (*out)[i] = wml_dtype_load(t->dtype, s.ptr, i);
    return true;
}
