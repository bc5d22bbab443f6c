/* nn/derive.c - see derive.h. */
#include "nn/derive.h"

enum { TILE = 32 };

struct job {
    struct wml_nn_recipe recipe;
    enum wml_dtype dtype;
    size_t item;        /* bytes of an element in the checkpoint */
    size_t rows, inner; /* the source as a matrix: rows by the product of the other axes */
    size_t second, tail; /* sizes of the second axis and of what is behind it */
};

void wml_nn_to_float(enum wml_dtype dtype, const unsigned char *from, size_t n, float *to)
{
    if (dtype == WML_F32) {
        memcpy(to, from, n * sizeof *to);
    } else if (dtype == WML_BF16) {
        for (size_t i = 0; i < n; i++) {
            const uint32_t bits = (uint32_t)(from[2 * i] | from[2 * i + 1] << 8) << 16;
            memcpy(to + i, &bits, sizeof bits);
        }
    } else if (dtype == WML_F16) {
        for (size_t i = 0; i < n; i++) to[i] = wml_half_to_float((uint16_t)(from[2 * i] | from[2 * i + 1] << 8));
    } else {
        for (size_t i = 0; i < n; i++) to[i] = (float)wml_dtype_load(dtype, from, i);
    }
}

/* Columns [from, to) of the source, which are rows of the result, tile by tile so that both sides stay in the cache. */
static void transpose_rows(const struct job *j, const unsigned char *src, size_t from, size_t to, float *out)
{
    float line[TILE];
    for (size_t c = from; c < to; c += TILE) {
        const size_t wide = to - c < TILE ? to - c : TILE;
        for (size_t r = 0; r < j->rows; r++) {
            wml_nn_to_float(j->dtype, src + (r * j->inner + c) * j->item, wide, line);
            for (size_t k = 0; k < wide; k++) out[(c - from + k) * j->rows + r] = line[k];
        }
    }
}

static void scale_elements(const struct job *j, size_t first, size_t n, float *out)
{
    const float *s = j->recipe.scale;
    for (size_t i = 0; i < n; i++) {
        const size_t at = first + i;
        out[i] *= s[j->recipe.scale_second ? at / j->tail % j->second : at / j->inner];
    }
}

static bool produce(const void *arg, struct wml_span src, uint64_t offset, unsigned char *out, size_t n, struct wml_err *err)
{
    (void)err;
    const struct job *j = arg;
    const size_t first = (size_t)(offset / sizeof(float)), count = n / sizeof(float);
    float *to = (float *)(void *)out;
    if (j->recipe.transpose) {
        transpose_rows(j, src.ptr, first / j->rows, (first + count) / j->rows, to);
        return true;
    }
    wml_nn_to_float(j->dtype, src.ptr + first * j->item, count, to);
    if (j->recipe.scale) scale_elements(j, first, count, to);
    return true;
}

struct wml_tensor *wml_nn_derive(struct wml_nn *b, const struct wml_weight *w, struct wml_span bytes, size_t rank,
                                 const int64_t *dims, struct wml_nn_recipe recipe)
{
    struct wml_tensor *source = wml_tensor_borrow(b->m, w->dtype, rank, dims, bytes, b->err);
    if (!source) {
        b->failed = true;
        return NULL;
    }
    struct job *j = WML_NEW(&b->m->arena, struct job);
    *j = (struct job){.recipe = recipe, .dtype = w->dtype, .item = wml_dtype_info(w->dtype)->bits / 8, .rows = 1, .inner = 1,
                      .second = 1, .tail = 1};
    if (rank) j->rows = (size_t)dims[0];
    if (rank > 1) j->second = (size_t)dims[1];
    for (size_t i = 2; i < rank; i++) j->tail *= (size_t)dims[i];
    j->inner = j->second * j->tail;
    struct wml_derived *d = WML_NEW(&b->m->arena, struct wml_derived);
    *d = (struct wml_derived){.source = source, .size = sizeof(float) * j->rows * j->inner, .produce = produce, .arg = j};
    int64_t turned[2] = {0};
    if (recipe.transpose) {
        turned[0] = dims[1];
        turned[1] = dims[0];
        dims = turned;
        /* whole rows of the result, about a mebibyte of them: each costs a walk over all rows of the source */
        const size_t row = j->rows * sizeof(float), rows = row < 4 * (size_t)WML_CHUNK ? 4 * (size_t)WML_CHUNK / row : 1;
        d->chunk = row * (rows > TILE ? rows / TILE * TILE : rows);
    }
    return wml_tensor_derive(b->m, WML_F32, rank, dims, d);
}
