/* Arrays of a sample: small things in its arena, elements on the heap. */
#include "task/sample.h"

#include "base/num.h"

void *wml_sample_add(struct wml_npys *sample, struct wml_str name, enum wml_dtype dtype, const int64_t *dim,
                     size_t rank, struct wml_err *err)
{
    struct wml_npy a = {.name = wml_arena_str(&sample->arena, name), .dtype = dtype, .rank = rank};
    int64_t count = 1;
    uint64_t bytes;
    bool fits = rank <= WML_NPY_MAX_RANK;
    for (size_t i = 0; fits && i < rank; i++) {
        fits = dim[i] >= 0 && wml_mul_i64(count, dim[i], &count);
        a.dim[i] = dim[i];
    }
    if (!fits || !wml_dtype_bytes((int)dtype, (uint64_t)count, &bytes)) {
        wml_fail(err, WML_E_UNSUPPORTED, "no array of %s in the shape of input '%.*s'", wml_dtype_name((int)dtype), WML_ARG(name));
        return NULL;
    }
    void *data = wml_big_alloc(bytes, err);
    if (!data) return NULL;
    memset(data, 0, (size_t)bytes);
    a.data = (struct wml_span){data, (size_t)bytes};
    WML_PUSH(&sample->owned, data);
    WML_PUSH(&sample->v, a);
    return data;
}
