/* Inputs read from numpy files or generated. Values are drawn from a stream seeded by the input's name, so
 * adding or reordering inputs changes nothing for the others, on any system. */
#include "worker/feed.h"

#include <inttypes.h>
#include <math.h>
#include "base/hash.h"
#include "base/num.h"
#include "base/rng.h"
#include "text/npy.h"

enum { FEED_MAX_DIM = 1 << 30 };
static const uint64_t FEED_MAX_BYTES = UINT64_C(8) << 30;

static const struct wml_feed_shape *shape_of(const struct wml_feed_spec *s, struct wml_str name)
{
    for (size_t i = 0; i < s->n_shapes; i++)
        if (wml_str_eq(s->shape[i].name, name)) return &s->shape[i];
    return NULL;
}

static bool note(struct wml_feed *f, const struct wml_io *in, size_t axis, int64_t size)
{
    const char *symbol = in->symbol && in->symbol[axis] ? in->symbol[axis] : "";
    struct wml_str text = wml_arena_fmt(&f->arena, "input '%s': dimension %zu%s%s%s is not fixed; %" PRId64
                                        " is used", in->name, axis, *symbol ? " (" : "", symbol,
                                        *symbol ? ")" : "", size);
    WML_PUSH(&f->note, text.ptr);
    return true;
}

static int64_t fallback_size(const struct wml_feed_spec *s, size_t axis)
{
    static const int64_t usual[] = {0, 128, 224, 224};
    int64_t one = s->small && s->open > 0 ? s->open : 1;
    if (axis == 0) return s->batch > 0 ? s->batch : one;
    if (s->small) return one;
    return axis < WML_COUNT(usual) ? usual[axis] : 128;
}

static int64_t one_size(struct wml_feed *f, const struct wml_io *in, const struct wml_feed_spec *s, size_t axis)
{
    if (in->dim[axis] >= 0) return in->dim[axis];
    const char *symbol = in->symbol ? in->symbol[axis] : NULL;
    for (size_t i = 0; symbol && *symbol && i < s->n_dims; i++)
        if (wml_str_is(s->dim[i].symbol, symbol)) return s->dim[i].size;
    int64_t size = fallback_size(s, axis);
    if (axis > 0 || s->batch <= 0) note(f, in, axis, size);
    return size;
}

static bool resolve_shape(struct wml_feed *f, const struct wml_io *in, const struct wml_feed_spec *s,
                          struct wml_tensor_view *v, struct wml_err *err)
{
    const struct wml_feed_shape *given = shape_of(s, wml_str(in->name));
    size_t rank = given ? given->rank : in->has_shape ? in->rank : 1;
    int64_t *dim = WML_NEW_ARRAY(&f->arena, int64_t, rank + 1);
    if (given && in->has_shape && rank != in->rank)
        return wml_fail(err, WML_E_USAGE, "input '%s' has %zu dimensions, the given shape has %zu", in->name,
                        in->rank, rank);
    for (size_t i = 0; i < rank; i++) {
        dim[i] = given && given->dim[i] != -1 ? given->dim[i] : in->has_shape ? one_size(f, in, s, i) : fallback_size(s, i);
        if (given && in->has_shape && in->dim[i] >= 0 && in->dim[i] != dim[i])
            return wml_fail(err, WML_E_USAGE, "input '%s': dimension %zu is %" PRId64 " in the model, %" PRId64
                            " was given", in->name, i, in->dim[i], dim[i]);
        if (dim[i] < 0 || dim[i] > FEED_MAX_DIM)
            return wml_fail(err, WML_E_USAGE, "input '%s': dimension %zu cannot be %" PRId64, in->name, i, dim[i]);
    }
    v->rank = rank;
    v->dim = dim;
    return true;
}

static void fill(void *data, uint64_t n, enum wml_dtype dtype, double low, double high, struct wml_rng *rng)
{
    bool whole = !wml_dtype_is_float(dtype);
    if (dtype == WML_F32 && !whole) {
        float *out = data;
        for (uint64_t i = 0; i < n; i++) out[i] = (float)(low + (high - low) * wml_rng_unit(rng));
        return;
    }
    for (uint64_t i = 0; i < n; i++) {
        double v = whole ? (double)wml_rng_range(rng, (int64_t)low, (int64_t)high + 1)
                         : low + (high - low) * wml_rng_unit(rng);
        wml_dtype_store((int)dtype, data, (size_t)i, v);
    }
}

