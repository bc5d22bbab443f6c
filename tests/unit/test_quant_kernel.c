/* Kernels of the quantizer: every half, every tie, odd addresses and lengths, all types, against one element at a time; and
 * both variants of each kernel against one another, for which the test takes in the sources themselves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include "base/rng.h"
#include "quant/kernel_half.c"
#include "quant/kernel_linear.c"

enum { N = 70000 };

/* Random magnitudes over the whole range, ties and limits of half floats, special values. */
static float *numbers(void)
{
    static const uint32_t special[] = {0, 0x80000000, 1, 0x80000001, 0x7f800000, 0xff800000, 0x7fc00000, 0x7f800001, 0x337ffae4,
                                       0x337ffae5, 0x33000000, 0x33000001, 0x477fe000, 0x477fe001, 0x477fefff, 0x477ff000,
                                       0x7f7fffff, 0x7f7f7fff, 0x7f7f8000, 0x38800000, 0x387fffff};
    float *x = malloc(N * sizeof *x);
    struct wml_rng r = {7};
    for (size_t i = 0; i < N; i++) {
        uint32_t u = (uint32_t)wml_rng_u64(&r);
        if (i < WML_COUNT(special)) u = special[i];
        else if (i % 3 == 1) u = (u & 0x80000000) | (0x32800000 + u % 0x15800000); /* where halves lie */
        else if (i % 3 == 2) u = ((u & 0xffffe000) | (u & 1 ? 0x1000 : 0)) & 0xc7fff000; /* a tie */
        memcpy(&x[i], &u, sizeof u);
    }
    return x;
}

static uint16_t half_by_rule(float x)
{
    float m = fabsf(x);
    if (m > 0 && m < 5.96e-8f) m = 5.96e-8f;
    if (m > 65504 && isfinite(m)) m = 65504;
    return wml_float_to_half(copysignf(m, x));
}

static uint16_t bf16_by_rule(float x)
{
    uint16_t b = wml_float_to_bf16(x);
    return isfinite(x) && (b & 0x7fff) == 0x7f80 ? (uint16_t)(b - 1) : b;
}

static void test_to_half(void **state)
{
    float *x = numbers();
    uint16_t *a = malloc(2 * N), *b = malloc(2 * N);
    (void)state;
    wml_kernel_f16(x, N, a);
    f16_c((unsigned char *)x, N, b);
    for (size_t i = 0; i < N; i++) {
        if (a[i] != half_by_rule(x[i])) fail_msg("%a became %04x, not %04x", (double)x[i], a[i], half_by_rule(x[i]));
        assert_int_equal(a[i], b[i]);
    }
    wml_kernel_bf16(x, N, a);
    bf16_c((unsigned char *)x, N, b);
    for (size_t i = 0; i < N; i++) {
        if (a[i] != bf16_by_rule(x[i])) fail_msg("%a became bfloat16 %04x, not %04x", (double)x[i], a[i], bf16_by_rule(x[i]));
        assert_int_equal(a[i], b[i]);
    }
    free(x);
    free(a);
    free(b);
}

static void test_from_half(void **state)
{
    uint16_t *h = malloc(2 * 65536);
    float *a = malloc(4 * 65536), *b = malloc(4 * 65536);
    (void)state;
    for (size_t i = 0; i < 65536; i++) h[i] = (uint16_t)i;
    wml_kernel_from_f16(h, 65536, a);
    from_f16_c((unsigned char *)h, 65536, b);
    assert_memory_equal(a, b, 4 * 65536);
    for (size_t i = 0; i < 65536; i++) {
        float want = wml_half_to_float((uint16_t)i);
        assert_true(isnan(want) ? isnan(a[i]) : memcmp(&a[i], &want, 4) == 0);
    }
    wml_kernel_from_bf16(h, 65536, a);
    for (size_t i = 0; i < 65536; i++) {
        float want = wml_bf16_to_float((uint16_t)i);
        assert_memory_equal(&a[i], &want, 4);
    }
    free(h);
    free(a);
    free(b);
}

/* Every address and every length around a vector. */
static void test_addresses(void **state)
{
    unsigned char room[4 * 80];
    float *x = numbers();
    uint16_t a[64], b[64];
    (void)state;
    for (size_t shift = 0; shift < 8; shift++)
        for (size_t n = 0; n <= 64; n++) {
            memcpy(room + shift, x + 100, 4 * n);
            memset(a, 0xaa, sizeof a);
            wml_kernel_f16(room + shift, n, a);
            for (size_t i = 0; i < n; i++) assert_int_equal(a[i], half_by_rule(x[100 + i]));
            for (size_t i = n; i < 64; i++) assert_int_equal(a[i], 0xaaaa);
            wml_kernel_bf16(room + shift, n, b);
            for (size_t i = 0; i < n; i++) assert_int_equal(b[i], bf16_by_rule(x[100 + i]));
        }
    free(x);
}

