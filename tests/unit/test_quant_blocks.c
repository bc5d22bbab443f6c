/* Integers in blocks, one element at a time by the rule against the kernels: sizes that do not divide, odd addresses, pieces
 * that begin anywhere; both variants of each kernel, for which the test takes in the sources themselves. The rule's numbers
 * are compared with ONNX Runtime's own in tests/parity/test_rtn.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include "base/rng.h"
#include "quant/kernel_block.c"
#define scale_of table_scale_of /* names that both have */
#define whole table_whole
#include "quant/kernel_table.c"

enum { K = 333, COLUMNS = 300 };

static float *numbers(size_t n)
{
    struct wml_rng r = {11};
    float *x = malloc(n * sizeof *x);
    for (size_t i = 0; i < n; i++) {
        uint64_t u = wml_rng_u64(&r);
        x[i] = (float)((double)(u >> 40) / 16777216.0 - 0.5);
        if (u % 7 == 0) x[i] = (float)((int)(u >> 8 & 31) - 16) / 2; /* halves: ties, where the scale is a power of 2 */
        if (u % 97 == 0) x[i] = 0;
    }
    return x;
}

static size_t by_rule(const struct wml_blocks *b, const float *x, size_t n, size_t k, float scale, int zero)
{
    float v = roundf(x[k * b->n + n] * (scale != 0 ? 1 / scale : 0) + (float)zero), top = (float)((1 << b->bits) - 1);
    return (size_t)(v < 0 ? 0 : v > top ? top : v);
}

static void check_blocks(const struct wml_blocks *b, const float *x, size_t shift)
{
    const size_t down = wml_blocks_down(b), size = b->size * b->bits / 8, all = b->n * down * size, per = 8 / b->bits;
    float *scale = malloc(b->n * down * sizeof *scale);
    uint8_t *zero = malloc(b->n * down), *out = malloc(all + 8), *piece = malloc(all + 8);
    unsigned char *room = malloc(b->k * b->n * 4 + 8);
    memcpy(room + shift, x, b->k * b->n * 4);
    assert_true(wml_kernel_block_scales(b, room + shift, scale, zero));
    wml_kernel_block_pack(b, room + shift, scale, zero, 0, all, out);
    for (size_t n = 0; n < b->n; n++)
        for (size_t k = 0; k < down * b->size; k++) {
            size_t got = out[n * down * size + k / per] >> (k % per * b->bits) & ((1u << b->bits) - 1);
            size_t at = n * down + k / b->size, want = k < b->k ? by_rule(b, x, n, k, scale[at], zero[at]) : 0;
            if (k == b->k && k % per && (k - 1) % (2 * b->size)) continue; /* the half that ONNX Runtime leaves as it was */
            if (got != want) fail_msg("element %zu of column %zu: %zu, not %zu", k, n, got, want);
        }
    for (size_t at = 0, step = 3 * size; at < all; at += step, step = (step / size * 5 % 1024 + 1) * size) {
        size_t len = WML_MIN(step, all - at);
        memset(piece, 0xaa, all + 8);
        wml_kernel_block_pack(b, room + shift, scale, zero, at, len, piece);
        assert_memory_equal(piece, out + at, len);
        assert_int_equal(piece[len], 0xaa);
    }
    free(scale);
    free(zero);
    free(out);
    free(piece);
    free(room);
}

static void test_blocks(void **state)
{
    static const size_t rows[] = {1, 2, 15, 16, 17, 33, 127, 257, K}, columns[] = {1, 7, 8, 41, 256, COLUMNS};
    float *x = numbers((size_t)K * COLUMNS);
    (void)state;
    for (size_t i = 0; i < WML_COUNT(rows); i++)
        for (size_t j = 0; j < WML_COUNT(columns); j++)
            for (size_t form = 0; form < 8; form++) {
                struct wml_blocks b = {.from = WML_F32, .k = rows[i], .n = columns[j], .size = form & 4 ? 128 : 16,
                                       .bits = form & 1 ? 8 : 4, .symmetric = form & 2};
                check_blocks(&b, x, form);
            }
    free(x);
}

