/* Scaled weights as DERIVED tensors: the source stays in its file. */
#include "passes/weights_scale.h"

#include <math.h>

#include "base/num.h"
#include "graph/tensor.h"

struct scaling { /* argument of a DERIVED tensor; in the model's arena */
    double *factor;
    uint64_t slices, inner; /* along the axis; elements of one slice in a row */
    size_t axis, n_axes;
    enum wml_dtype dtype;
};

/* n floats times one factor. Unaligned on both sides: the source lies in a file. */
static void scale_floats(const unsigned char *from, unsigned char *to, size_t n, double factor)
{
    enum { BLOCK = 256 };
    float block[BLOCK];
    for (size_t at = 0; at < n; at += BLOCK) {
        size_t k = WML_MIN(n - at, (size_t)BLOCK);
        memcpy(block, from + 4 * at, 4 * k);
        for (size_t i = 0; i < k; i++) block[i] = (float)((double)block[i] * factor);
        memcpy(to + 4 * at, block, 4 * k);
    }
}

static bool scale(const void *arg, struct wml_span src, uint64_t offset, unsigned char *out, size_t n,
                  struct wml_err *err)
{
    const struct scaling *s = arg;
    size_t width = wml_dtype_info((int)s->dtype)->bits / 8, done = 0, count = n / width;
    uint64_t first = offset / width;
    (void)err;
    while (done < count) {
        uint64_t row = (first + done) / s->inner, end = (row + 1) * s->inner;
        size_t run = (size_t)WML_MIN((uint64_t)(count - done), end - (first + done));
        const unsigned char *from = src.ptr + offset + done * width;
        double factor = s->factor[row % s->slices];
        if (s->dtype == WML_F32) scale_floats(from, out + 4 * done, run, factor);
        else
            for (size_t i = 0; i < run; i++)
                wml_dtype_store((int)s->dtype, out + done * width, i, wml_dtype_load((int)s->dtype, from, i) * factor);
        done += run;
    }
    return true;
}

/* Half floats end at 65504: a product beyond would turn a finite result into infinity. */
static bool fits_half(const struct scaling *s, struct wml_span src)
{
    for (size_t i = 0; s->dtype == WML_F16 && i < src.len / 2; i++) {
        double w = wml_dtype_load(WML_F16, src.ptr, i), factor = s->factor[i / s->inner % s->slices];
        if (isfinite(w) && fabs(w * factor) >= 65520) return false;
    }
    return true;
}

static struct wml_tensor *scaled(struct wml_pass_run *r, struct wml_tensor *t, size_t axis, size_t n_axes, const double *factor)
{
    struct wml_model *m = r->model;
    struct wml_tensor *source = t;
    const struct scaling *old = NULL;
    uint64_t bytes = 0;
    struct wml_span data;
    if (t->dtype != WML_F32 && t->dtype != WML_F64 && t->dtype != WML_F16) return NULL;
    if (axis + n_axes > t->dims.len) return NULL;
    if (source->payload == WML_PAYLOAD_DERIVED) {
        if (source->derived->produce != scale) return NULL;
        old = source->derived->arg;
        if (old->axis != axis || old->n_axes != n_axes) return NULL;
        source = (struct wml_tensor *)(uintptr_t)source->derived->source;
    }
    if (!wml_tensor_size(source, &bytes, NULL) || !wml_tensor_bytes(m, source, &data, NULL)) return NULL;
    struct scaling *s = WML_NEW(&m->arena, struct scaling);
    const int64_t *dim = t->dims.at + axis;
    *s = (struct scaling){.axis = axis, .n_axes = n_axes, .dtype = (enum wml_dtype)t->dtype};
    if (!wml_dims_count(dim, n_axes, &s->slices) || !wml_dims_count(dim + n_axes, t->dims.len - axis - n_axes, &s->inner)) return NULL;
    if (!s->slices || !s->inner) return NULL;
    s->factor = WML_NEW_ARRAY(&m->arena, double, (size_t)s->slices);
    for (uint64_t i = 0; i < s->slices; i++) s->factor[i] = factor[i] * (old ? old->factor[i] : 1);
    if (!fits_half(s, data)) return NULL;
    struct wml_derived how = {.source = source, .size = bytes, .produce = scale, .arg = s};
    return wml_tensor_derive(m, s->dtype, t->dims.len, t->dims.at, &how);
}

struct wml_tensor *wml_weights_scaled(struct wml_pass_run *r, struct wml_tensor *t, size_t axis, const double *factor)
{
    return scaled(r, t, axis, 1, factor);
}

struct wml_tensor *wml_weights_scaled_pairs(struct wml_pass_run *r, struct wml_tensor *t, size_t axis, const double *factor)
{
    return scaled(r, t, axis, 2, factor);
}
