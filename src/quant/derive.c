/* Converters of DERIVED tensors: a chunk of the result names the elements of the source it is made from. */
#include "quant/derive.h"

#include <string.h>

#include "base/num.h"
#include "graph/model.h"
#include "quant/kernel.h"

struct linear {
    struct wml_linear q;
    enum wml_dtype from;
    uint64_t count; /* elements */
};

static bool linear(const void *arg, struct wml_span src, uint64_t offset, unsigned char *out, size_t n, struct wml_err *err)
{
    const struct linear *l = arg;
    const unsigned bits = wml_dtype_info((int)l->q.type)->bits;
    const uint64_t first = offset * 8 / bits;
    (void)err;
    wml_kernel_linear(&l->q, l->from, src.ptr, (size_t)first, (size_t)WML_MIN(l->count - first, (uint64_t)n * 8 / bits), out);
    return true;
}

/* Elements per step of the axis. */
static size_t inner_of(const struct wml_tensor *t, int64_t axis)
{
    size_t inner = 1;
    for (size_t i = (size_t)(axis + 1); axis >= 0 && i < t->dims.len; i++) inner *= (size_t)t->dims.at[i];
    return inner;
}

struct wml_tensor *wml_quant_derive_linear(struct wml_model *m, struct wml_tensor *source, enum wml_dtype type, int64_t axis, size_t n,
                                           const double *scale, const int32_t *zero, struct wml_err *err)
{
    struct linear *l = WML_NEW(&m->arena, struct linear);
    float *s = WML_NEW_ARRAY(&m->arena, float, n);
    int32_t *z = WML_NEW_ARRAY(&m->arena, int32_t, n);
    struct wml_derived how = {.source = source, .produce = linear, .arg = l};
    if (!wml_tensor_count(source, &l->count, err)) return NULL;
    if (!wml_dtype_bytes((int)type, l->count, &how.size)) {
        wml_fail(err, WML_E_MEMORY, "tensor '%.*s' is too large", WML_ARG(source->name));
        return NULL;
    }
    for (size_t i = 0; i < n; i++) {
        s[i] = (float)scale[i];
        z[i] = zero[i];
    }
    l->from = (enum wml_dtype)source->dtype;
    l->q = (struct wml_linear){.type = type, .n = n, .inner = WML_MAX(inner_of(source, axis), (size_t)1), .scale = s, .zero = z};
    return wml_tensor_derive(m, type, source->dims.len, source->dims.at, &how);
}

static bool f16(const void *arg, struct wml_span src, uint64_t offset, unsigned char *out, size_t n, struct wml_err *err)
{
    (void)arg;
    (void)err;
    wml_kernel_f16(src.ptr + 2 * offset, n / 2, (uint16_t *)(void *)out);
    return true;
}

static bool bf16(const void *arg, struct wml_span src, uint64_t offset, unsigned char *out, size_t n, struct wml_err *err)
{
    (void)arg;
    (void)err;
    wml_kernel_bf16(src.ptr + 2 * offset, n / 2, (uint16_t *)(void *)out);
    return true;
}

struct wml_tensor *wml_quant_derive_half(struct wml_model *m, struct wml_tensor *source, enum wml_dtype type, struct wml_err *err)
{
    uint64_t size;
    if (!wml_tensor_size(source, &size, err)) return NULL;
    struct wml_derived how = {.source = source, .size = size / 2, .produce = type == WML_F16 ? f16 : bf16};
    return wml_tensor_derive(m, type, source->dims.len, source->dims.at, &how);
}

static bool scaled(const void *arg, struct wml_span src, uint64_t offset, unsigned char *out, size_t n, struct wml_err *err)
{
    const struct wml_scaling *s = arg;
    const size_t per_group = s->first / s->groups, last = (size_t)(offset + n) / sizeof(float);
    float v;
    (void)err;
    for (size_t i = (size_t)offset / sizeof v, end; i < last; i = end) {
        size_t row = i / s->inner, a = row / s->second, b = row % s->second;
        double f = (s->by_first ? s->by_first[a] : 1) * (s->by_second ? s->by_second[a / per_group * s->second + b] : 1);
        end = WML_MIN((row + 1) * s->inner, last);
        for (size_t k = i; k < end; k++, out += sizeof v) {
            memcpy(&v, src.ptr + k * sizeof v, sizeof v);
            v = (float)(v * f);
            memcpy(out, &v, sizeof v);
        }
    }
    return true;
}

static const double *copied(struct wml_arena *a, const double *from, size_t n)
{
    if (!from) return NULL;
    double *to = WML_NEW_ARRAY(a, double, n);
    memcpy(to, from, n * sizeof *to);
    return to;
}

struct wml_tensor *wml_quant_derive_scaled(struct wml_model *m, struct wml_tensor *source, const struct wml_scaling *s, struct wml_err *err)
{
    struct wml_scaling *own = WML_NEW(&m->arena, struct wml_scaling);
    struct wml_derived how = {.source = source, .produce = scaled, .arg = own};
    struct wml_span bytes;
    if (!wml_tensor_size(source, &how.size, err)) return NULL;
    if (source->payload == WML_PAYLOAD_DERIVED && !wml_tensor_bytes(m, source, &bytes, err)) return NULL;
    *own = *s;
    own->by_first = copied(&m->arena, s->by_first, s->first);
    own->by_second = copied(&m->arena, s->by_second, s->second * s->groups);
    return wml_tensor_derive(m, WML_F32, source->dims.len, source->dims.at, &how);
}
