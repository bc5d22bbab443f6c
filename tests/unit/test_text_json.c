/* JSON: what is refused and where, getters on anything, numbers and text written so that they read back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include "base/rng.h"
#include "text/json.h"

static struct wml_json_doc *parse(const char *text)
{
    struct wml_json_doc *doc = NULL;
    struct wml_err err = {0};
    if (!wml_json_parse(wml_str(text), &doc, &err)) fail_msg("%s: %s", text, err.msg);
    return doc;
}

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *where;
    } row[] = {
        {"", "line 1, column 1"},
        {"   ", "line 1"},
        {"{\"a\": 1,}", "column 8"},
        {"[1 2]", "column 4"},
        {"{\"a\": 1\n \"b\": 2}", "line 2, column 2"},
        {"{'a': 1}", "column 2"},
        {"// c\n1", "column 1"},
        {"NaN", "column 1"},
        {"01", "line 1"},
        {"1.", "line 1"},
        {"\"\xff\"", "line 1"},
        {"\"a\nb\"", "line 1"},
        {"\"\\ud800\"", "line 1"},
        {"\"\\x\"", "line 1"},
        {"true false", "column 6"},
        {"{\"a\"", "line 1"},
        {"1e999", "line 1"},
    };
    for (size_t i = 0; i < WML_COUNT(row); i++) {
        struct wml_json_doc *doc = NULL;
        struct wml_err err = {0};
        if (wml_json_parse(wml_str(row[i].text), &doc, &err)) fail_msg("taken: %s", row[i].text);
        assert_null(doc);
        assert_int_equal(err.code, WML_E_FORMAT);
        if (!strstr(err.msg, row[i].where)) fail_msg("%s: %s", row[i].text, err.msg);
    }
}

static void test_depth(void **state)
{
    (void)state;
    struct wml_err err = {0};
    for (int depth = 99; depth <= 102; depth++) {
        struct wml_buf b = {0};
        struct wml_json_doc *doc = NULL;
        /* Brackets inside strings do not count. */
        for (int i = 0; i < depth; i++) wml_buf_cstr(&b, i & 1 ? "[" : "{\"[[\\\"[\":");
        wml_buf_char(&b, '1');
        for (int i = depth; i-- > 0;) wml_buf_char(&b, i & 1 ? ']' : '}');
        assert_int_equal(wml_json_parse(wml_buf_view(&b), &doc, &err), depth <= 100);
        if (depth > 100) assert_non_null(strstr(err.msg, "nested deeper than 100"));
        wml_json_free(doc);
        wml_buf_release(&b);
    }
    struct wml_buf deep = {0};
    struct wml_json_doc *doc = NULL;
    for (int i = 0; i < 1000000; i++) wml_buf_char(&deep, '[');
    assert_false(wml_json_parse(wml_buf_view(&deep), &doc, &err));
    wml_buf_release(&deep);
}

static void test_getters(void **state)
{
    (void)state;
    struct wml_json_doc *doc = parse("\xef\xbb\xbf{\"s\":\"x\\u0000y\",\"i\":-7,\"f\":2.5,\"w\":3.0,\"big\":18446744073709551615,"
                                     "\"b\":true,\"n\":null,\"a\":[1,\"two\",[3]],\"o\":{\"k\":\"v\"},\"e\":[],\"eo\":{}}");
    const struct wml_json_val *v = wml_json_root(doc);
    assert_true(wml_json_is_object(v) && !wml_json_is_array(v));
    assert_int_equal(wml_json_len(v), 11);
    assert_true(wml_str_eq(wml_json_get_str(v, "s"), (struct wml_str){"x\0y", 3}));
    assert_int_equal(wml_json_get_int(v, "i", 0), -7);
    assert_int_equal(wml_json_get_int(v, "f", 99), 99);
    assert_int_equal(wml_json_get_int(v, "w", 99), 3);
    assert_int_equal(wml_json_get_int(v, "big", 99), 99);
    assert_true(wml_json_get_num(v, "big", 0) == 18446744073709551615.0);
    assert_true(wml_json_get_num(v, "i", 0) == -7 && wml_json_get_num(v, "s", 5) == 5);
    assert_true(wml_json_get_bool(v, "b", false) && wml_json_get_bool(v, "i", true));
    assert_true(wml_json_is_null(wml_json_get(v, "n")) && wml_json_is_null(NULL) && !wml_json_is_null(v));
    assert_null(wml_json_get_str(v, "i").ptr);
    const struct wml_json_val *a = wml_json_get(v, "a");
    assert_true(wml_json_is_string(wml_json_at(a, 1)) && wml_json_is_number(wml_json_at(a, 0)));
    assert_int_equal(wml_json_int(wml_json_at(wml_json_at(a, 2), 0), 0), 3);
    assert_null(wml_json_at(a, 3));
    /* Nothing, asked anything, gives the fallback. */
    assert_null(wml_json_get(NULL, "x"));
    assert_null(wml_json_get(a, "x"));
    assert_null(wml_json_at(NULL, 0));
    assert_int_equal(wml_json_len(NULL), 0);
    assert_int_equal(wml_json_len(wml_json_get(v, "i")), 0);
    assert_int_equal(wml_json_get_int(wml_json_get(wml_json_get(v, "no"), "such"), "thing", 4), 4);
    wml_json_free(doc);
    wml_json_free(NULL);
}