/* The same matrix stored turned, in every type: the same bits, also of a matrix that is to be half floats. */
static void test_turned(void **state)
{
    static const size_t rows[] = {1, 2, 15, 17, 33, 257, K};
    static const enum wml_dtype types[] = {WML_F32, WML_F16, WML_BF16};
    enum { N = 9 };
    float *x = numbers((size_t)K * N);
    (void)state;
    for (size_t i = 0; i < WML_COUNT(rows); i++)
        for (size_t form = 0; form < 24; form++) {
            const enum wml_dtype stored = types[form % 3];
            struct wml_blocks b = {.from = form & 8 ? WML_F16 : WML_F32, .k = rows[i], .n = N, .size = form & 4 ? 128 : 16, .bits = form & 1 ? 8 : 4,
                                   .symmetric = form & 2}, t = b;
            const size_t n = b.n * wml_blocks_down(&b), size = b.size * b.bits / 8, width = wml_dtype_info(stored)->bits / 8;
            unsigned char *given = malloc(b.k * b.n * 4 + 1), *turned = malloc(b.k * b.n * 4 + 1), *out[2] = {malloc(n * size), malloc(n * size)};
            float *scale[2] = {malloc(n * 4), malloc(n * 4)};
            uint8_t *zero[2] = {malloc(n), malloc(n)};
            t.stored = stored;
            for (size_t k = 0; k < b.k; k++)
                for (size_t c = 0; c < N; c++) {
                    wml_dtype_store(stored, turned + 1, c * b.k + k, x[k * N + c]);
                    wml_dtype_store(b.from, given, k * N + c, wml_dtype_load(stored, turned + 1, c * b.k + k));
                }
            assert_true(width && wml_kernel_block_scales(&b, given, scale[0], zero[0]) && wml_kernel_block_scales(&t, turned + 1, scale[1], zero[1]));
            assert_memory_equal(scale[0], scale[1], n * 4);
            assert_memory_equal(zero[0], zero[1], n);
            wml_kernel_block_pack(&b, given, scale[0], zero[0], 0, n * size, out[0]);
            wml_kernel_block_pack(&t, turned + 1, scale[1], zero[1], 0, n / 2 * size, out[1]);
            wml_kernel_block_pack(&t, turned + 1, scale[1], zero[1], n / 2 * size, (n - n / 2) * size, out[1] + n / 2 * size);
            assert_memory_equal(out[0], out[1], n * size);
            for (size_t k = 0; k < 2; k++) {
                free(out[k]);
                free(scale[k]);
                free(zero[k]);
            }
            free(given);
            free(turned);
        }
    free(x);
}

static void test_block_variants(void **state)
{
    float *x = numbers(2 * PANEL);
    struct columns q = {.low = 0, .top = 15};
    (void)state;
    for (size_t i = 0; i < PANEL; i++) {
        q.by[i] = i % 9 == 0 ? INFINITY : i % 9 == 1 ? 0 : 14.0f - (float)i;
        q.zero[i] = (float)(i % 16);
    }
    for (size_t m = 0; m <= PANEL; m++)
        for (size_t two = 0; two < 2; two++) {
            uint8_t a[PANEL], b[PANEL];
            struct range r = {0}, s = {0};
            unsigned char *in = (unsigned char *)x, *more = two ? in + 4 * PANEL : NULL;
            q.top = two ? 15 : 255;
            bytes_c(in, more, m, &q, a);
            bytes_avx2(in, more, m, &q, b);
            assert_memory_equal(a, b, m);
            assert_int_equal(widen_c(in, m, &r), widen_avx2(in, m, &s));
            assert_memory_equal(&r, &s, sizeof r);
        }
    free(x);
}

