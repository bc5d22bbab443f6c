/* graph/tensor_new.c - new tensors, and tensors that share or equal others; references to external data. */
#include <inttypes.h>

#include "base/num.h"
#include "graph/store.h"
#include "graph/tensor.h"

enum { HAS_DTYPE = 1u << 2, HAS_LOCATION = 1u << 14 };

static struct wml_tensor *blank(struct wml_model *m, enum wml_dtype dtype, size_t rank, const int64_t *dims)
{
    struct wml_tensor *t = WML_NEW(&m->arena, struct wml_tensor);
    t->dtype = (int32_t)dtype;
    t->msg.has = HAS_DTYPE;
    for (size_t i = 0; i < rank; i++) WML_PUSH_IN(&m->arena, &t->dims, dims[i]);
    return t;
}

static struct wml_tensor *with_raw(struct wml_tensor *t, struct wml_span bytes, enum wml_payload payload,
                                   struct wml_err *err)
{
    uint64_t want = 0;
    if (!wml_tensor_size(t, &want, err)) return NULL;
    if (want != bytes.len) {
        wml_fail(err, WML_E_INTERNAL, "a new tensor got %zu bytes, its dimensions need %" PRIu64, bytes.len, want);
        return NULL;
    }
    t->raw = bytes;
    if (!t->raw.ptr) t->raw.ptr = (const unsigned char *)"";
    t->payload = payload;
    return t;
}

struct wml_tensor *wml_tensor_own(struct wml_model *m, enum wml_dtype dtype, size_t rank, const int64_t *dims,
                                  void *block, size_t n_bytes, struct wml_err *err)
{
    wml_model_own(m, block);
    return with_raw(blank(m, dtype, rank, dims), (struct wml_span){block, n_bytes}, WML_PAYLOAD_OWNED, err);
}

struct wml_tensor *wml_tensor_copy(struct wml_model *m, enum wml_dtype dtype, size_t rank, const int64_t *dims,
                                   const void *bytes, size_t n_bytes, struct wml_err *err)
{
    void *block = wml_big_alloc(n_bytes + 8, err);
    if (!block) return NULL;
    if (n_bytes) memcpy(block, bytes, n_bytes);
    return wml_tensor_own(m, dtype, rank, dims, block, n_bytes, err);
}

struct wml_tensor *wml_tensor_borrow(struct wml_model *m, enum wml_dtype dtype, size_t rank, const int64_t *dims,
                                     struct wml_span bytes, struct wml_err *err)
{
    return with_raw(blank(m, dtype, rank, dims), bytes, WML_PAYLOAD_BORROWED, err);
}

struct wml_tensor *wml_tensor_derive(struct wml_model *m, enum wml_dtype dtype, size_t rank, const int64_t *dims,
                                     const struct wml_derived *how)
{
    struct wml_tensor *t = blank(m, dtype, rank, dims);
    struct wml_derived *copy = WML_NEW(&m->arena, struct wml_derived);
    *copy = *how;
    t->derived = copy;
    t->payload = WML_PAYLOAD_DERIVED;
    return t;
}

struct wml_tensor *wml_tensor_f32(struct wml_model *m, float v)
{
    float *copy = WML_NEW(&m->arena, float);
    *copy = v;
    return wml_tensor_borrow(m, WML_F32, 0, NULL, (struct wml_span){(unsigned char *)copy, sizeof v}, NULL);
}

struct wml_tensor *wml_tensor_i64s(struct wml_model *m, size_t n, const int64_t *v)
{
    int64_t *copy = WML_NEW_ARRAY(&m->arena, int64_t, n + 1), dim = (int64_t)n;
    if (n) memcpy(copy, v, n * sizeof *v);
    return wml_tensor_borrow(m, WML_I64, 1, &dim, (struct wml_span){(unsigned char *)copy, n * sizeof *v}, NULL);
}

struct wml_tensor *wml_tensor_strings(struct wml_model *m, size_t n, const struct wml_str *v)
{
    int64_t dim = (int64_t)n;
    struct wml_tensor *t = blank(m, WML_STRING, 1, &dim);
    for (size_t i = 0; i < n; i++) WML_PUSH_IN(&m->arena, &t->string_data, wml_arena_str(&m->arena, v[i]));
    return t;
}

void wml_tensor_make_raw(struct wml_tensor *t, struct wml_span bytes)
{
    t->raw = bytes;
    t->view = (struct wml_span){0};
    t->payload = WML_PAYLOAD_BORROWED;
    t->location = 0;
    t->msg.has &= ~(uint32_t)HAS_LOCATION;
    t->external.len = 0;
}

struct wml_tensor *wml_tensor_share(struct wml_model *m, const struct wml_tensor *t)
{
    struct wml_tensor *s = WML_NEW(&m->arena, struct wml_tensor);
    *s = *t;
    s->name = WML_NO_STR;
    s->value = NULL;
    s->stand_in = NULL;
    s->dims.cap = s->dims.len; /* a push must not write into the other's list */
    return s;
}

/* Piece by piece: what is found equal leaves the memory again, so that weights of gigabytes need none. */
static bool same_bytes(const struct wml_model *m, struct wml_span x, struct wml_span y)
{
    enum { PIECE = 1 << 24 };
    bool same = true;
    for (size_t at = 0, n; same && at < x.len; at += n) {
        n = WML_MIN(x.len - at, (size_t)PIECE);
        same = memcmp(x.ptr + at, y.ptr + at, n) == 0;
        wml_model_drop(m, (struct wml_span){x.ptr + at, n});
        wml_model_drop(m, (struct wml_span){y.ptr + at, n});
    }
    return same;
}

bool wml_tensor_eq(struct wml_model *m, struct wml_tensor *a, struct wml_tensor *b)
{
    struct wml_span x, y;
    if (a == b) return true;
    if (a->dtype != b->dtype || a->dims.len != b->dims.len) return false;
    for (size_t i = 0; i < a->dims.len; i++)
        if (a->dims.at[i] != b->dims.at[i]) return false;
    if (a->dtype == WML_STRING) {
        if (a->string_data.len != b->string_data.len) return false;
        for (size_t i = 0; i < a->string_data.len; i++)
            if (!wml_str_eq(a->string_data.at[i], b->string_data.at[i])) return false;
        return true;
    }
    if (!wml_tensor_bytes(m, a, &x, NULL) || !wml_tensor_bytes(m, b, &y, NULL)) return false;
    return x.len == y.len && (x.ptr == y.ptr || same_bytes(m, x, y));
}

bool wml_tensor_parse_external(struct wml_tensor *t, struct wml_err *err)
{
    t->ext = (struct wml_external){0};
    for (size_t i = 0; i < t->external.len; i++) {
        const struct wml_entry *e = &t->external.at[i];
        bool ok = true;
        if (wml_str_is(e->key, "location")) t->ext.location = e->value;
        else if (wml_str_is(e->key, "offset")) ok = wml_parse_u64(e->value, &t->ext.offset);
        else if (wml_str_is(e->key, "length")) ok = t->ext.has_length = wml_parse_u64(e->value, &t->ext.length);
        if (!ok)
            return wml_fail(err, WML_E_FORMAT, "external data has %.*s '%.*s'", WML_ARG(e->key), WML_ARG(e->value));
    }
    if (t->ext.location.len) return true;
    return wml_fail(err, WML_E_FORMAT, "external data without a location");
}