static void test_walk(void **state)
{
    (void)state;
    struct wml_json_doc *doc = parse("{\"a\":[1,[2,3],{\"x\":[]},4],\"b\":{},\"c\":5}");
    struct wml_json_iter it = {0}, inner = {0};
    struct wml_str key;
    const struct wml_json_val *v;
    static const char *const keys[] = {"a", "b", "c"};
    size_t n = 0;
    while (wml_json_next(wml_json_root(doc), &it, &key, &v)) {
        assert_true(wml_str_is(key, keys[n++]));
        if (n != 1) continue;
        size_t k = 0;
        for (const struct wml_json_val *e; wml_json_next(v, &inner, &key, &e); k++) {
            assert_null(key.ptr);
            assert_ptr_equal(e, wml_json_at(v, k));
        }
        assert_int_equal(k, 4);
    }
    assert_int_equal(n, 3);
    it = (struct wml_json_iter){0};
    assert_false(wml_json_next(NULL, &it, &key, &v));
    wml_json_free(doc);
}

static void same(const char *text)
{
    struct wml_json_doc *doc = parse(text);
    struct wml_buf b = {0};
    wml_json_print(wml_json_root(doc), &b);
    assert_string_equal(wml_buf_text(&b), text);
    wml_buf_release(&b);
    wml_json_free(doc);
}

static void test_print(void **state)
{
    (void)state;
    static const char *const row[] = {"{\"a\":[1,2.5,[],{}],\"b\":null,\"c\":[true,false]}",
                                      "9223372036854775807", "-9223372036854775808", "18446744073709551615", "3.0", "0.1",
                                      "9007199254740993", "-0.0", "\"\\\"\\\\\\n\\t\xc3\xa9\\u0001\"", "[]", "\"\""};
    for (size_t i = 0; i < WML_COUNT(row); i++) same(row[i]);
}

static void number(double v, const char *text)
{
    struct wml_buf b = {0};
    struct wml_json j = {.out = &b};
    wml_json_put_num(&j, v);
    if (text) assert_string_equal(wml_buf_text(&b), text);
    struct wml_json_doc *doc = parse(wml_buf_text(&b));
    if (isfinite(v)) assert_true(wml_json_num(wml_json_root(doc), 7) == v);
    else assert_string_equal(wml_buf_text(&b), "null");
    wml_json_free(doc);
    wml_buf_release(&b);
}

static void test_numbers(void **state)
{
    (void)state;
    number(0.1, "0.1");
    number(3, "3.0");
    number(-0.0, "-0.0");
    number(1.0 / 3, "0.3333333333333333");
    number(0.30000000000000004, "0.30000000000000004");
    number(123456789, "123456789.0");
    number(5e-324, NULL);
    number(1.7976931348623157e308, NULL);
    number(NAN, NULL);
    number(-INFINITY, NULL);
    struct wml_rng rng = {1};
    for (int i = 0; i < 20000; i++) {
        uint64_t bits = wml_rng_u64(&rng);
        double v;
        memcpy(&v, &bits, sizeof v);
        number(v, NULL);
    }
}

