/* Linear quantisation. Values are clamped before they are rounded, which gives the same as after it since the limits are
 * integers, and keeps them small: adding 1.5 * 2^23 then rounds half to even and leaves the integer in the low bits of
 * the float, without any instruction that only some processors have. Integers of 4 bits are made as bytes, then packed. */
#include "quant/kernel.h"

#include <string.h>

#include "base/cc.h"
#include "quant/kernel_cpu.h"

enum { PIECE = 1024, MAGIC_BITS = 0x4b400000 };
static const float MAGIC = 12582912.0f; /* 1.5 * 2^23 */

struct limits { int32_t low, high; };

static struct limits limits_of(enum wml_dtype type)
{
    const struct wml_dtype_info *info = wml_dtype_info((int)type);
    int32_t span = (int32_t)1 << info->bits;
    if (info->cls == WML_CLASS_UINT) return (struct limits){0, span - 1};
    return (struct limits){-span / 2, span / 2 - 1};
}

/* Element i of x / scale, within low..high (both less zero), rounded, plus zero. */
static WML_INLINE int32_t quantise(const unsigned char *x, size_t i, float scale, float low, float high, int32_t zero)
{
    float v, c;
    int32_t u;
    memcpy(&v, x + i * sizeof v, sizeof v); /* weights lie in files at any address */
    v /= scale;
    c = v > low ? v : low;
    c = c < high ? c : high;
    c += MAGIC;
    memcpy(&u, &c, sizeof u);
    return ((u - MAGIC_BITS) & -(int32_t)(v == v)) + zero;
}

/* One scale for all. */
#define SAME(name, type)                                                                                                       \
    static WML_INLINE void name(const unsigned char *restrict x, size_t n, float scale, int32_t zero, struct limits l, type *restrict out) \
    {                                                                                                                          \
        const float low = (float)(l.low - zero), high = (float)(l.high - zero);                                                \
        for (size_t i = 0; i < n; i++) out[i] = (type)quantise(x, i, scale, low, high, zero);                                  \
    }
/* Every element has its own. */
#define EACH(name, type)                                                                                                       \
    static WML_INLINE void name(const unsigned char *restrict x, size_t n, const float *restrict scale, const int32_t *restrict zero,  \
                                struct limits l, type *restrict out)                                                           \
    {                                                                                                                          \
        for (size_t i = 0; i < n; i++)                                                                                         \
            out[i] = (type)quantise(x, i, scale[i], (float)(l.low - zero[i]), (float)(l.high - zero[i]), zero[i]);             \
    }
SAME(same8, uint8_t)
SAME(same16, uint16_t)
EACH(each8, uint8_t)
EACH(each16, uint16_t)

static WML_INLINE void same(const unsigned char *x, size_t n, float scale, int32_t zero, struct limits l, bool wide, void *out)
{
    if (wide) same16(x, n, scale, zero, l, out);
    else same8(x, n, scale, zero, l, out);
}

static WML_INLINE void each(const unsigned char *x, size_t n, const float *scale, const int32_t *zero, struct limits l, bool wide, void *out)
{
    if (wide) each16(x, n, scale, zero, l, out);
    else each8(x, n, scale, zero, l, out);
}

static void same_c(const unsigned char *x, size_t n, float scale, int32_t zero, struct limits l, bool wide, void *out)
{
    same(x, n, scale, zero, l, wide, out);
}

static void each_c(const unsigned char *x, size_t n, const float *scale, const int32_t *zero, struct limits l, bool wide, void *out)
{
    each(x, n, scale, zero, l, wide, out);
}

WML_AVX2 static void same_avx2(const unsigned char *x, size_t n, float scale, int32_t zero, struct limits l, bool wide, void *out)
{
    same(x, n, scale, zero, l, wide, out);
}

WML_AVX2 static void each_avx2(const unsigned char *x, size_t n, const float *scale, const int32_t *zero, struct limits l, bool wide, void *out)
{
    each(x, n, scale, zero, l, wide, out);
}

/* n <= PIECE elements from `at` on: runs of one channel, or channels side by side. */
static void piece(const struct wml_linear *q, const unsigned char *x, size_t at, size_t n, struct limits l, bool wide, unsigned char *out)
{
    const size_t width = wide ? 2 : 1;
    const bool avx2 = WML_HAS_AVX2;
    for (size_t i = 0, k; i < n; i += k) {
        size_t c = (at + i) / q->inner % q->n;
        if (q->inner == 1 && q->n > 1) {
            k = WML_MIN(n - i, q->n - c);
            (avx2 ? each_avx2 : each_c)(x + i * sizeof(float), k, q->scale + c, q->zero + c, l, wide, out + i * width);
        } else {
            k = q->n == 1 ? n - i : WML_MIN(n - i, q->inner - (at + i) % q->inner);
            (avx2 ? same_avx2 : same_c)(x + i * sizeof(float), k, q->scale[c], q->zero[c], l, wide, out + i * width);
        }
    }
}

static void pack(const unsigned char *restrict x, size_t n, unsigned char *restrict out)
{
    for (size_t i = 0; i < n / 2; i++) out[i] = (unsigned char)((x[2 * i] & 15) | x[2 * i + 1] << 4);
    if (n % 2) out[n / 2] = x[n - 1] & 15;
}

/* n elements from `at` on as float32: where they lie, or in room. */
static const void *floats(enum wml_dtype from, const unsigned char *x, size_t at, size_t n, float *room)
{
    if (from == WML_F32) return x + at * sizeof(float);
    if (from == WML_F16) wml_kernel_from_f16(x + at * sizeof(uint16_t), n, room);
    else wml_kernel_from_bf16(x + at * sizeof(uint16_t), n, room);
    return room;
}

void wml_kernel_linear(const struct wml_linear *q, enum wml_dtype from, const void *x, size_t first, size_t count, void *out)
{
    const unsigned bits = wml_dtype_info((int)q->type)->bits;
    const struct limits l = limits_of(q->type);
    unsigned char *to = out, bytes[PIECE];
    float room[PIECE];
    for (size_t i = 0, n; i < count; i += n, to += (n * bits + 7) / 8) {
        n = WML_MIN(count - i, (size_t)PIECE);
        const void *v = floats(from, x, first + i, n, room);
        piece(q, v, first + i, n, l, bits == 16, bits == 4 ? bytes : to);
        if (bits == 4) pack(bytes, n, to);
    }
}
