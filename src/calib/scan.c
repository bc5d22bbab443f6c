/* Extents of arrays, at the speed of memory: LANES running extremes side by side, which compilers turn into vectors, and
 * blocks small enough to stay in the cache. The fast loop looks for nothing but numbers; a block in which it meets NaN or
 * an infinity is read again element by element. Half floats are compared as integers of the same order. */
#include "calib/internal.h"

#include <float.h>
#include <math.h>

enum { LANES = 32, BLOCK = 2048 };

struct wml_extent wml_extent_none(void)
{
    return (struct wml_extent){.low = INFINITY, .high = -INFINITY, .least = INFINITY};
}

void wml_extent_add(struct wml_extent *into, const struct wml_extent *more)
{
    into->low = WML_MIN(into->low, more->low);
    into->high = WML_MAX(into->high, more->high);
    into->least = WML_MIN(into->least, more->least);
    into->finite += more->finite;
    into->nan += more->nan;
    into->inf += more->inf;
}

static void one(struct wml_extent *e, double x)
{
    if (isnan(x)) {
        e->nan++;
    } else if (isinf(x)) {
        e->inf++;
    } else {
        e->finite++;
        e->low = WML_MIN(e->low, x);
        e->high = WML_MAX(e->high, x);
        e->least = WML_MIN(e->least, fabs(x));
    }
}

static void slow(struct wml_extent *e, enum wml_dtype dtype, const void *data, size_t n)
{
    for (size_t i = 0; i < n; i++) one(e, wml_dtype_load((int)dtype, data, i));
}

/* n is a multiple of LANES. false: something is not finite, and *e is as before. */
static bool fast_f32(struct wml_extent *e, const float *x, size_t n)
{
    float low[LANES], high[LANES], least[LANES];
    uint32_t bad[LANES] = {0}, any = 0;
    for (size_t j = 0; j < LANES; j++) low[j] = high[j] = x[j], least[j] = fabsf(x[j]);
    for (size_t i = 0; i < n; i += LANES)
        for (size_t j = 0; j < LANES; j++) {
            float v = x[i + j], m = fabsf(v);
            low[j] = v < low[j] ? v : low[j];
            high[j] = v > high[j] ? v : high[j];
            least[j] = m < least[j] ? m : least[j];
            bad[j] |= m <= FLT_MAX ? 0 : 1;
        }
    for (size_t j = 0; j < LANES; j++) any |= bad[j];
    if (any) return false;
    for (size_t j = 0; j < LANES; j++) {
        e->low = WML_MIN(e->low, (double)low[j]);
        e->high = WML_MAX(e->high, (double)high[j]);
        e->least = WML_MIN(e->least, (double)least[j]);
    }
    e->finite += n;
    return true;
}

/* Half floats by their bits: as signed integers they have the order of the numbers once the magnitude of the negative
 * ones is complemented. */
static bool fast_f16(struct wml_extent *e, const uint16_t *x, size_t n)
{
    int16_t low[LANES], high[LANES], least[LANES], most[LANES], top = 0;
    for (size_t j = 0; j < LANES; j++) low[j] = least[j] = INT16_MAX, high[j] = INT16_MIN, most[j] = 0;
    for (size_t i = 0; i < n; i += LANES)
        for (size_t j = 0; j < LANES; j++) {
            int16_t h = (int16_t)x[i + j], m = (int16_t)(h & 0x7fff), v = (int16_t)(h ^ ((h >> 15) & 0x7fff));
            low[j] = v < low[j] ? v : low[j];
            high[j] = v > high[j] ? v : high[j];
            least[j] = m < least[j] ? m : least[j];
            most[j] = m > most[j] ? m : most[j];
        }
    for (size_t j = 0; j < LANES; j++) top = WML_MAX(top, most[j]);
    if (top >= 0x7c00) return false;
    for (size_t j = 0; j < LANES; j++) {
        uint16_t lo = (uint16_t)(low[j] ^ ((low[j] >> 15) & 0x7fff)), hi = (uint16_t)(high[j] ^ ((high[j] >> 15) & 0x7fff));
        e->low = WML_MIN(e->low, (double)wml_half_to_float(lo));
        e->high = WML_MAX(e->high, (double)wml_half_to_float(hi));
        e->least = WML_MIN(e->least, (double)wml_half_to_float((uint16_t)least[j]));
    }
    e->finite += n;
    return true;
}

struct wml_extent wml_extent_of(enum wml_dtype dtype, const void *data, size_t n)
{
    struct wml_extent e = wml_extent_none();
    for (size_t i = 0; i < n;) {
        size_t k = WML_MIN(n - i, (size_t)BLOCK);
        if (k >= LANES) k -= k % LANES;
        const void *at = dtype == WML_F16 ? (const void *)((const uint16_t *)data + i) : (const void *)((const float *)data + i);
        if (k < LANES || !(dtype == WML_F16 ? fast_f16(&e, at, k) : fast_f32(&e, at, k))) slow(&e, dtype, at, k);
        i += k;
    }
    return e;
}
