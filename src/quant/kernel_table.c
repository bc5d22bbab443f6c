/* Blocks along the rows of a table: runs of elements with one scale. The smallest and largest element are found among
 * integers that order as the floats do, since compilers do not reorder comparisons of floats. */
#include "quant/kernel_table.h"

#include <float.h>
#include <string.h>

#include "base/cc.h"
#include "quant/kernel.h"
#include "quant/kernel_cpu.h"

#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF /* a fused step rounds once: other bits */
#endif

enum { PIECE = 512, MAGIC_BITS = 0x4b400000 };
static const float MAGIC = 12582912.0f; /* 1.5 * 2^23: adding it rounds half to even */

static WML_INLINE int32_t load_bits(const unsigned char *x, size_t i)
{
    int32_t u;
    memcpy(&u, x + i * sizeof u, sizeof u); /* weights lie in files at any address */
    return u;
}

static WML_INLINE float float_of(int32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

static WML_INLINE int32_t ordered(int32_t u) /* its own inverse */
{
    return u ^ (u >> 31 & 0x7fffffff);
}

/* n elements from `at` on as float32: where they lie, or in room. */
static const unsigned char *floats(const struct wml_table *t, const unsigned char *x, size_t at, size_t n, float *room)
{
    if (t->from == WML_F32) return x + at * sizeof(float);
    wml_kernel_from_f16(x + at * sizeof(uint16_t), n, room);
    return (const unsigned char *)room;
}

/* v in the type of the table. */
static float rounded(const struct wml_table *t, float v)
{
    return t->from == WML_F16 ? wml_half_to_float(wml_float_to_half(v)) : v;
}

/* --- scales --- */

struct ends { int32_t low, high; }; /* ordered */

static WML_INLINE struct ends ends_of(const unsigned char *restrict x, size_t n)
{
    struct ends e = {INT32_MAX, INT32_MIN};
    for (size_t i = 0; i < n; i++) {
        int32_t o = ordered(load_bits(x, i));
        e.low = o < e.low ? o : e.low;
        e.high = o > e.high ? o : e.high;
    }
    return e;
}

static struct ends ends_c(const unsigned char *x, size_t n)
{
    return ends_of(x, n);
}

WML_AVX2 static struct ends ends_avx2(const unsigned char *x, size_t n)
{
    return ends_of(x, n);
}

static bool is_finite(float v)
{
    return v >= -FLT_MAX && v <= FLT_MAX;
}

static float scale_of(const struct wml_table *t, float low, float high, uint8_t *zero)
{
    const float half = (float)(1u << (t->bits - 1)), top = 2 * half - 1;
    *zero = (uint8_t)half;
    if (t->symmetric) {
        float m = (high < 0 ? -high : high) > (low < 0 ? -low : low) ? high : low;
        return rounded(t, m / -half);
    }
    low = low < 0 ? low : 0;
    high = high > 0 ? high : 0;
    float scale = rounded(t, rounded(t, high - low) / top);
    if (scale == 0 || !is_finite(scale)) return scale;
    float z = rounded(t, -low / scale);
    z = z < top ? z : top;
    *zero = (uint8_t)(z + MAGIC - MAGIC);
    return scale;
}

bool wml_kernel_table_scales(const struct wml_table *t, const void *x, float *scale, uint8_t *zero)
{
    const bool avx2 = WML_HAS_AVX2;
    float room[PIECE];
    for (size_t r = 0; r < t->rows; r++)
        for (size_t c = 0; c < t->columns; c += t->size, scale++, zero++) {
            size_t n = WML_MIN(t->columns - c, t->size);
            struct ends e = (avx2 ? ends_avx2 : ends_c)(floats(t, x, r * t->columns + c, n, room), n);
            float low = float_of(ordered(e.low)), high = float_of(ordered(e.high));
            if (!is_finite(low) || !is_finite(high)) return false; /* NaN lies beyond infinity in this order */
            *scale = scale_of(t, low, high, zero);
            if (!is_finite(*scale)) return false;
        }
    return true;
}

/* --- integers --- */

struct run { float scale, zero, low, high; int32_t add; bool half; }; /* q = round(x / scale + zero in low..high) + add */

/* To the 11 bits of a normal half. Below those the result of a block is zero's in any case, above them the end's. */
static WML_INLINE float to_half(float v)
{
    int32_t u;
    memcpy(&u, &v, sizeof u);
    return float_of((u + 0xfff + (u >> 13 & 1)) & ~0x1fff);
}

static WML_INLINE void whole(const unsigned char *restrict x, size_t n, const struct run *q, bool half, uint8_t *restrict out)
{
    const float scale = q->scale, zero = q->zero, low = q->low, high = q->high;
    const int32_t add = q->add - MAGIC_BITS;
    for (size_t i = 0; i < n; i++) {
        float v = float_of(load_bits(x, i)) / scale;
        if (half) v = to_half(v);
        v += zero;
        if (half) v = to_half(v);
        v = v > low ? v : low;
        v = (v < high ? v : high) + MAGIC;
        int32_t u;
        memcpy(&u, &v, sizeof u);
        out[i] = (uint8_t)(u + add);
    }
}

static WML_INLINE void both(const unsigned char *x, size_t n, const struct run *q, uint8_t *out)
{
    if (q->half) whole(x, n, q, true, out);
    else whole(x, n, q, false, out);
}

static void whole_c(const unsigned char *x, size_t n, const struct run *q, uint8_t *out)
{
    both(x, n, q, out);
}

WML_AVX2 static void whole_avx2(const unsigned char *x, size_t n, const struct run *q, uint8_t *out)
{
    both(x, n, q, out);
}

static struct run run_of(const struct wml_table *t, float scale, uint8_t zero, bool is_signed)
{
    const float half = (float)(1u << (t->bits - 1));
    const int32_t shift = is_signed ? -(int32_t)half : 0;
    struct run q = {.scale = scale, .half = t->from == WML_F16, .add = shift};
    if (scale == 0) { /* whatever the element, the result is that of 0 */
        q.scale = 1;
        q.add += zero;
    } else if (t->symmetric) {
        q.low = -half;
        q.high = half - 1;
        q.add += zero;
    } else {
        q.zero = zero;
        q.high = 2 * half - 1;
    }
    return q;
}

static void pack(const uint8_t *restrict x, size_t n, unsigned char *restrict out)
{
    for (size_t i = 0; i < n / 2; i++) out[i] = (unsigned char)((x[2 * i] & 15) | x[2 * i + 1] << 4);
    if (n % 2) out[n / 2] = x[n - 1] & 15;
}

void wml_kernel_table_pack(const struct wml_table *t, const void *x, const float *scale, const uint8_t *zero, bool is_signed, size_t first,
                           size_t count, unsigned char *out)
{
    const size_t blocks = wml_table_blocks(t), end = first + count;
    const bool avx2 = WML_HAS_AVX2;
    uint8_t bytes[PIECE];
    float room[PIECE];
    for (size_t at = first, stop; at < end; at = stop, out += PIECE * t->bits / 8) {
        stop = WML_MIN(end, at + PIECE);
        uint8_t *to = t->bits == 4 ? bytes : out;
        for (size_t i = at, n; i < stop; i += n) {
            size_t c = i % t->columns, block = i / t->columns * blocks + c / t->size;
            n = WML_MIN(WML_MIN(t->columns - c, t->size - c % t->size), stop - i);
            struct run q = run_of(t, scale[block], zero[block], is_signed);
            (avx2 ? whole_avx2 : whole_c)(floats(t, x, i, n, room), n, &q, to + (i - at));
        }
        if (t->bits == 4) pack(bytes, stop - at, out);
    }
}
