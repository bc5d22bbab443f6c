/* Element types: every half and bfloat16, rounding at every tie, small floats, packing, saturation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include "base/dtype.h"

static void test_half_exhaustive(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 0x10000; h++) {
        float f = wml_half_to_float((uint16_t)h);
        uint32_t exp = h >> 10 & 31, frac = h & 0x3ff;
        uint16_t back = wml_float_to_half(f);
        if (exp == 31 && frac) {
            assert_true(isnan(f));
            assert_true((back & 0x7c00) == 0x7c00 && (back & 0x3ff) && (back & 0x8000) == (h & 0x8000));
            continue;
        }
        /* The value by its definition. */
        double v = exp == 31 ? INFINITY : exp ? ldexp(1024 + frac, (int)exp - 25) : ldexp(frac, -24);
        assert_true((double)f == (h & 0x8000 ? -v : v));
        assert_int_equal(back, h);
    }
}

/* Between neighbours: just below the middle, the middle (to even), just above. */
static void test_half_rounding(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 0x7bff; h++) {
        float a = wml_half_to_float((uint16_t)h), b = wml_half_to_float((uint16_t)(h + 1));
        float middle = (float)(((double)a + b) / 2);
        assert_int_equal(wml_float_to_half(nextafterf(middle, 0)), middle > 0 ? h : 0);
        assert_int_equal(wml_float_to_half(middle), h & 1 ? h + 1 : h);
        assert_int_equal(wml_float_to_half(nextafterf(middle, INFINITY)), h + 1);
        assert_int_equal(wml_float_to_half(-middle), 0x8000 | (h & 1 ? h + 1 : h));
    }
    assert_int_equal(wml_float_to_half(65519.996f), 0x7bff);
    assert_int_equal(wml_float_to_half(65520), 0x7c00);
    assert_int_equal(wml_float_to_half(3.4e38f), 0x7c00);
}

static void test_bf16_exhaustive(void **state)
{
    (void)state;
    for (uint32_t b = 0; b < 0x10000; b++) {
        float f = wml_bf16_to_float((uint16_t)b);
        if (isnan(f)) {
            assert_true(isnan(wml_bf16_to_float(wml_float_to_bf16(f))));
            continue;
        }
        assert_int_equal(wml_float_to_bf16(f), b);
        if ((b & 0x7fff) >= 0x7f7f) continue;
        float next = wml_bf16_to_float((uint16_t)(b + 1)), middle = (float)(((double)f + next) / 2);
        assert_int_equal(wml_float_to_bf16(middle), b & 1 ? b + 1 : b);
    }
    assert_int_equal(wml_float_to_bf16(3.4028234e38f), 0x7f80);
}

static void test_small_floats(void **state)
{
    (void)state;
    static const struct {
        int dtype;
        unsigned code;
        double v;
    } row[] = {
        {WML_F8E4M3FN, 0x7e, 448},     {WML_F8E4M3FN, 0x01, 0x1p-9},   {WML_F8E4M3FN, 0x7f, NAN},
        {WML_F8E4M3FN, 0x80, -0.0},    {WML_F8E4M3FNUZ, 0x7f, 240},    {WML_F8E4M3FNUZ, 0x80, NAN},
        {WML_F8E4M3FNUZ, 1, 0x1p-10},  {WML_F8E5M2, 0x7b, 57344},      {WML_F8E5M2, 0x7c, INFINITY},
        {WML_F8E5M2, 0xfc, -INFINITY}, {WML_F8E5M2, 0x7d, NAN},        {WML_F8E5M2, 1, 0x1p-16},
        {WML_F8E5M2FNUZ, 0x7f, 57344}, {WML_F8E5M2FNUZ, 0x80, NAN},    {WML_F8E5M2FNUZ, 1, 0x1p-17},
        {WML_F8E8M0, 0, 0x1p-127},     {WML_F8E8M0, 127, 1},           {WML_F8E8M0, 255, NAN},
        {WML_F4E2M1, 7, 6},            {WML_F4E2M1, 9, -0.5},
    };
    for (size_t i = 0; i < WML_COUNT(row); i++) {
        unsigned char byte = (unsigned char)row[i].code;
        double v = wml_dtype_load(row[i].dtype, &byte, 0);
        if (isnan(row[i].v) ? !isnan(v) : v != row[i].v) fail_msg("%s %#x: %g", wml_dtype_name(row[i].dtype), byte, v);
    }
}

