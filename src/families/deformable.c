/* families/deformable.c - see deformable.h. Places are in the units of GridSample, -1 .. 1 between the edges of a picture. */
#include "families/deformable.h"

static int64_t points_of(const struct wml_deformable *d)
{
    int64_t n = 0;
    for (size_t i = 0; i < d->levels; i++) n += d->points[i];
    return n;
}

/* [1, 1, heads * points, 2]: what an offset is multiplied by, beside the size of the box. */
static struct wml_value *units(struct wml_nn *b, const struct wml_deformable *d, bool boxes)
{
    const int64_t n = points_of(d);
    float *t = wml_nn_room(b, "points", sizeof *t, WML_DIMS(2, d->heads, n)), *at = t;
    if (!t) return NULL;
    for (int64_t h = 0; h < d->heads; h++)
        for (size_t l = 0; l < d->levels; l++)
            for (int64_t i = 0; i < d->points[l]; i++) {
                *at++ = (float)(boxes ? 2 * d->scale / (double)d->points[l] : 2.0 / (double)d->size[l][1]);
                *at++ = (float)(boxes ? 2 * d->scale / (double)d->points[l] : 2.0 / (double)d->size[l][0]);
            }
    return wml_nn_const(b, "units", WML_F32, WML_DIMS(1, 1, d->heads * n, 2), t);
}

/* [1, 1, heads * points, 2]: from the edge of a place to its middle. */
static struct wml_value *middles(struct wml_nn *b, const struct wml_deformable *d)
{
    const int64_t n = points_of(d);
    float *t = wml_nn_room(b, "points", sizeof *t, WML_DIMS(2, d->heads, n)), *at = t;
    if (!t) return NULL;
    for (int64_t h = 0; h < d->heads; h++)
        for (size_t l = 0; l < d->levels; l++)
            for (int64_t i = 0; i < d->points[l]; i++) {
                *at++ = (float)(1.0 / (double)d->size[l][1]);
                *at++ = (float)(1.0 / (double)d->size[l][0]);
            }
    return wml_nn_const(b, "middles", WML_F32, WML_DIMS(1, 1, d->heads * n, 2), t);
}

/* [batch * heads, n, points, 2] */
static struct wml_value *places(struct wml_nn *b, const struct wml_deformable *d, struct wml_value *query, struct wml_value *reference)
{
    static const char *const what = "the number of queries";
    const int64_t n = wml_nn_size(b, query, 1, what), points = points_of(d);
    const bool boxes = wml_nn_size(b, reference, 2, what) == 4;
    struct wml_value *x = wml_nn_reshape(b, wml_nn_linear(b, query, "sampling_offsets", 2 * d->heads * points), WML_DIMS(0, n, d->heads * points, 2));
    x = wml_nn_mul(b, x, units(b, d, boxes));
    struct wml_value *middle = d->nearest ? middles(b, d) : NULL;
    reference = wml_nn_unsqueeze(b, reference, WML_DIMS(2));
    if (boxes) {
        struct wml_value *part[2]; /* middles, sizes */
        wml_nn_split(b, reference, 3, 2, part);
        x = wml_nn_mul(b, x, part[1]);
        reference = part[0];
    }
    x = wml_nn_add(b, x, wml_nn_shift(b, wml_nn_scale(b, reference, 2), -1));
    if (middle) x = wml_nn_add(b, x, middle);
    if (d->heads > 1) x = wml_nn_transpose(b, wml_nn_reshape(b, x, WML_DIMS(0, n, d->heads, 2 * points)), "0213");
    return wml_nn_reshape(b, x, WML_DIMS(-1, n, points, 2));
}

/* [batch * heads, size of a head, n, points]: the values there. */
static struct wml_value *values(struct wml_nn *b, const struct wml_deformable *d, struct wml_value *memory, struct wml_value *at)
{
    struct wml_value *part[WML_DEFORMABLE_LEVELS] = {wml_nn_transpose(b, memory, "021")}, *point[WML_DEFORMABLE_LEVELS] = {at};
    int64_t places[WML_DEFORMABLE_LEVELS];
    for (size_t l = 0; l < d->levels; l++) places[l] = d->size[l][0] * d->size[l][1];
    if (d->levels > 1) {
        wml_nn_split_sizes(b, part[0], 2, d->levels, places, part);
        wml_nn_split_sizes(b, at, 2, d->levels, d->points, point);
    }
    for (size_t l = 0; l < d->levels; l++) {
        struct wml_value *picture = wml_nn_reshape(b, part[l], WML_DIMS(-1, d->hidden / d->heads, d->size[l][0], d->size[l][1]));
        part[l] = wml_nn_grid_sample(b, picture, point[l], d->nearest);
    }
    return d->levels > 1 ? wml_nn_concat(b, 3, d->levels, part) : part[0];
}

struct wml_value *wml_deformable(struct wml_nn *b, const struct wml_deformable *d, struct wml_value *query, struct wml_value *reference,
                                 struct wml_value *memory)
{
    if (b->failed || !query || !reference || !memory) return NULL;
    const int64_t n = wml_nn_size(b, query, 1, "the number of queries"), points = points_of(d);
    if (d->hidden % d->heads)
        return wml_nn_fail(b, WML_E_FORMAT, "config.json: a width of %lld does not divide into %lld attention heads", (long long)d->hidden,
                           (long long)d->heads);
    struct wml_value *x = values(b, d, memory, places(b, d, query, reference));
    struct wml_value *w = wml_nn_reshape(b, wml_nn_linear(b, query, "attention_weights", d->heads * points), WML_DIMS(0, n, d->heads, points));
    w = wml_nn_transpose(b, wml_nn_softmax(b, w, -1), "0213");
    x = wml_nn_mul(b, x, wml_nn_reshape(b, w, WML_DIMS(-1, 1, n, points)));
    x = wml_nn_reduce(b, "ReduceSum", x, WML_DIMS(-1), false);
    return wml_nn_transpose(b, wml_nn_reshape(b, x, WML_DIMS(-1, d->hidden, n)), "021");
}