static bool generate(struct wml_feed *f, const struct wml_io *in, const struct wml_feed_spec *s,
                     struct wml_err *err)
{
    struct wml_tensor_view v = {.dtype = in->dtype, .is_tensor = true};
    uint64_t n = 0, bytes = 0;
    bool wide = s->wide && wml_dtype_is_float((int)in->dtype);
    double low = wide ? -2 : 0, high = wide ? 2 : 1;
    if (!resolve_shape(f, in, s, &v, err)) return false;
    if (!wml_dims_count(v.dim, v.rank, &n) || !wml_dtype_bytes((int)in->dtype, n, &bytes) || bytes > FEED_MAX_BYTES)
        return wml_fail(err, WML_E_USAGE, "input '%s' of this shape would be too large", in->name);
    for (size_t i = 0; i < s->n_ranges; i++)
        if (wml_str_is(s->range[i].name, in->name)) {
            low = s->range[i].low;
            high = s->range[i].high;
        }
    void *data = wml_big_alloc(bytes + 8, err);
    if (!data) return wml_wrap(err, "input '%s'", in->name);
    memset(data, 0, (size_t)bytes + 8);
    WML_PUSH(&f->owned, data);
    struct wml_rng rng = {.state = wml_hash_str(wml_str(in->name)) ^ (s->seed * UINT64_C(0x9e3779b97f4a7c15))};
    fill(data, n, in->dtype, low, high, &rng);
    v.data = data;
    v.bytes = (size_t)bytes;
    WML_PUSH(&f->view, v);
    return true;
}

/* Takes an array as it is, or converted when the model wants another element type. */
static bool take(struct wml_feed *f, const struct wml_io *in, const struct wml_npy *a, struct wml_err *err)
{
    struct wml_tensor_view v = {.dtype = in->dtype, .is_tensor = true, .rank = a->rank};
    uint64_t n = 0, bytes = 0;
    int64_t *dim = WML_NEW_ARRAY(&f->arena, int64_t, a->rank + 1);
    for (size_t i = 0; i < a->rank; i++) dim[i] = a->dim[i];
    v.dim = dim;
    if (in->has_shape && in->rank != a->rank)
        return wml_fail(err, WML_E_USAGE, "input '%s' has %zu dimensions, the array in the data has %zu",
                        in->name, in->rank, a->rank);
    for (size_t i = 0; in->has_shape && i < a->rank; i++)
        if (in->dim[i] >= 0 && in->dim[i] != dim[i])
            return wml_fail(err, WML_E_USAGE, "input '%s': dimension %zu is %" PRId64 " in the model, %" PRId64
                            " in the data", in->name, i, in->dim[i], dim[i]);
    if (wml_dtype_info((int)a->dtype)->cls == WML_CLASS_COMPLEX && a->dtype != in->dtype)
        return wml_fail(err, WML_E_USAGE, "input '%s' takes %s, the array in the data is complex", in->name, wml_dtype_name((int)in->dtype));
    if (!wml_dims_count(v.dim, v.rank, &n) || !wml_dtype_bytes((int)in->dtype, n, &bytes))
        return wml_fail(err, WML_E_USAGE, "input '%s': the array is too large", in->name);
    void *data = wml_big_alloc(bytes + 8, err);
    if (!data) return false;
    WML_PUSH(&f->owned, data);
    if (a->dtype == in->dtype) {
        if (bytes) memcpy(data, a->data.ptr, (size_t)bytes);
    } else {
        struct wml_str text = wml_arena_fmt(&f->arena, "input '%s': %s converted to %s", in->name,
                                            wml_dtype_name((int)a->dtype), wml_dtype_name((int)in->dtype));
        WML_PUSH(&f->note, text.ptr);
        for (uint64_t i = 0; i < n; i++)
            wml_dtype_store((int)in->dtype, data, (size_t)i, wml_dtype_load((int)a->dtype, a->data.ptr, (size_t)i));
    }
    v.data = data;
    v.bytes = (size_t)bytes;
    WML_PUSH(&f->view, v);
    return true;
}

