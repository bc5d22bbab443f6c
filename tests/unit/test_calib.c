/* Ranges of tensors: what is seen, what is left out, how states of threads meet. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/rng.h"
#include "calib/calib.h"

static struct wml_calib *start(const char *method, unsigned threads)
{
    struct wml_err err = {0};
    const struct wml_range_method *m = wml_range_method_find(method);
    assert_non_null(m);
    struct wml_calib *c = wml_calib_new(m, NULL, threads, &err);
    if (!c) fail_msg("%s", err.msg);
    return c;
}

static void expect_extent(const float *x, size_t n, struct wml_extent want)
{
    struct wml_calib *c = start("minmax", 1);
    size_t t = wml_calib_add(c, WML_STR("x"), WML_F32);
    assert_true(wml_calib_pass(c));
    assert_true(wml_calib_wants(c, t));
    wml_calib_observe(c, 0, t, 0, x, n);
    assert_false(wml_calib_pass(c));
    struct wml_extent e = wml_calib_extent(c, t);
    assert_true(e.low == want.low && e.high == want.high && e.least == want.least);
    assert_true(e.finite == want.finite && e.nan == want.nan && e.inf == want.inf);
    struct wml_range r = wml_calib_range(c, t);
    assert_true(r.low == want.low && r.high == want.high && r.dtype == WML_F32);
    wml_calib_free(c);
}

static void test_special_values(void **state)
{
    (void)state;
    const float nan[] = {NAN, NAN}, mixed[] = {NAN, 3, -INFINITY, -2, INFINITY, -0.5F}, zero[] = {-0.0F, 0.0F};
    expect_extent(nan, 0, (struct wml_extent){0});
    expect_extent(nan, 2, (struct wml_extent){.nan = 2});
    expect_extent(mixed, 6, (struct wml_extent){.low = -2, .high = 3, .least = 0.5, .finite = 3, .nan = 1, .inf = 2});
    expect_extent(zero, 2, (struct wml_extent){.finite = 2});
}

/* Every length around the width of the fast loop, the extremes and a NaN at every place. */
static void test_places(void **state)
{
    (void)state;
    float x[150];
    for (size_t n = 1; n < 150; n += n < 70 ? 1 : 13)
        for (size_t at = 0; at < n; at++) {
            for (size_t i = 0; i < n; i++) x[i] = 1.5F;
            x[at] = -7;
            bool one = n == 1;
            expect_extent(x, n, (struct wml_extent){.low = -7, .high = one ? -7 : 1.5, .least = one ? 7 : 1.5, .finite = n});
            x[at] = 7;
            expect_extent(x, n, (struct wml_extent){.low = one ? 7 : 1.5, .high = 7, .least = one ? 7 : 1.5, .finite = n});
            x[at] = NAN;
            double v = one ? 0 : 1.5;
            expect_extent(x, n, (struct wml_extent){.low = v, .high = v, .least = v, .finite = n - 1, .nan = 1});
        }
}

/* All 65536 half floats: smallest and largest finite ones, counts of the others. */
static void test_half(void **state)
{
    (void)state;
    static uint16_t x[65536];
    for (size_t i = 0; i < 65536; i++) x[i] = (uint16_t)(i * 40503U); /* odd factor: every value once, mixed */
    struct wml_calib *c = start("minmax", 1);
    size_t all = wml_calib_add(c, WML_STR("all"), WML_F16), some = wml_calib_add(c, WML_STR("some"), WML_F16);
    assert_true(wml_calib_pass(c));
    wml_calib_observe(c, 0, all, 0, x, 65536);
    uint16_t y[64];
    for (size_t i = 0; i < 64; i++) y[i] = wml_float_to_half((float)i * 0.25F - 9);
    wml_calib_observe(c, 0, some, 0, y, 64);
    assert_false(wml_calib_pass(c));
    struct wml_extent e = wml_calib_extent(c, all);
    assert_true(e.low == -65504 && e.high == 65504 && e.least == 0);
    assert_true(e.finite == 63488 && e.inf == 2 && e.nan == 2046);
    struct wml_range r = wml_calib_range(c, some);
    assert_true(r.low == -9 && r.high == 6.75 && r.dtype == WML_F16);
    wml_calib_free(c);
}

/* The same ranges, in the order of wml_calib_add, whoever observed which sample. */
static void test_threads(void **state)
{
    (void)state;
    enum { SAMPLES = 12, N = 500 };
    static float x[SAMPLES][N];
    struct wml_rng rng = {7};
    for (size_t i = 0; i < SAMPLES * N; i++) x[i / N][i % N] = (float)(wml_rng_unit(&rng) * 8 - 5);
    for (size_t m = 0; wml_range_method_at(m); m++) {
        struct wml_ranges want = {0};
        for (unsigned threads = 1; threads <= 4; threads++) {
            struct wml_calib *c = start(wml_range_method_at(m)->name, threads);
            size_t a = wml_calib_add(c, WML_STR("a"), WML_F32), b = wml_calib_add(c, WML_STR("b"), WML_F32);
            unsigned passes = 0;
            for (; wml_calib_pass(c); passes++)
                for (size_t i = 0; i < SAMPLES; i++) {
                    size_t s = (i * 5 + threads) % SAMPLES;
                    wml_calib_observe(c, (unsigned)i % threads, a, s, x[s], N);
                    wml_calib_observe(c, (unsigned)i % threads, b, s, x[s] + 3, 100);
                    wml_calib_observe(c, (unsigned)i % threads, b, s, x[s] + 103, 50);
                }
            assert_true(passes && passes <= wml_range_method_at(m)->passes);
            struct wml_ranges got = {0};
            wml_calib_finish(c, &got);
            assert_int_equal(got.map.live, 2);
            assert_true(wml_str_is(got.map.entry[0].key, "a") && wml_str_is(got.map.entry[1].key, "b"));
            for (size_t i = 0; i < 2 && threads > 1; i++) {
                const struct wml_range *w = want.map.entry[i].value, *g = got.map.entry[i].value;
                assert_true(w->low == g->low && w->high == g->high && w->low < w->high);
            }
            if (threads == 1) want = got;
            else wml_ranges_release(&got);
            wml_calib_free(c);
        }
        wml_ranges_release(&want);
    }
}

static void test_ranges(void **state)
{
    (void)state;
    struct wml_ranges r = {0};
    char name[] = "first";
    wml_ranges_put(&r, wml_str(name), (struct wml_range){-1, 2, WML_F32});
    name[0] = 'X';
    wml_ranges_put(&r, WML_STR("second"), (struct wml_range){0, 0, WML_F16});
    wml_ranges_put(&r, WML_STR("first"), (struct wml_range){-3, 4, WML_F32});
    assert_null(wml_ranges_find(&r, WML_STR("Xirst")));
    assert_true(wml_ranges_find(&r, WML_STR("first"))->high == 4);
    assert_int_equal(r.map.len, 2);
    assert_true(wml_str_is(r.map.entry[0].key, "first"));
    wml_ranges_release(&r);
    assert_null(wml_ranges_find(&r, WML_STR("first")));
    wml_ranges_release(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_special_values), cmocka_unit_test(test_places), cmocka_unit_test(test_half),
        cmocka_unit_test(test_threads), cmocka_unit_test(test_ranges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