static void test_fixed(void **state)
{
    (void)state;
    static const struct {
        double v;
        unsigned digits;
        const char *text;
    } row[] = {{12.34567, 2, "12.35"}, {12, 3, "12.0"}, {12.3, 3, "12.3"}, {0.0004, 3, "0.0"}, {7, 0, "7.0"},
               {-1.50, 2, "-1.5"},     {1e15, 1, "1000000000000000.0"}};
    for (size_t i = 0; i < WML_COUNT(row); i++) {
        struct wml_buf b = {0};
        struct wml_json j = {.out = &b};
        wml_json_put_fixed(&j, row[i].v, row[i].digits);
        assert_string_equal(wml_buf_text(&b), row[i].text);
        wml_buf_release(&b);
    }
    struct wml_buf b = {0};
    struct wml_json j = {.out = &b};
    wml_json_put_fixed(&j, 1.7e308, 30);
    assert_true(b.len > 300);
    wml_buf_release(&b);
}

/* Bad UTF-8 becomes U+FFFD, byte by byte; everything else reads back. */
static void test_text(void **state)
{
    (void)state;
    static const struct {
        const char *in, *out;
    } row[] = {
        {"plain", "\"plain\""},
        {"a\"b\\c/d", "\"a\\\"b\\\\c/d\""},
        {"\x01\x1f\x7f", "\"\\u0001\\u001f\\u007f\""},
        {"\xc3\xa9\xe6\xa8\xa1\xf0\x9f\x98\x80", "\"\xc3\xa9\xe6\xa8\xa1\xf0\x9f\x98\x80\""},
        {"\xff", "\"\xef\xbf\xbd\""},
        {"\xc3", "\"\xef\xbf\xbd\""},
        {"\xc0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\""},
        {"\xed\xa0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
        {"\xf4\x90\x80\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
        {"\xe6\xa8x", "\"\xef\xbf\xbd\xef\xbf\xbdx\""},
    };
    for (size_t i = 0; i < WML_COUNT(row); i++) {
        struct wml_buf b = {0};
        struct wml_json j = {.out = &b};
        wml_json_put_cstr(&j, row[i].in);
        assert_string_equal(wml_buf_text(&b), row[i].out);
        wml_json_free(parse(wml_buf_text(&b)));
        wml_buf_release(&b);
    }
    /* Every byte that can follow every other one. */
    for (int x = 0; x < 256; x++)
        for (int y = 0; y < 256; y++) {
            char two[] = {(char)x, (char)y};
            struct wml_buf b = {0};
            struct wml_json j = {.out = &b};
            wml_json_put_str(&j, (struct wml_str){two, 2});
            wml_json_free(parse(wml_buf_text(&b)));
            wml_buf_release(&b);
        }
}

static void test_writer(void **state)
{
    (void)state;
    struct wml_buf b = {0};
    struct wml_json j = {.out = &b, .indent = 2};
    wml_json_begin(&j, '{');
    wml_json_key(&j, "a");
    wml_json_begin(&j, '[');
    wml_json_put_int(&j, INT64_MIN);
    wml_json_put_uint(&j, UINT64_MAX);
    wml_json_begin(&j, '{');
    wml_json_end(&j, '}');
    wml_json_end(&j, ']');
    wml_json_key_str(&j, WML_STR("b\n"));
    wml_json_put_str(&j, WML_NO_STR);
    wml_json_key(&j, "c");
    wml_json_put_bool(&j, false);
    wml_json_key(&j, "d");
    wml_json_put_null(&j);
    wml_json_key(&j, "e");
    wml_json_put_raw(&j, WML_STR("[1]"));
    wml_json_end(&j, '}');
    assert_string_equal(wml_buf_text(&b), "{\n  \"a\": [\n    -9223372036854775808,\n    18446744073709551615,\n    {}\n  ],\n"
                                          "  \"b\\n\": null,\n  \"c\": false,\n  \"d\": null,\n  \"e\": [1]\n}");
    wml_buf_clear(&b);
    j = (struct wml_json){.out = &b};
    for (int i = 0; i < 200; i++) wml_json_begin(&j, '['); /* deeper than it counts: still no harm */
    for (int i = 0; i < 200; i++) wml_json_end(&j, ']');
    assert_int_equal(b.len, 400);
    wml_buf_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused), cmocka_unit_test(test_depth),   cmocka_unit_test(test_getters),
        cmocka_unit_test(test_walk),    cmocka_unit_test(test_print),   cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_fixed),   cmocka_unit_test(test_text),    cmocka_unit_test(test_writer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
