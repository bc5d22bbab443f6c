/* Half floats. The C versions compute every case (normal, subnormal, beyond the range, NaN) and select, since branches
 * would keep compilers from vectorising. F16C converts eight at once; the limits are applied before. */
#include "quant/kernel.h"

#include <string.h>

#include "quant/kernel_cpu.h"

enum {
    F32_INF = 0x7f800000, F32_HALF_MAX = 0x477fe000 /* 65504 */, F32_HALF_NORMAL = 0x38800000 /* 2^-14 */,
    F32_BF16_MAX = 0x7f7f0000, F32_LEAST = 0x337ffae5 /* 5.96e-8: below it rounds up to the smallest subnormal, 2^-24 */
};

static WML_INLINE int32_t bits_of(float f)
{
    int32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

static WML_INLINE float float_of(int32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

/* Element i; weights lie in files at any address. */
static WML_INLINE int32_t load32(const unsigned char *x, size_t i)
{
    int32_t u;
    memcpy(&u, x + 4 * i, sizeof u);
    return u;
}

static WML_INLINE int32_t load16(const unsigned char *x, size_t i)
{
    uint16_t u;
    memcpy(&u, x + 2 * i, sizeof u);
    return u;
}

static void f16_c(const unsigned char *restrict x, size_t n, uint16_t *restrict out)
{
    for (size_t i = 0; i < n; i++) {
        int32_t u = load32(x, i), m = u & 0x7fffffff, sign = (u >> 16) & 0x8000;
        int32_t special = m > F32_INF ? 0x7e00 | (m >> 13 & 0x3ff) : 0x7c00;
        int32_t c = m > F32_HALF_MAX ? F32_HALF_MAX : m;
        c = c < F32_LEAST ? (c ? F32_LEAST : 0) : c;
        int32_t normal = (c - 0x38000000 + 0xfff + (c >> 13 & 1)) >> 13;
        int32_t subnormal = bits_of(float_of(c) + 0.5f) - bits_of(0.5f); /* the ulp at 0.5 is 2^-24: rounds for us */
        int32_t h = c < F32_HALF_NORMAL ? subnormal : normal;
        out[i] = (uint16_t)((m >= F32_INF ? special : h) | sign);
    }
}

static void from_f16_c(const unsigned char *restrict x, size_t n, float *restrict out)
{
    for (size_t i = 0; i < n; i++) {
        int32_t h = load16(x, i), m = (h & 0x7fff) << 13, sign = (int32_t)((uint32_t)(h & 0x8000) << 16);
        int32_t normal = m + 0x38000000, subnormal = bits_of((float)(h & 0x7fff) * 0x1p-24f);
        int32_t u = (h & 0x7c00) == 0x7c00 ? m | F32_INF | (h & 0x3ff ? 0x400000 : 0) : h & 0x7c00 ? normal : subnormal;
        out[i] = float_of(u | sign);
    }
}

#if WML_X86
WML_AVX2 static void f16_avx2(const unsigned char *restrict x, size_t n, uint16_t *restrict out)
{
    const __m256 sign = _mm256_set1_ps(-0.0f), zero = _mm256_setzero_ps(), inf = _mm256_set1_ps(float_of(F32_INF)),
                 most = _mm256_set1_ps(65504.0f), least = _mm256_set1_ps(float_of(F32_LEAST));
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m256 v = _mm256_loadu_ps((const float *)(const void *)(x + 4 * i)), m = _mm256_andnot_ps(sign, v);
        __m256 c = _mm256_blendv_ps(m, _mm256_min_ps(m, most), _mm256_cmp_ps(m, inf, _CMP_LT_OQ));
        c = _mm256_blendv_ps(c, _mm256_max_ps(c, least), _mm256_cmp_ps(m, zero, _CMP_GT_OQ));
        __m128i h = _mm256_cvtps_ph(_mm256_or_ps(c, _mm256_and_ps(sign, v)), _MM_FROUND_TO_NEAREST_INT);
        _mm_storeu_si128((__m128i *)(void *)(out + i), h);
    }
    f16_c(x + 4 * i, n - i, out + i);
}

WML_AVX2 static void from_f16_avx2(const unsigned char *restrict x, size_t n, float *restrict out)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(x + 2 * i))));
    from_f16_c(x + 2 * i, n - i, out + i);
}
#endif

void wml_kernel_f16(const void *x, size_t n, uint16_t *out)
{
#if WML_X86
    if (WML_HAS_AVX2) {
        f16_avx2(x, n, out);
        return;
    }
#endif
    f16_c(x, n, out);
}

void wml_kernel_from_f16(const void *x, size_t n, float *out)
{
#if WML_X86
    if (WML_HAS_AVX2) {
        from_f16_avx2(x, n, out);
        return;
    }
#endif
    from_f16_c(x, n, out);
}

static WML_INLINE void bf16(const unsigned char *restrict x, size_t n, uint16_t *restrict out)
{
    for (size_t i = 0; i < n; i++) {
        int32_t u = load32(x, i), m = u & 0x7fffffff, sign = (u >> 16) & 0x8000;
        int32_t c = m < F32_BF16_MAX ? m : F32_BF16_MAX, r = (c + 0x7fff + (c >> 16 & 1)) >> 16;
        int32_t h = m > F32_INF ? m >> 16 | 0x40 : m == F32_INF ? 0x7f80 : r;
        out[i] = (uint16_t)(h | sign);
    }
}

static void bf16_c(const unsigned char *x, size_t n, uint16_t *out)
{
    bf16(x, n, out);
}

WML_AVX2 static void bf16_avx2(const unsigned char *x, size_t n, uint16_t *out)
{
    bf16(x, n, out);
}

static void from_bf16_c(const unsigned char *restrict x, size_t n, float *restrict out)
{
    for (size_t i = 0; i < n; i++) out[i] = float_of((int32_t)((uint32_t)load16(x, i) << 16));
}

void wml_kernel_bf16(const void *x, size_t n, uint16_t *out)
{
    (WML_HAS_AVX2 ? bf16_avx2 : bf16_c)(x, n, out);
}

void wml_kernel_from_bf16(const void *x, size_t n, float *out)
{
    from_bf16_c(x, n, out);
}
