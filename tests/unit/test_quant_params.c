/* Scales and zero points against numbers that NumPy gave for the formulas, and the ranges of channels against plain loops. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "quant/qparams.h"

static void test_params(void **state)
{
    (void)state;
    static const struct {
        struct wml_qform form;
        enum wml_dtype real;
        double low, high, min_range, scale;
        int32_t zero;
    } row[] = {
        {{WML_U8, false, false}, WML_F32, -1, 2, 0, 0.011764706112444401, 85},
        {{WML_U8, true, false}, WML_F32, -1, 2, 0, 0.01568627543747425, 128},
        {{WML_U8, false, true}, WML_F32, -1, 2, 0, 0.023622047156095505, 42},
        {{WML_I8, true, false}, WML_F32, -1, 2, 0, 0.015748031437397003, 0},
        {{WML_I8, false, false}, WML_F32, -1, 2, 0, 0.011764706112444401, -43},
        {{WML_U16, true, false}, WML_F32, -1, 2, 0, 6.103608757257462e-05, 32768},
        {{WML_I16, false, false}, WML_F32, 0.5, 2, 0, 3.051804378628731e-05, -32768},
        {{WML_U4, true, false}, WML_F32, -3, 1, 0, 0.4000000059604645, 8},
        {{WML_I4, true, false}, WML_F32, -3, 1, 0, 0.4000000059604645, 0},
        {{WML_U8, false, false}, WML_F32, 0, 0, 0, 1, 0},
        {{WML_U8, true, false}, WML_F32, 0, 0, 0, 1, 0},
        {{WML_U8, false, false}, WML_F32, 0, 0, 1e-4, 3.921568634268624e-07, 0},
        {{WML_U8, false, false}, WML_F32, 0, 1e-37, 0, 1, 0},
        {{WML_U8, false, false}, WML_F32, -3.4028234663852886e38, 3.4028234663852886e38, 0, 2.6688811501061087e+36, 128},
        {{WML_U8, false, false}, WML_F16, -1, 2, 0, 0.0117645263671875, 85},
        {{WML_U8, false, false}, WML_F16, 0, 1e-5, 0, 5.9604644775390625e-08, 0},
        {{WML_U8, false, false}, WML_F16, 0, 6e-6, 0, 1, 0},
    };
    for (size_t i = 0; i < WML_COUNT(row); i++) {
        struct wml_qparams p = wml_qparams_of(&row[i].form, row[i].real, row[i].low, row[i].high, row[i].min_range);
        double wanted = row[i].real == WML_F16 ? wml_real_round(WML_F16, row[i].scale) : row[i].scale;
        if (p.scale != wanted || p.zero != row[i].zero) fail_msg("row %zu: %.17g, %d", i, p.scale, (int)p.zero);
    }
}

/* Any value in the range is at most half a step away from the real that its integer stands for. */
static void test_round_trip(void **state)
{
    (void)state;
    struct wml_rng rng;
    rng.state = 1;
    static const enum wml_dtype type[] = {WML_U8, WML_I8, WML_U16, WML_I16, WML_U4, WML_I4};
    for (size_t i = 0; i < 6000; i++) {
        struct wml_qform f = {type[i % 6], i / 6 % 2 != 0, false};
        double low = wml_rng_unit(&rng) * 4 - 3, high = low + wml_rng_unit(&rng) * 3;
        int32_t q_low, q_high;
        struct wml_qparams p = wml_qparams_of(&f, WML_F32, low, high, 0);
        wml_qform_range(&f, &q_low, &q_high);
        for (int k = 0; k <= 4; k++) {
            double x = low + (high - low) * k / 4, q = rint(x / p.scale) + p.zero;
            assert_true(q >= q_low - 1 && q <= q_high + 1);
            q = q < q_low ? q_low : q > q_high ? q_high : q;
            /* a symmetric range of an odd number of integers has its middle between two */
            assert_true(fabs((q - p.zero) * p.scale - x) <= p.scale * 1.01);
        }
    }
}

