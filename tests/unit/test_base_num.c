/* Numbers from text, overflow, the cursor over untrusted bytes, hashes, random numbers, errors, slices. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include "base/ctx.h"
#include "base/hash.h"
#include "base/num.h"
#include "base/rd.h"
#include "base/rng.h"

static void test_integers(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool is_i64;
        int64_t i;
        bool is_u64;
        uint64_t u;
    } row[] = {
        {"0", true, 0, true, 0},
        {"007", true, 7, true, 7},
        {"+5", true, 5, false, 0},
        {"-5", true, -5, false, 0},
        {"9223372036854775807", true, INT64_MAX, true, INT64_MAX},
        {"9223372036854775808", false, 0, true, UINT64_C(9223372036854775808)},
        {"-9223372036854775808", true, INT64_MIN, false, 0},
        {"-9223372036854775809", false, 0, false, 0},
        {"18446744073709551615", false, 0, true, UINT64_MAX},
        {"18446744073709551616", false, 0, false, 0},
        {"99999999999999999999999", false, 0, false, 0},
        {"", false, 0, false, 0},
        {"-", false, 0, false, 0},
        {"+-1", false, 0, false, 0},
        {" 1", false, 0, false, 0},
        {"1 ", false, 0, false, 0},
        {"0x10", false, 0, false, 0},
        {"1e3", false, 0, false, 0},
    };
    for (size_t i = 0; i < WML_COUNT(row); i++) {
        int64_t v = 1;
        uint64_t u = 1;
        if (wml_parse_i64(wml_str(row[i].text), &v) != row[i].is_i64) fail_msg("i64 '%s'", row[i].text);
        if (row[i].is_i64) assert_true(v == row[i].i);
        if (wml_parse_u64(wml_str(row[i].text), &u) != row[i].is_u64) fail_msg("u64 '%s'", row[i].text);
        if (row[i].is_u64) assert_true(u == row[i].u);
    }
}

static void test_reals(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double v;
    } good[] = {{"0.1", 0.1}, {"-1e-3", -1e-3}, {"1e308", 1e308}, {".5", .5}, {"7", 7}, {"inf", INFINITY}};
    static const char *const bad[] = {"", " 1", "1 ", "1,5", "1.5x", "--1", "e5", "\t1"};
    double v;
    for (size_t i = 0; i < WML_COUNT(good); i++) {
        assert_true(wml_parse_f64(wml_str(good[i].text), &v));
        assert_true(v == good[i].v);
    }
    for (size_t i = 0; i < WML_COUNT(bad); i++)
        if (wml_parse_f64(wml_str(bad[i]), &v)) fail_msg("'%s' is no number", bad[i]);
    assert_true(wml_parse_f64(WML_STR("nan"), &v) && isnan(v));
    assert_false(wml_parse_f64((struct wml_str){"1\0002", 3}, &v));
}

static void test_overflow(void **state)
{
    (void)state;
    static const int64_t edge[] = {0, 1, -1, 2, -2, 3, INT64_MAX, INT64_MIN, INT64_MAX / 2, INT64_MIN / 2, INT64_C(1) << 32};
    for (size_t i = 0; i < WML_COUNT(edge); i++)
        for (size_t k = 0; k < WML_COUNT(edge); k++) {
            __extension__ __int128 exact = (__int128)edge[i] * edge[k];
            bool fits = exact >= INT64_MIN && exact <= INT64_MAX;
            int64_t out = 0;
            assert_int_equal(wml_mul_i64(edge[i], edge[k], &out), fits);
            if (fits) assert_true(out == (int64_t)exact);
        }
    size_t s = 77;
    assert_false(wml_mul_size(SIZE_MAX / 2, 3, &s));
    assert_false(wml_add_size(SIZE_MAX, 1, &s));
    assert_int_equal(s, 77);
    assert_true(wml_mul_size(SIZE_MAX, 1, &s) && s == SIZE_MAX);
    assert_true(wml_mul_size(SIZE_MAX, 0, &s) && s == 0);
    assert_true(wml_add_size(SIZE_MAX - 1, 1, &s) && s == SIZE_MAX);
}

static void test_cursor(void **state)
{
    (void)state;
    static const unsigned char b[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
    struct wml_err err = {0};
    struct wml_rd r = wml_rd(b, sizeof b), inner;
    struct wml_span s;
    uint8_t u8;
    uint16_t u16;
    uint32_t u32;
    uint64_t u64;
    assert_true(wml_rd_u8(&r, &u8, &err) && u8 == 1);
    assert_true(wml_rd_u16(&r, &u16, &err) && u16 == 0x0302);
    assert_true(wml_rd_u32(&r, &u32, &err) && u32 == 0x07060504);
    assert_true(wml_rd_sub(&r, 4, &inner, &err));
    assert_true(wml_rd_offset(&inner) == 7);
    assert_true(wml_rd_bytes(&inner, 4, &s, &err) && s.len == 4 && s.ptr[0] == 8);
    assert_false(wml_rd_u8(&inner, &u8, &err));
    assert_int_equal(err.code, WML_E_FORMAT);
    assert_non_null(strstr(err.msg, "11")); /* the absolute offset */
    assert_int_equal(wml_rd_left(&r), 5);
    assert_false(wml_rd_u64(&r, &u64, &err));
    assert_false(wml_rd_skip(&r, UINT64_MAX, &err));
    assert_false(wml_rd_bytes(&r, 6, &s, &err));
    assert_true(wml_rd_skip(&r, 5, &err));
    assert_int_equal(wml_rd_left(&r), 0);
}