static void test_store_saturates(void **state)
{
    (void)state;
    static const struct {
        int dtype;
        double in, out;
    } row[] = {
        {WML_U8, 255.5, 255}, {WML_U8, -1, 0},        {WML_U8, 2.5, 2},        {WML_U8, 3.5, 4},
        {WML_I8, 127.6, 127}, {WML_I8, -128.6, -128}, {WML_I8, NAN, 0},        {WML_I16, 1e9, 32767},
        {WML_U16, 65535.4, 65535},                    {WML_I32, -3e9, -2147483648.0},
        {WML_U32, 5e9, 4294967295.0},                 {WML_I64, 1e30, 0x1p63}, {WML_I64, -1e30, -0x1p63},
        {WML_U64, 1e30, 0x1p64},                      {WML_U64, -5, 0},        {WML_I4, 9, 7},
        {WML_I4, -9, -8},     {WML_U4, 16, 15},       {WML_U2, 9, 3},          {WML_I2, -7, -2},
        {WML_BOOL, 0.2, 1},   {WML_F32, 0.1, 0.1f},   {WML_F64, 0.1, 0.1},     {WML_F16, 1e6, INFINITY},
    };
    for (size_t i = 0; i < WML_COUNT(row); i++) {
        unsigned char bytes[16] = {0};
        wml_dtype_store(row[i].dtype, bytes, 0, row[i].in);
        double v = wml_dtype_load(row[i].dtype, bytes, 0);
        if (v != row[i].out) fail_msg("%s: %g gives %g", wml_dtype_name(row[i].dtype), row[i].in, v);
    }
}

static void test_packing(void **state)
{
    (void)state;
    static const int types[] = {WML_U4, WML_I4, WML_U2, WML_I2, WML_U8, WML_I16, WML_U32, WML_I64, WML_F32, WML_BF16};
    for (size_t t = 0; t < WML_COUNT(types); t++) {
        unsigned char bytes[17 * 8];
        memset(bytes, 0xff, sizeof bytes);
        bool has_sign = wml_dtype_info(types[t])->cls != WML_CLASS_UINT;
        for (size_t i = 0; i < 17; i++) wml_dtype_store(types[t], bytes, i, has_sign ? (double)(i % 4) - 2 : (double)(i % 4));
        for (size_t i = 0; i < 17; i++)
            assert_true(wml_dtype_load(types[t], bytes, i) == (has_sign ? (double)(i % 4) - 2 : (double)(i % 4)));
    }
    unsigned char four[2] = {0};
    wml_dtype_store(WML_U4, four, 0, 1);
    wml_dtype_store(WML_U4, four, 1, 2);
    assert_int_equal(four[0], 0x21); /* from the low end, as onnx packs */
}

static void test_names_and_sizes(void **state)
{
    (void)state;
    uint64_t bytes = 0;
    for (int d = 1; d < WML_DTYPE_COUNT; d++) {
        const struct wml_dtype_info *info = wml_dtype_info(d);
        assert_int_equal(wml_dtype_parse(wml_str(info->name)), d);
        assert_int_equal(wml_dtype_parse(wml_str(info->onnx)), d);
        assert_int_equal(wml_dtype_parse(wml_str(info->text)), d);
        assert_int_equal(wml_dtype_bytes(d, 3, &bytes), info->bits != 0);
        if (info->bits) assert_true(bytes == (3 * info->bits + 7) / 8);
    }
    assert_int_equal(wml_dtype_parse(WML_STR("Float32")), WML_F32);
    assert_int_equal(wml_dtype_parse(WML_STR("float33")), WML_UNDEFINED);
    assert_int_equal(wml_dtype_parse(WML_STR("")), WML_UNDEFINED);
    assert_string_equal(wml_dtype_name(-5), "undefined");
    assert_string_equal(wml_dtype_name(1000), "undefined");
    assert_false(wml_dtype_bytes(WML_F64, UINT64_MAX / 8, &bytes));
    assert_false(wml_dtype_bytes(WML_STRING, 1, &bytes));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_half_exhaustive), cmocka_unit_test(test_half_rounding),
        cmocka_unit_test(test_bf16_exhaustive), cmocka_unit_test(test_small_floats),
        cmocka_unit_test(test_store_saturates), cmocka_unit_test(test_packing),
        cmocka_unit_test(test_names_and_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
