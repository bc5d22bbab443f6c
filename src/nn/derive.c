/* nn/derive.c - see derive.h. */
#include <stdlib.h>
#include "nn/derive.h"

enum {
    TILE = 32, /* a cache line of bfloat16 */
    MOST_TURNED = 32 << 20,
};

struct job {
    struct wml_nn_recipe recipe;
    enum wml_dtype dtype, to; /* in the checkpoint, in the model */
    size_t item, made;  /* bytes of an element there and here */
    size_t rows, inner; /* to turn: the source as matrices, each of so many rows and columns */
    size_t along, tail; /* to scale: sizes of the axis and of what is behind it */
};

void wml_nn_to_float(enum wml_dtype dtype, const unsigned char *from, size_t n, float *to)
{
    if (dtype == WML_F32) {
        memcpy(to, from, n * sizeof *to);
    } else if (dtype == WML_BF16) {
        for (size_t i = 0; i < n; i++) {
            uint16_t high;
            memcpy(&high, from + 2 * i, sizeof high);
            const uint32_t bits = (uint32_t)high << 16;
            memcpy(to + i, &bits, sizeof bits);
        }
    } else if (dtype == WML_F16) {
        for (size_t i = 0; i < n; i++) to[i] = wml_half_to_float((uint16_t)(from[2 * i] | from[2 * i + 1] << 8));
    } else {
        for (size_t i = 0; i < n; i++) to[i] = (float)wml_dtype_load(dtype, from, i);
    }
}

/* Columns [from, to) of the source, which are rows of the result, in squares that the cache holds. */
static void transpose_rows(const struct job *j, const unsigned char *src, size_t from, size_t to, float *out)
{
    float square[TILE][TILE];
    for (size_t c = from; c < to; c += TILE) {
        const size_t wide = to - c < TILE ? to - c : TILE;
        for (size_t r = 0; r < j->rows; r += TILE) {
            const size_t high = j->rows - r < TILE ? j->rows - r : TILE;
            for (size_t i = 0; i < high; i++) {
                wml_nn_to_float(j->dtype, src + ((r + i) * j->inner + c) * j->item, wide, square[i]);
                for (size_t k = 0; j->recipe.scale && k < wide; k++) square[i][k] *= j->recipe.scale[r + i];
            }
            for (size_t k = 0; k < wide; k++)
                for (size_t i = 0; i < high; i++) out[(c - from + k) * j->rows + r + i] = square[i][k];
        }
    }
}

/* Rows [from, to) of the result, counted over all matrices. */
static void transpose_matrices(const struct job *j, const unsigned char *src, size_t from, size_t to, float *out)
{
    while (from < to) {
        const size_t matrix = from / j->inner, column = from % j->inner;
        const size_t n = to - from < j->inner - column ? to - from : j->inner - column;
        transpose_rows(j, src + matrix * j->rows * j->inner * j->item, column, column + n, out);
        out += n * j->rows;
        from += n;
    }
}

static void scale_elements(const struct job *j, size_t first, size_t n, float *out)
{
    while (n) { /* runs that have one scale */
        const float by = j->recipe.scale[first / j->tail % j->along];
        const size_t left = j->tail - first % j->tail, run = left < n ? left : n;
        for (size_t i = 0; i < run; i++) out[i] *= by;
        out += run;
        first += run;
        n -= run;
    }
}

static void compute(const struct job *j, const unsigned char *src, size_t first, size_t count, float *to)
{
    if (j->recipe.transpose) {
        transpose_matrices(j, src, first / j->rows, (first + count) / j->rows, to);
        return;
    }
    wml_nn_to_float(j->dtype, src + first * j->item, count, to);
    if (j->recipe.scale) scale_elements(j, first, count, to);
}

static bool produce(const void *arg, struct wml_span src, uint64_t offset, unsigned char *out, size_t n, struct wml_err *err)
{
    const struct job *j = arg;
    const size_t first = (size_t)(offset / j->made), count = n / j->made;
    if (j->to == WML_F32) {
        compute(j, src.ptr, first, count, (float *)(void *)out);
        return true;
    }
    float *wide = wml_big_alloc(count * sizeof *wide, err);
    if (!wide) return false;
    compute(j, src.ptr, first, count, wide);
    uint16_t *half = (uint16_t *)(void *)out;
    for (size_t i = 0; i < count; i++) half[i] = wml_float_to_half_weight(wide[i]);
    free(wide);
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
    *j = (struct job){.recipe = recipe, .dtype = w->dtype, .to = b->real, .item = wml_dtype_info(w->dtype)->bits / 8,
                      .made = wml_dtype_info(b->real)->bits / 8, .along = 1, .tail = 1};
    size_t count = 1;
    for (size_t i = 0; i < rank; i++) {
        count *= (size_t)dims[i];
        if (i == recipe.axis) j->along = (size_t)dims[i];
        if (i > recipe.axis) j->tail *= (size_t)dims[i];
    }
    struct wml_derived *d = WML_NEW(&b->m->arena, struct wml_derived);
    *d = (struct wml_derived){.source = source, .size = j->made * count, .turned = recipe.transpose && rank == 2 && !recipe.scale,
                              .produce = produce, .arg = j};
    int64_t turned[3] = {0};
    if (recipe.transpose) {
        j->rows = (size_t)dims[rank - 2];
        j->inner = (size_t)dims[rank - 1];
        turned[0] = dims[0];
        turned[rank - 2] = dims[rank - 1];
        turned[rank - 1] = dims[rank - 2];
        dims = turned;
        /* Whole rows of the result, whole squares where they are not too much: fewer cost as many walks over the source. */
        const size_t row = (j->rows ? j->rows : 1) * j->made, rows = 4 * (size_t)WML_CHUNK / row;
        d->chunk = row * (rows > TILE ? rows / TILE * TILE : row <= MOST_TURNED / TILE ? TILE : row < MOST_TURNED ? MOST_TURNED / row : 1);
    }
    return wml_tensor_derive(b->m, b->real, rank, dims, d);
}
