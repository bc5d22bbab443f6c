/* The smallest and largest of every channel of a weight. Channels that lie side by side (inner is small) have running
 * extremes each; long runs of one channel have LANES of them. Compilers turn both loops into vectors. Only what a fast
 * loop finds to hold NaN or an infinity is read again, element by element. */
#include "quant/qparams.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { LANES = 32, PIECE = 1024 };

struct extremes { float *low, *high; uint32_t bad; };

/* x[i] goes to channel i. */
static void side_by_side(struct extremes *e, const float *restrict x, size_t n)
{
    float *restrict low = e->low, *restrict high = e->high;
    uint32_t bad = 0;
    for (size_t i = 0; i < n; i++) {
        low[i] = x[i] < low[i] ? x[i] : low[i];
        high[i] = x[i] > high[i] ? x[i] : high[i];
        bad |= fabsf(x[i]) <= FLT_MAX ? 0 : 1;
    }
    e->bad |= bad;
}

static void one_by_one(struct wml_weight_range *r, bool *any, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (isnan(x[i])) {
            r->has_nan = true;
        } else if (isinf(x[i])) {
            r->has_inf = true;
        } else {
            r->low = *any ? WML_MIN(r->low, (double)x[i]) : (double)x[i];
            r->high = *any ? WML_MAX(r->high, (double)x[i]) : (double)x[i];
            *any = true;
        }
    }
}

/* n elements of one channel. */
static void one_channel(struct wml_weight_range *r, bool *any, const float *x, size_t n)
{
    float low[LANES], high[LANES];
    struct extremes e = {low, high, 0};
    size_t whole = n - n % LANES;
    for (size_t j = 0; j < LANES; j++) low[j] = INFINITY, high[j] = -INFINITY;
    for (size_t i = 0; i < whole; i += LANES) side_by_side(&e, x + i, LANES);
    if (e.bad) whole = 0;
    if (whole) {
        float ends[2 * LANES];
        memcpy(ends, low, sizeof low);
        memcpy(ends + LANES, high, sizeof high);
        one_by_one(r, any, ends, 2 * LANES);
    }
    one_by_one(r, any, x + whole, n - whole);
}

/* n <= PIECE elements from `at` on as floats: themselves, or in `room` when they are halves or lie at an odd address, as
 * they may in a file. */
static const float *floats(enum wml_dtype real, const void *data, size_t at, size_t n, float *room)
{
    const unsigned char *from = (const unsigned char *)data + at * (real == WML_F32 ? sizeof(float) : sizeof(uint16_t));
    uint16_t half[PIECE];
    if (real == WML_F32 && (uintptr_t)from % sizeof(float) == 0) return (const float *)(const void *)from;
    memcpy(real == WML_F32 ? (void *)room : half, from, n * (real == WML_F32 ? sizeof(float) : sizeof *half));
    for (size_t i = 0; real != WML_F32 && i < n; i++) room[i] = wml_half_to_float(half[i]);
    return room;
}

static void by_channel(enum wml_dtype real, const void *data, size_t outer, size_t channels, size_t inner, struct wml_weight_range *out)
{
    float room[PIECE];
    for (size_t c = 0; c < channels; c++) {
        bool any = false;
        out[c] = (struct wml_weight_range){0};
        for (size_t o = 0; o < outer; o++)
            for (size_t i = 0, n; i < inner; i += n) {
                n = WML_MIN(inner - i, (size_t)PIECE);
                one_channel(&out[c], &any, floats(real, data, (o * channels + c) * inner + i, n, room), n);
            }
    }
}

void wml_weight_ranges(enum wml_dtype real, const void *data, size_t outer, size_t channels, size_t inner, struct wml_weight_range *out)
{
    float room[PIECE], low[PIECE], high[PIECE];
    struct extremes e = {low, high, 0};
    if (inner > 1 || channels == 1) {
        by_channel(real, data, outer, channels, inner, out);
        return;
    }
    for (size_t c = 0, n; c < channels; c += n) {
        n = WML_MIN(channels - c, (size_t)PIECE);
        for (size_t i = 0; i < n; i++) low[i] = INFINITY, high[i] = -INFINITY;
        for (size_t o = 0; o < outer; o++) side_by_side(&e, floats(real, data, o * channels + c, n, room), n);
        for (size_t i = 0; i < n; i++)
            out[c + i] = low[i] <= high[i] ? (struct wml_weight_range){.low = (double)low[i], .high = (double)high[i]} : (struct wml_weight_range){0};
    }
    if (e.bad) by_channel(real, data, outer, channels, inner, out);
}