static void test_varint(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t n;
        bool ok;
        uint64_t v;
    } row[] = {
        {"\x00", 1, true, 0},
        {"\x7f", 1, true, 127},
        {"\x80\x01", 2, true, 128},
        {"\xac\x02", 2, true, 300},
        {"\x80\x80\x00", 3, true, 0}, /* longer than needed is allowed */
        {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10, true, UINT64_MAX},
        {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 10, false, 0},
        {"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 11, false, 0},
        {"\x80", 1, false, 0},
        {"", 0, false, 0},
    };
    for (size_t i = 0; i < WML_COUNT(row); i++) {
        struct wml_rd r = wml_rd(row[i].bytes, row[i].n);
        struct wml_err err = {0};
        uint64_t v = 0;
        if (wml_rd_varint(&r, &v, &err) != row[i].ok) fail_msg("row %zu", i);
        if (row[i].ok) assert_true(v == row[i].v && wml_rd_left(&r) == 0);
        else assert_int_equal(err.code, WML_E_FORMAT);
    }
}

static void hex_of(const char *text, size_t times, size_t piece, char hex[WML_SHA256_HEX])
{
    struct wml_sha256 s;
    size_t n = strlen(text);
    wml_sha256_init(&s);
    for (size_t t = 0; t < times; t++)
        for (size_t at = 0; at < n; at += piece) wml_sha256_add(&s, text + at, WML_MIN(piece, n - at));
    wml_sha256_hex(&s, hex);
}

