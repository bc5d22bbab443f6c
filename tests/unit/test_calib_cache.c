/* The cache of ranges: what is read, what is refused and with which words; damage at every byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "calib/cache.h"

#define HEAD "{\"CLS\": \"TensorsData\", \"data\": {"
#define TAIL(method) "}, \"calibration_method\": {\"CLS\": \"CalibrationMethod\", \"value\": \"CalibrationMethod." method "\"}, \"smooth_quant\": false}"
#define ARRAY(x, type) "{\"data\": " x ", \"dtype\": \"" type "\", \"CLS\": \"numpy.array\"}"
#define TENSOR(low, high) "{\"lowest\": " low ", \"highest\": " high ", \"CLS\": \"TensorData\"}"

static const struct wml_range_method *method(const char *name)
{
    const struct wml_range_method *m = wml_range_method_find(name);
    assert_non_null(m);
    return m;
}

static void test_forms(void **state)
{
    (void)state;
    static const struct { const char *text; double low, high; enum wml_dtype dtype; } rows[] = {
        {TENSOR(ARRAY("[-1.5]", "float32"), ARRAY("[2]", "float32")), -1.5, 2, WML_F32},
        {TENSOR(ARRAY("-1.5", "float16"), ARRAY("2.0", "float16")), -1.5, 2, WML_F16},
        {TENSOR("-1.5", "2"), -1.5, 2, WML_F32},
        {TENSOR("2", "-1.5"), -1.5, 2, WML_F32},
        {TENSOR("-1.5", ARRAY("2.0", "float16")), -1.5, 2, WML_F16},
        {TENSOR(ARRAY("-65504", "float16"), "0.1"), -65504, 0x1.998p-4, WML_F16},
        {TENSOR(ARRAY("[3, -4, 5]", "float32"), ARRAY("[3, 7, 6]", "float32")), -4, 7, WML_F32},
        {"{\"avg\": 1, \"hist\": {\"data\": [1, 2], \"dtype\": \"int64\"}, \"highest\": 0, \"lowest\": 0, \"other\": [{}]}", 0, 0, WML_F32},
    };
    for (size_t i = 0; i < WML_COUNT(rows); i++) {
        struct wml_buf text = {0};
        struct wml_ranges r = {0};
        struct wml_err err = {0};
        wml_buf_fmt(&text, HEAD "\"a\": " TENSOR("0", "1") ", \"x\": %s" TAIL("MinMax"), rows[i].text);
        if (!wml_ranges_parse(wml_buf_view(&text), method("minmax"), NULL, &r, &err)) fail_msg("%s: %s", rows[i].text, err.msg);
        const struct wml_range *x = wml_ranges_find(&r, WML_STR("x"));
        assert_true(x && x->low == rows[i].low && x->high == rows[i].high && x->dtype == rows[i].dtype);
        assert_true(r.map.len == 2 && wml_str_is(r.map.entry[0].key, "a"));
        wml_ranges_release(&r);
        wml_buf_release(&text);
    }
}

static void test_refused(void **state)
{
    (void)state;
    static const struct { const char *text, *says; enum wml_code code; } rows[] = {
        {"", "invalid JSON", WML_E_FORMAT},
        {"[]", "not an object", WML_E_FORMAT},
        {"{\"x\": 3}", "tensor 'x': not an object", WML_E_FORMAT},
        {"{\"x\": {}}", "tensor 'x': \"lowest\" is not a number", WML_E_FORMAT},
        {"{\"x\": {\"lowest\": 1}}", "tensor 'x': \"highest\" is not a number", WML_E_FORMAT},
        {"{\"x\": " TENSOR("\"1\"", "2") "}", "\"lowest\" is not a number", WML_E_FORMAT},
        {"{\"x\": " TENSOR("[]", "2") "}", "\"lowest\" is empty", WML_E_FORMAT},
        {"{\"x\": " TENSOR("[[1]]", "2") "}", "\"lowest\" is not a number, nor an array of numbers", WML_E_FORMAT},
        {"{\"x\": " TENSOR(ARRAY("1", "int8"), "2") "}", "is of type 'int8', not float32", WML_E_FORMAT},
        {"{\"x\": " TENSOR("1", "NaN") "}", "\"highest\" is NaN", WML_E_FORMAT},
        {"{\"x\": " TENSOR("-Infinity", "1") "}", "\"lowest\" is infinite", WML_E_FORMAT},
        {"{\"x\": " TENSOR(ARRAY("[1, NaN, 0]", "float32"), "1") "}", "\"lowest\" is NaN", WML_E_FORMAT},
        {"{\"x\": " TENSOR("0", "1e39") "}", "\"highest\" is infinite", WML_E_FORMAT},
        {HEAD "}}", "no calibration method", WML_E_FORMAT},
        {HEAD TAIL("Entropy"), "the ranges come from method Entropy, asked for is minmax", WML_E_USAGE},
        {"{\"CLS\": \"TensorsData\", \"data\": 3, \"calibration_method\": {\"value\": \"MinMax\"}}", "\"data\" is not an object", WML_E_FORMAT},
        {"{\"CLS\": \"TensorsData\", \"smooth_quant\": true}", "SmoothQuant", WML_E_UNSUPPORTED},
    };
    for (size_t i = 0; i < WML_COUNT(rows); i++) {
        struct wml_ranges r = {0};
        struct wml_err err = {0};
        assert_false(wml_ranges_parse(wml_str(rows[i].text), method("minmax"), NULL, &r, &err));
        if (err.code != rows[i].code || !wml_str_has(wml_str(err.msg), rows[i].says)) fail_msg("%s: %s", rows[i].text, err.msg);
        wml_ranges_release(&r);
    }
}

/* Written and read again by every method; no other method reads it. */
static void test_methods(void **state)
{
    (void)state;
    struct wml_ranges r = {0};
    wml_ranges_put(&r, WML_STR("b \"q\""), (struct wml_range){(double)-0.1F, (double)3e38F, WML_F32});
    wml_ranges_put(&r, WML_STR("a"), (struct wml_range){-65504, 0x1p-24, WML_F16});
    for (size_t i = 0; wml_range_method_at(i); i++) {
        struct wml_buf text = {0}, again = {0};
        wml_ranges_print(&r, wml_range_method_at(i), NULL, &text);
        for (size_t k = 0; wml_range_method_at(k); k++) {
            struct wml_ranges got = {0};
            struct wml_err err = {0};
            assert_true(wml_ranges_parse(wml_buf_view(&text), wml_range_method_at(k), NULL, &got, &err) == (i == k));
            if (i == k) wml_ranges_print(&got, wml_range_method_at(k), NULL, &again);
            wml_ranges_release(&got);
        }
        assert_string_equal(wml_buf_text(&text), wml_buf_text(&again));
        wml_buf_release(&text);
        wml_buf_release(&again);
    }
    wml_ranges_release(&r);
}