/* Every input must be there, and nothing else. */
static bool check_names(const struct wml_io *input, size_t n, const struct wml_npys *arrays, const char *path,
                        struct wml_err *err)
{
    struct wml_buf missing = {0}, extra = {0};
    for (size_t i = 0; i < n; i++)
        if (!wml_npys_find(arrays, wml_str(input[i].name)))
            wml_buf_fmt(&missing, "%s'%s'", missing.len ? ", " : "", input[i].name);
    for (size_t i = 0; i < arrays->v.len; i++) {
        bool known = false;
        for (size_t k = 0; k < n; k++) known = known || wml_str_is(arrays->v.at[i].name, input[k].name);
        if (!known) wml_buf_fmt(&extra, "%s'%.*s'", extra.len ? ", " : "", WML_ARG(arrays->v.at[i].name));
    }
    bool ok = !missing.len && !extra.len;
    if (!ok) {
        wml_fail(err, WML_E_USAGE, "%s does not fit the model:%s%.300s%s%s%.300s", path,
                 missing.len ? " missing " : "", wml_buf_text(&missing), missing.len && extra.len ? ";" : "",
                 extra.len ? " not an input " : "", wml_buf_text(&extra));
        wml_hint(err, "name the arrays as the model's inputs; `winml inspect -m MODEL` lists them");
    }
    wml_buf_release(&missing);
    wml_buf_release(&extra);
    return ok;
}

static bool take_all(struct wml_feed *f, const struct wml_io *input, size_t n, const struct wml_npys *arrays, const char *path,
                     struct wml_err *err)
{
    if (!check_names(input, n, arrays, path, err)) return false;
    for (size_t i = 0; i < n; i++)
        if (!take(f, &input[i], wml_npys_find(arrays, wml_str(input[i].name)), err)) return wml_wrap(err, "%s", path);
    return true;
}

static bool read_data(struct wml_feed *f, const struct wml_io *input, size_t n, const char *path,
                      struct wml_err *err)
{
    struct wml_npys arrays = {0};
    bool ok = wml_npy_load(path, &arrays, err) && take_all(f, input, n, &arrays, path, err);
    wml_npys_release(&arrays);
    return ok;
}

static const char *kind_of(const struct wml_io *in)
{
    switch (in->kind) {
    case WML_IO_TENSOR: return in->dtype == WML_STRING ? "texts" : "no numbers";
    case WML_IO_SEQUENCE: return "a sequence";
    case WML_IO_OPTIONAL: return "an optional value";
    default: return "no tensor";
    }
}

static bool are_numeric(const struct wml_io *input, size_t n, struct wml_err *err)
{
    for (size_t i = 0; i < n; i++)
        if (input[i].kind != WML_IO_TENSOR || !wml_dtype_info((int)input[i].dtype)->bits)
            return wml_fail(err, WML_E_UNSUPPORTED, "input '%s' takes %s: there is no way yet to give it values", input[i].name,
                            kind_of(&input[i]));
    return true;
}

static void note_batch(struct wml_feed *f)
{
    for (size_t i = 0; i < f->view.len; i++)
        if (f->view.at[i].rank) {
            f->batch = f->view.at[i].dim[0];
            return;
        }
}

bool wml_feed_arrays(const struct wml_io *input, size_t n, const struct wml_npys *arrays, const char *path, struct wml_feed *out,
                     struct wml_err *err)
{
    *out = (struct wml_feed){.batch = 1};
    bool ok = are_numeric(input, n, err) && take_all(out, input, n, arrays, path, err);
    if (ok) note_batch(out);
    else wml_feed_release(out);
    return ok;
}

bool wml_feed_make(const struct wml_io *input, size_t n, const struct wml_feed_spec *spec,
                   struct wml_feed *out, struct wml_err *err)
{
    bool ok = are_numeric(input, n, err);
    *out = (struct wml_feed){.batch = 1};
    for (size_t i = 0; ok && i < spec->n_shapes; i++) {
        bool known = false;
        for (size_t k = 0; k < n; k++) known = known || wml_str_is(spec->shape[i].name, input[k].name);
        if (!known)
            ok = wml_fail(err, WML_E_USAGE, "the model has no input '%.*s' to give a shape to",
                          WML_ARG(spec->shape[i].name));
    }
    if (ok && spec->data) ok = read_data(out, input, n, spec->data, err);
    else
        for (size_t i = 0; ok && i < n; i++) ok = generate(out, &input[i], spec, err);
    if (ok) note_batch(out);
    else wml_feed_release(out);
    return ok;
}

void wml_feed_release(struct wml_feed *f)
{
    for (size_t i = 0; i < f->owned.len; i++) free(f->owned.at[i]);
    WML_VEC_RELEASE(&f->owned);
    WML_VEC_RELEASE(&f->view);
    WML_VEC_RELEASE(&f->note);
    wml_arena_release(&f->arena);
    *f = (struct wml_feed){0};
}