static void test_sixteen_bits(void **state)
{
    (void)state;
    assert_true(wml_real_round(WML_F16, 1 + 0x1p-11 + 0x1p-40) == 1 + 0x1p-10);
    assert_true(wml_real_round(WML_F16, -(1 + 0x1p-11 + 0x1p-40)) == -(1 + 0x1p-10));
    assert_true(wml_real_round(WML_F16, 1 + 0x1p-11) == 1);
    assert_true(wml_real_round(WML_F16, 0x1p-25 + 0x1p-60) == 0x1p-24);
    assert_true(wml_real_above(WML_F16, 1) == 1 + 0x1p-10 && wml_real_above(WML_F32, 1) == 1 + 0x1p-23);
}

static void naive(const float *x, size_t outer, size_t channels, size_t inner, struct wml_weight_range *out)
{
    for (size_t c = 0; c < channels; c++) {
        bool any = false;
        out[c] = (struct wml_weight_range){0};
        for (size_t o = 0; o < outer; o++)
            for (size_t i = 0; i < inner; i++) {
                double v = (double)x[(o * channels + c) * inner + i];
                if (isnan(v)) out[c].has_nan = true;
                else if (isinf(v)) out[c].has_inf = true;
                else {
                    out[c].low = any && out[c].low < v ? out[c].low : v;
                    out[c].high = any && out[c].high > v ? out[c].high : v;
                    any = true;
                }
            }
    }
}

static void test_weight_ranges(void **state)
{
    (void)state;
    enum { MOST = 12500 };
    static const size_t shape[][3] = {{1, 1, 4000}, {1, 7, 65}, {5, 2500, 1}, {3, 4, 9}, {1, 1, 0}, {0, 3, 1}, {2, 1100, 3}, {1, 3, 1}, {4, 1, 1}};
    struct wml_rng rng;
    float *x = malloc(MOST * sizeof *x);
    uint16_t *h = malloc(MOST * sizeof *h);
    unsigned char *odd_address = malloc(MOST * sizeof *x + 1);
    struct wml_weight_range *got = malloc(MOST * sizeof *got), *want = malloc(MOST * sizeof *want);
    rng.state = 2;
    for (size_t s = 0; s < WML_COUNT(shape); s++)
        for (int odd = 0; odd < 3; odd++) { /* all finite; with an infinity; with NaN and nothing else in a channel */
            size_t n = shape[s][0] * shape[s][1] * shape[s][2];
            for (size_t i = 0; i < n; i++) {
                h[i] = wml_float_to_half((float)(wml_rng_unit(&rng) * 8 - 2));
                if (odd && i % 37 == 5) h[i] = odd == 1 ? 0xfc00 : 0x7e00;
                if (odd == 2 && shape[s][2] == 1 && i % shape[s][1] == 1) h[i] = 0x7e00;
                x[i] = wml_half_to_float(h[i]);
            }
            naive(x, shape[s][0], shape[s][1], shape[s][2], want);
            for (int half = 0; half < 2; half++) {
                unsigned char *at_odd = odd_address + 1; /* as in a file */
                memcpy(at_odd, half ? (const void *)h : x, n * (half ? sizeof *h : sizeof *x));
                wml_weight_ranges(half ? WML_F16 : WML_F32, odd == 1 ? at_odd : half ? (const void *)h : x, shape[s][0], shape[s][1], shape[s][2], got);
                for (size_t c = 0; c < shape[s][1]; c++) {
                    assert_true(got[c].low == want[c].low && got[c].high == want[c].high);
                    assert_true(got[c].has_nan == want[c].has_nan && got[c].has_inf == want[c].has_inf);
                }
            }
        }
    free(x), free(h), free(odd_address), free(got), free(want);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_params), cmocka_unit_test(test_round_trip), cmocka_unit_test(test_sixteen_bits), cmocka_unit_test(test_weight_ranges)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