/* Cut anywhere, or a byte turned into another: an error or other ranges, never a crash or a range that is none. */
static void test_damage(void **state)
{
    (void)state;
    static const char whole[] = HEAD "\"x\": " TENSOR(ARRAY("[-1.5]", "float32"), ARRAY("[2.5]", "float32")) TAIL("MinMax");
    char text[sizeof whole];
    for (size_t i = 0; i < sizeof whole - 1; i++)
        for (const char *to = "\"{}[],:-0eN\x01"; *to; to++) {
            struct wml_ranges r = {0};
            struct wml_err err = {0};
            memcpy(text, whole, sizeof whole);
            assert_false(wml_ranges_parse((struct wml_str){text, i}, method("minmax"), NULL, &r, &err));
            assert_true(err.msg[0]);
            wml_ranges_release(&r);
            text[i] = *to;
            if (wml_ranges_parse((struct wml_str){text, sizeof whole - 1}, method("minmax"), NULL, &r, &err))
                for (size_t k = 0; k < r.map.len; k++) {
                    const struct wml_range *x = r.map.entry[k].value;
                    assert_true(x->low <= x->high);
                }
            wml_ranges_release(&r);
        }
}

/* What was asked for when the cache was made, and what is asked for now. */
static void test_facts(void **state)
{
    (void)state;
    static const struct { const char *made, *asked, *unsaid; bool smooth, fits; } rows[] = {
        {"yes", "yes", "no", false, true}, {"yes", "no", "no", false, false}, {"no", "yes", "no", false, false}, {"no", "no", "no", false, true},
        {NULL, "no", "no", false, true},   {NULL, "yes", "no", false, false}, {NULL, "99", NULL, false, true},  {"99", "99.9", NULL, false, false},
        {"\"\\\n", "\"\\\n", "", true, true}, {"0.5", "0.5", "no", true, true}, {"0.5", "0.6", "no", true, false}};
    struct wml_ranges r = {0};
    wml_ranges_put(&r, WML_STR("a"), (struct wml_range){-1, 2, WML_F32});
    for (size_t i = 0; i < WML_COUNT(rows); i++) {
        for (int soft = 0; soft < 2; soft++) {
            bool differs = false;
            struct wml_cache_fact made = {"thing", rows[i].made, rows[i].unsaid, NULL}, asked = {"thing", rows[i].asked, rows[i].unsaid, soft ? &differs : NULL};
            struct wml_cache_facts was = {&made, rows[i].made != NULL, rows[i].smooth}, now = {&asked, 1, false};
            struct wml_buf text = {0};
            struct wml_ranges got = {0};
            struct wml_err err = {0};
            wml_ranges_print(&r, method("minmax"), &was, &text);
            assert_true(wml_str_has(wml_buf_view(&text), rows[i].smooth ? "\"smooth_quant\":true" : "\"smooth_quant\":false"));
            bool ok = wml_ranges_parse(wml_buf_view(&text), method("minmax"), &now, &got, &err);
            if (ok != (rows[i].fits || soft)) fail_msg("row %zu: %s", i, err.msg);
            assert_true(differs == (soft && !rows[i].fits) && (ok || (err.code == WML_E_USAGE && wml_str_has(wml_str(err.msg), "come from thing "))));
            wml_buf_release(&text);
            wml_ranges_release(&got);
        }
    }
    wml_ranges_release(&r);
}

static void test_files(void **state)
{
    (void)state;
    struct wml_ranges r = {0};
    struct wml_err err = {0};
    assert_false(wml_ranges_load("no such folder/c.json", NULL, NULL, &r, &err));
    assert_int_equal(err.code, WML_E_NOT_FOUND);
    assert_false(wml_ranges_save(&r, method("minmax"), NULL, "no such folder/c.json", &err));
    assert_true(wml_str_has(wml_str(err.msg), "no such folder"));
    wml_ranges_release(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms), cmocka_unit_test(test_refused), cmocka_unit_test(test_methods),
        cmocka_unit_test(test_damage), cmocka_unit_test(test_facts), cmocka_unit_test(test_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