static int64_t linear_by_rule(float x, float scale, int32_t zero, struct limits l)
{
    float v = x / scale;
    if (isnan(v)) return zero;
    v = rintf(v) + (float)zero;
    return v < (float)l.low ? l.low : v > (float)l.high ? l.high : (int64_t)v;
}

static const enum wml_dtype types[] = {WML_U8, WML_I8, WML_U16, WML_I16, WML_U4, WML_I4};

struct layout { size_t n, inner; };

static void check_linear(enum wml_dtype type, struct layout y, const float *x, enum wml_dtype from, size_t first, size_t count)
{
    float scale[64];
    int32_t zero[64];
    struct limits l = limits_of(type);
    struct wml_linear q = {.type = type, .n = y.n, .inner = y.inner, .scale = scale, .zero = zero};
    unsigned char *out = calloc(2, count + 8);
    for (size_t c = 0; c < y.n; c++) {
        scale[c] = c == 5 ? 1e-38f : ldexpf(1.37f, (int)c % 7 - 4);
        zero[c] = l.low + (l.high - l.low) * (int32_t)(c % 5) / 4;
    }
    wml_kernel_linear(&q, from, x, first, count, out);
    for (size_t i = 0; i < count; i++) {
        size_t c = (first + i) / y.inner % y.n;
        float v = (float)wml_dtype_load((int)from, x, first + i);
        int64_t want = linear_by_rule(v, scale[c], zero[c], l), got = (int64_t)wml_dtype_load((int)type, out, i);
        if (want != got)
            fail_msg("%s: %a / %a + %d gave %d, not %d", wml_dtype_name((int)type), (double)v, (double)scale[c], zero[c], (int)got, (int)want);
    }
    free(out);
}

static void test_linear(void **state)
{
    static const struct layout layout[] = {{1, 1}, {7, 1}, {7, 3}, {64, 500}, {3, 1025}};
    float *x = numbers();
    struct wml_rng r = {3};
    (void)state;
    for (size_t i = 64; i < N; i += 2) x[i] = (float)(wml_rng_normal(&r) * 100);
    for (size_t i = 65; i < N; i += 4) x[i] = ldexpf(1.37f, (int)(i / 4 % 7) - 4) * ((float)(int)(wml_rng_u64(&r) % 512) - 255.5f); /* ties */
    for (size_t t = 0; t < WML_COUNT(types); t++)
        for (size_t y = 0; y < WML_COUNT(layout); y++) {
            check_linear(types[t], layout[y], x, WML_F32, 0, 20000);
            check_linear(types[t], layout[y], x, WML_F32, 1022, 3001);
            check_linear(types[t], layout[y], x, WML_F16, 4, 20001);
            check_linear(types[t], layout[y], x, WML_BF16, 0, 5000);
        }
    free(x);
}

static void test_linear_variants(void **state)
{
    float *x = numbers(), *scale = malloc(N * sizeof *scale);
    int32_t *zero = malloc(N * sizeof *zero);
    unsigned char *a = malloc(2 * N), *b = malloc(2 * N);
    (void)state;
    for (size_t i = 0; i < N; i++) scale[i] = ldexpf(1, (int)(i % 20) - 10), zero[i] = (int32_t)(i % 256);
    for (int wide = 0; WML_HAS_AVX2 && wide < 2; wide++) {
        struct limits l = wide ? (struct limits){0, 65535} : (struct limits){0, 255};
        same_c((unsigned char *)x, N, 0.3f, 17, l, wide, a);
        same_avx2((unsigned char *)x, N, 0.3f, 17, l, wide, b);
        assert_memory_equal(a, b, (size_t)(wide + 1) * N);
        each_c((unsigned char *)x, N, scale, zero, l, wide, a);
        each_avx2((unsigned char *)x, N, scale, zero, l, wide, b);
        assert_memory_equal(a, b, (size_t)(wide + 1) * N);
    }
    free(x);
    free(scale);
    free(zero);
    free(a);
    free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_to_half), cmocka_unit_test(test_from_half), cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_linear), cmocka_unit_test(test_linear_variants),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