/* FIPS 180-4 examples, the million letters, and every split of a text over blocks. */
static void test_sha256(void **state)
{
    (void)state;
    char hex[WML_SHA256_HEX], whole[WML_SHA256_HEX];
    hex_of("", 1, 1, hex);
    assert_string_equal(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    hex_of("abc", 1, 3, hex);
    assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    hex_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1, 100, hex);
    assert_string_equal(hex, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    hex_of("aaaaaaaaaa", 100000, 10, hex);
    assert_string_equal(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    static char text[200];
    memset(text, 'q', sizeof text - 1);
    hex_of(text, 1, sizeof text, whole);
    for (size_t piece = 1; piece < sizeof text; piece++) {
        hex_of(text, 1, piece, hex);
        assert_string_equal(hex, whole);
    }
}

/* The same of SHA-1. */
static void sha1_of(const char *text, size_t times, size_t piece, char hex[WML_SHA1_HEX])
{
    struct wml_sha1 s;
    size_t n = strlen(text);
    wml_sha1_init(&s);
    for (size_t t = 0; t < times; t++)
        for (size_t at = 0; at < n; at += piece) wml_sha1_add(&s, text + at, WML_MIN(piece, n - at));
    wml_sha1_hex(&s, hex);
}

static void test_sha1(void **state)
{
    (void)state;
    char hex[WML_SHA1_HEX], whole[WML_SHA1_HEX];
    sha1_of("", 1, 1, hex);
    assert_string_equal(hex, "da39a3ee5e6b4b0d3255bfef95601890afd80709");
    sha1_of("abc", 1, 3, hex);
    assert_string_equal(hex, "a9993e364706816aba3e25717850c26c9cd0d89d");
    sha1_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1, 100, hex);
    assert_string_equal(hex, "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
    sha1_of("aaaaaaaaaa", 100000, 10, hex);
    assert_string_equal(hex, "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
    static char text[200];
    memset(text, 'q', sizeof text - 1);
    sha1_of(text, 1, sizeof text, whole);
    for (size_t piece = 1; piece < sizeof text; piece++) {
        sha1_of(text, 1, piece, hex);
        assert_string_equal(hex, whole);
    }
}

static void test_hash(void **state)
{
    (void)state;
    static const unsigned char b[64] = {1, 2, 3};
    for (size_t n = 0; n < sizeof b; n++) {
        assert_true(wml_hash(b, n, 1) == wml_hash(b, n, 1));
        assert_true(wml_hash(b, n, 1) != wml_hash(b, n, 2));
        assert_true(wml_hash(b, n, 1) != wml_hash(b, n + 1, 1));
    }
}

static void test_random(void **state)
{
    (void)state;
    struct wml_rng r = {1234567};
    /* Reference values of splitmix64. */
    assert_true(wml_rng_u64(&r) == UINT64_C(6457827717110365317));
    assert_true(wml_rng_u64(&r) == UINT64_C(3203168211198807973));
    double sum = 0, squares = 0;
    for (int i = 0; i < 100000; i++) {
        double v = wml_rng_normal(&r), u = wml_rng_unit(&r);
        int64_t k = wml_rng_range(&r, -3, 4);
        sum += v;
        squares += v * v;
        assert_true(u >= 0 && u < 1 && k >= -3 && k < 4 && isfinite(v));
    }
    assert_true(fabs(sum / 100000) < 0.02 && fabs(squares / 100000 - 1) < 0.03);
    assert_true(wml_rng_range(&r, 5, 5) == 5);
    wml_rng_range(&r, INT64_MIN, INT64_MAX);
}

static void test_errors(void **state)
{
    (void)state;
    struct wml_err err = {0};
    assert_false(wml_fail(&err, WML_E_IO, "read %s", "x"));
    wml_hint(&err, "first");
    wml_hint(&err, "second");
    assert_string_equal(err.hint, "first");
    wml_wrap(&err, "model %d", 3);
    assert_string_equal(err.msg, "model 3: read x");
    wml_fail(&err, WML_E_FORMAT, "again: %s", err.msg);
    assert_string_equal(err.msg, "again: model 3: read x");
    assert_string_equal(err.hint, "");
    char longer[3000];
    memset(longer, 'w', sizeof longer);
    longer[sizeof longer - 1] = 0;
    wml_wrap(&err, "%s", longer);
    assert_true(strlen(err.msg) < sizeof err.msg);
    assert_false(wml_fail(NULL, WML_E_IO, "nobody listens"));
    assert_false(wml_wrap(NULL, "x") || wml_hint(NULL, "x"));
    for (int c = WML_OK; c <= WML_E_INTERNAL; c++) assert_string_not_equal(wml_code_name((enum wml_code)c), "unknown");
    atomic_bool cancel = false;
    struct wml_ctx cx = {.cancel = &cancel};
    assert_true(wml_check_cancel(&cx, &err) && wml_check_cancel(NULL, &err));
    atomic_store(&cancel, true);
    assert_false(wml_check_cancel(&cx, &err));
    assert_int_equal(err.code, WML_E_CANCELLED);
}

static void test_slices(void **state)
{
    (void)state;
    struct wml_str s = WML_STR("a,b,,c"), part;
    size_t n = 0;
    static const char *const parts[] = {"a", "b", "", "c"};
    while (wml_str_split(&s, ',', &part)) assert_true(wml_str_is(part, parts[n++]));
    assert_int_equal(n, 4);
    assert_true(wml_str_is(wml_str_trim(WML_STR(" \t x y\r\n")), "x y"));
    assert_true(wml_str_is(wml_str_trim(WML_STR("  ")), ""));
    assert_true(wml_str_ieq(WML_STR("CpU"), WML_STR("cPu")) && !wml_str_eq(WML_STR("a"), WML_STR("A")));
    assert_true(wml_str_cmp(WML_STR("ab"), WML_STR("abc")) < 0 && wml_str_cmp(WML_STR("b"), WML_STR("abc")) > 0);
    assert_int_equal(wml_str_rfind(WML_STR("a.b.c"), '.'), 3);
    assert_true(wml_str_find(WML_STR("abc"), 'x') == SIZE_MAX);
    assert_true(wml_str_is(wml_str_sub(WML_STR("abc"), 2, 99), "c") && wml_str_sub(WML_STR("abc"), 9, 1).len == 0);
    assert_true(wml_str_has(WML_STR("abcd"), "bc") && wml_str_has(WML_NO_STR, "") && !wml_str_has(WML_STR("ab"), "abc"));
    assert_true(wml_str_starts(WML_NO_STR, "") && !wml_str_starts(WML_STR("a"), "ab") && wml_str_ends(WML_STR("ab"), "b"));
}

static void test_dims(void **state)
{
    (void)state;
    static const struct { int64_t dim[4]; size_t rank; bool ok; uint64_t count; } row[] = {
        {{0}, 0, true, 1},           {{7}, 1, true, 7},
        {{2, 3, 4}, 3, true, 24},    {{2, 0, 4}, 3, true, 0},
        {{2, -1}, 2, false, 0},      {{-2, -3}, 2, false, 0},
        {{0, -1}, 2, false, 0},      {{INT64_C(1) << 31, INT64_C(1) << 31}, 2, SIZE_MAX > UINT32_MAX, UINT64_C(1) << 62},
        {{INT64_C(1) << 32, INT64_C(1) << 32}, 2, false, 0}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        uint64_t count = 5;
        assert_true(wml_dims_count(row[i].dim, row[i].rank, &count) == row[i].ok);
        assert_true(count == (row[i].ok ? row[i].count : 0));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_integers), cmocka_unit_test(test_dims), cmocka_unit_test(test_reals),  cmocka_unit_test(test_overflow),
        cmocka_unit_test(test_cursor),   cmocka_unit_test(test_varint), cmocka_unit_test(test_sha256), cmocka_unit_test(test_sha1),
        cmocka_unit_test(test_hash),     cmocka_unit_test(test_random), cmocka_unit_test(test_errors),
        cmocka_unit_test(test_slices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