static void test_not_finite(void **state)
{
    static const float bad[] = {NAN, -NAN, INFINITY, -INFINITY};
    const struct wml_blocks b = {.from = WML_F32, .k = 40, .n = 19, .size = 16, .bits = 4, .symmetric = true};
    const struct wml_table t = {.from = WML_F32, .rows = 40, .columns = 19, .size = 16, .bits = 4, .symmetric = true};
    float *x = numbers(40 * 19), scale[19 * 40];
    uint8_t zero[19 * 40];
    (void)state;
    for (size_t i = 0; i < 40 * 19; i++)
        for (size_t k = 0; k < WML_COUNT(bad); k++) {
            float was = x[i];
            x[i] = bad[k];
            assert_false(wml_kernel_block_scales(&b, x, scale, zero));
            assert_false(wml_kernel_table_scales(&t, x, scale, zero));
            x[i] = was;
        }
    assert_true(wml_kernel_block_scales(&b, x, scale, zero));
    assert_true(wml_kernel_table_scales(&t, x, scale, zero));
    free(x);
}

static int table_by_rule(const struct wml_table *t, float x, float scale, int zero)
{
    const float half = (float)(1 << (t->bits - 1)), top = 2 * half - 1;
    if (scale == 0) return zero;
    float v = t->symmetric ? rintf(x / scale) : rintf(x / scale + (float)zero);
    if (!t->symmetric) return (int)(v < 0 ? 0 : v > top ? top : v);
    return (int)(v < -half ? -half : v > half - 1 ? half - 1 : v) + (int)half;
}

static void test_tables(void **state)
{
    float *x = numbers((size_t)K * COLUMNS), *scale = malloc((size_t)K * COLUMNS * 4);
    uint8_t *zero = malloc((size_t)K * COLUMNS), *out = malloc((size_t)K * COLUMNS), *part = malloc((size_t)K * COLUMNS);
    (void)state;
    for (size_t form = 0; form < 8; form++) {
        const struct wml_table t = {.from = WML_F32, .rows = 31, .columns = form & 4 ? COLUMNS : 37, .size = 32, .bits = form & 1 ? 8 : 4,
                                    .symmetric = form & 2};
        const size_t all = t.rows * t.columns, per = 8 / t.bits;
        assert_true(wml_kernel_table_scales(&t, x, scale, zero));
        wml_kernel_table_pack(&t, x, scale, zero, false, 0, all, out);
        for (size_t i = 0; i < all; i++) {
            size_t at = i / t.columns * wml_table_blocks(&t) + i % t.columns / t.size;
            int got = out[i / per] >> (i % per * t.bits) & ((1 << t.bits) - 1);
            assert_int_equal(got, table_by_rule(&t, x[i], scale[at], zero[at]));
        }
        for (size_t first = 0; first < all; first += 130) {
            size_t count = WML_MIN((size_t)610, all - first);
            wml_kernel_table_pack(&t, x, scale, zero, false, first, count, part);
            assert_memory_equal(part, out + first / per, count / per);
        }
    }
    free(x);
    free(scale);
    free(zero);
    free(out);
    free(part);
}

static void test_table_variants(void **state)
{
    float *x = numbers(PIECE);
    unsigned char *in = (unsigned char *)x;
    (void)state;
    for (size_t n = 1; n < PIECE; n += 13) {
        uint8_t a[PIECE], b[PIECE];
        struct run q = {.scale = -0.07f, .zero = 3, .low = -8, .high = 7, .add = 8, .half = n % 2};
        whole_c(in, n, &q, a);
        whole_avx2(in, n, &q, b);
        assert_memory_equal(a, b, n);
        struct ends e = ends_c(in, n), f = ends_avx2(in, n);
        assert_memory_equal(&e, &f, sizeof e);
    }
    free(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_blocks), cmocka_unit_test(test_turned), cmocka_unit_test(test_block_variants), cmocka_unit_test(test_not_finite),
                                       cmocka_unit_test(test_tables), cmocka_unit_test(test_table_variants)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
