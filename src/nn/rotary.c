/* nn/rotary.c - see rotary.h. x cos + swapped(x) sin, where swapped has the halves changed round and sin the sign. */
#include <math.h>
#include "nn/rotary.h"

void wml_nn_rope_init(struct wml_nn_rope *r, int64_t size, double theta)
{
    r->size = size;
    r->factor = 1;
    for (int64_t i = 0; i < size / 2 && i < WML_ROPE_MAX / 2; i++) r->frequency[i] = pow(theta, -2.0 * (double)i / (double)size);
}

static double turned(const struct wml_nn_rope *r, int64_t position, int64_t i, bool sine)
{
    const int64_t half = r->size / 2;
    const double angle = (double)(float)((float)position * (float)r->frequency[i % half]); /* in float, as the models were trained */
    const double factor = r->factor != 0 ? r->factor : 1;
    return factor * (!sine ? cos(angle) : i < half ? -sin(angle) : sin(angle));
}

/* [rows, size] */
static struct wml_value *table(struct wml_nn *b, const struct wml_nn_rope *r, int64_t rows, bool sine)
{
    float *t = wml_nn_room(b, "rotary positions", sizeof *t, WML_DIMS(rows, r->size));
    if (!t) return NULL;
    for (int64_t p = 0; p < rows; p++)
        for (int64_t i = 0; i < r->size; i++) t[p * r->size + i] = (float)turned(r, p, i, sine);
    return wml_nn_const(b, sine ? "rotary.sin" : "rotary.cos", WML_F32, WML_DIMS(rows, r->size), t);
}

struct wml_value *wml_nn_rope_rows(struct wml_nn *b, const struct wml_nn_rope *r, int64_t rows, bool sine, enum wml_dtype dtype)
{
    const int64_t half = r->size / 2, dims[2] = {rows, half};
    unsigned char *t = wml_nn_room(b, "rotary positions", sizeof(float), WML_DIMS(rows, half));
    if (!t) return NULL;
    for (int64_t p = 0; p < rows; p++)
        for (int64_t i = 0; i < half; i++) {
            const double v = turned(r, p, sine ? i + half : i, sine); /* the second half has the sine's own sign */
            wml_dtype_store(dtype, t, (size_t)(p * half + i), v);
        }
    return wml_nn_const(b, sine ? "sin_cache" : "cos_cache", dtype, 2, dims, t);
}

/* Angles [batch, length, size] of positions of an open length. */
static struct wml_value *angles(struct wml_nn *b, const struct wml_nn_rope *r, struct wml_value *positions)
{
    float frequency[WML_ROPE_MAX];
    for (int64_t i = 0; i < r->size; i++) frequency[i] = (float)r->frequency[i % (r->size / 2)];
    struct wml_value *p = wml_nn_cast(b, wml_nn_unsqueeze(b, positions, WML_DIMS(-1)), WML_F32);
    return wml_nn_mul(b, p, wml_nn_const(b, "rotary.frequency", WML_F32, WML_DIMS(r->size), frequency));
}

static struct wml_nn_turn computed(struct wml_nn *b, const struct wml_nn_rope *r, struct wml_value *positions)
{
    float sign[WML_ROPE_MAX];
    const float factor = r->factor != 0 ? (float)r->factor : 1;
    for (int64_t i = 0; i < r->size; i++) sign[i] = i < r->size / 2 ? -factor : factor;
    struct wml_value *a = angles(b, r, positions);
    struct wml_value *c = wml_nn_scale(b, wml_nn_unary(b, "Cos", a), (double)factor);
    struct wml_value *s = wml_nn_mul(b, wml_nn_unary(b, "Sin", a), wml_nn_const(b, "rotary.sign", WML_F32, WML_DIMS(r->size), sign));
    return (struct wml_nn_turn){c, s, r->size};
}

struct wml_nn_turn wml_nn_turn(struct wml_nn *b, const struct wml_nn_rope *r, struct wml_value *positions, struct wml_value *like, int64_t rows)
{
    const struct wml_axis n = wml_nn_axis(positions ? positions : like, 1);
    struct wml_nn_turn t = {.size = r->size};
    if (b->failed) return t;
    if (r->size < 2 || r->size % 2 || r->size > WML_ROPE_MAX) {
        wml_nn_fail(b, WML_E_UNSUPPORTED, "rotary positions of %lld elements", (long long)r->size);
        return t;
    }
    if (n.size < 0) {
        if (!positions) {
            const struct wml_axis axis[2] = {{.size = 1}, n};
            struct wml_value *len = wml_nn_squeeze(b, wml_nn_extent(b, like, 1), WML_DIMS(0));
            positions = wml_nn_out(b, wml_nn_node(b, "", "Range", WML_VALUES(wml_nn_int(b, WML_I64, 0), len, wml_nn_int(b, WML_I64, 1))), WML_I64,
                                   &(struct wml_nn_shape){1, {axis[1]}});
            positions = wml_nn_unsqueeze(b, positions, WML_DIMS(0));
        }
        t = computed(b, r, positions);
    } else {
        if (!positions) rows = n.size;
        if (rows > 1 << 20) {
            wml_nn_fail(b, WML_E_UNSUPPORTED, "a table of %lld positions", (long long)rows);
            return t;
        }
        t.cos = table(b, r, rows, false);
        t.sin = table(b, r, rows, true);
        if (!positions) return t; /* [length, size]: broadcasts as it is */
        t.cos = wml_nn_gather(b, t.cos, positions, 0);
        t.sin = wml_nn_gather(b, t.sin, positions, 0);
    }
    t.cos = wml_nn_unsqueeze(b, t.cos, WML_DIMS(1));
    t.sin = wml_nn_unsqueeze(b, t.sin, WML_DIMS(1));
    return t;
}

struct wml_value *wml_nn_rotate(struct wml_nn *b, struct wml_value *x, const struct wml_nn_turn *t)
{
    if (b->failed || !x || !t->cos) return NULL;
    struct wml_value *half[2], *part[2] = {x, NULL};
    const int64_t size = wml_nn_size(b, x, -1, "the size of a head");
    if (size > t->size) wml_nn_split_sizes(b, x, -1, 2, (const int64_t[]){t->size, size - t->size}, part);
    x = part[0];
    wml_nn_split(b, x, -1, 2, half);
    struct wml_value *swapped = wml_nn_concat(b, -1, WML_VALUES(half[1], half[0]));
    x = wml_nn_add(b, wml_nn_mul(b, x, t->cos), wml_nn_mul(b, swapped, t->sin));
    return part[1] ? wml_nn_concat(b, -1, WML_VALUES(x, part[1])) : x;
}
