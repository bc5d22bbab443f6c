/* CSV, similar names, wildcards, UTF-8, amounts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "text/csv.h"
#include "text/words.h"

/* The rows as "a|b;c|d;". */
static void rows(const char *text, const char *expected)
{
    struct wml_csv c;
    struct wml_err err = {0};
    struct wml_buf b = {0};
    wml_csv_init(&c, wml_str(text));
    while (wml_csv_next(&c, &err)) {
        for (size_t i = 0; i < c.field.len; i++) wml_buf_fmt(&b, "%s%.*s", i ? "|" : "", WML_ARG(c.field.at[i]));
        wml_buf_char(&b, ';');
    }
    if (err.code) wml_buf_cstr(&b, err.msg);
    if (strcmp(wml_buf_text(&b), expected) != 0) fail_msg("'%s' gives '%s', not '%s'", text, wml_buf_text(&b), expected);
    wml_csv_release(&c);
    wml_buf_release(&b);
}

static void test_csv(void **state)
{
    (void)state;
    rows("", "");
    rows("a,b\nc,d\n", "a|b;c|d;");
    rows("a,b\r\nc,d", "a|b;c|d;");
    rows("\xef\xbb\xbf" "a,b", "a|b;");
    rows("\n\na\n\r\n\nb\n", "a;b;");
    rows(",\n,,", "|;||;");
    rows("a,\n", "a|;");
    rows("\"a,b\",\"c\"\"d\"\n", "a,b|c\"d;");
    rows("\"x\ny\",z\n", "x\ny|z;");
    rows("\"\",\"\"", "|;");
    rows("a \"b\" c,d", "a \"b\" c|d;");
    rows("\"a\" trash,b\n", "a|b;");
    rows("a,\"b", "CSV line 1: a quote is not closed");
    rows("x\ny\n\"b\nc", "x;y;CSV line 3: a quote is not closed");
}

static void test_csv_limits(void **state)
{
    (void)state;
    struct wml_buf b = {0};
    struct wml_csv c;
    struct wml_err err = {0};
    for (int i = 0; i < 4096; i++) wml_buf_cstr(&b, "1,");
    wml_buf_cstr(&b, "1,1");
    wml_csv_init(&c, wml_buf_view(&b));
    assert_false(wml_csv_next(&c, &err));
    assert_int_equal(err.code, WML_E_FORMAT);
    wml_csv_release(&c);
    wml_buf_release(&b);
}

static void test_csv_find(void **state)
{
    (void)state;
    struct wml_csv c;
    struct wml_err err = {0};
    wml_csv_init(&c, WML_STR("Name, Duration ,\"Op Type\"\n1,2,3"));
    assert_true(wml_csv_next(&c, &err));
    assert_int_equal(wml_csv_find(&c, "Duration"), 1);
    assert_int_equal(wml_csv_find(&c, "Op Type"), 2);
    assert_true(wml_csv_find(&c, "name") == SIZE_MAX);
    wml_csv_release(&c);
}

/* What is written reads back. */
static void test_csv_put(void **state)
{
    (void)state;
    static const char *const field[] = {"plain", "", "a,b", "q\"q", "two\nlines", "\r", " blank ", "\xc3\xa9"};
    struct wml_buf b = {0};
    struct wml_csv c;
    struct wml_err err = {0};
    for (size_t i = 0; i < WML_COUNT(field); i++) wml_csv_put(&b, wml_str(field[i]), i == 0);
    wml_buf_char(&b, '\n');
    wml_csv_init(&c, wml_buf_view(&b));
    assert_true(wml_csv_next(&c, &err));
    assert_int_equal(c.field.len, WML_COUNT(field));
    for (size_t i = 0; i < WML_COUNT(field); i++) assert_true(wml_str_is(c.field.at[i], field[i]));
    assert_false(wml_csv_next(&c, &err));
    assert_int_equal(err.code, WML_OK);
    wml_csv_release(&c);
    wml_buf_release(&b);
}

static void test_similar(void **state)
{
    (void)state;
    static const char *const names[] = {"optimize", "inspect", "compile", "perf", "sys", "--iterations", "--input-shape"};
    static const char *const row[][2] = {
        {"optimise", "optimize"}, {"inspct", "inspect"}, {"COMPILE", "compile"}, {"pref", "perf"},
        {"--iteration", "--iterations"}, {"--input-shapes", "--input-shape"}, {"zzzzzz", NULL}, {"", NULL},
        {"opti", "optimize"}, {"x", NULL},
    };
    for (size_t i = 0; i < WML_COUNT(row); i++) {
        const char *best = wml_similar(wml_str(row[i][0]), names, WML_COUNT(names));
        if ((best == NULL) != (row[i][1] == NULL) || (best && strcmp(best, row[i][1]) != 0))
            fail_msg("%s: %s", row[i][0], best ? best : "nothing");
    }
    char longer[200];
    memset(longer, 'a', sizeof longer);
    longer[sizeof longer - 1] = 0;
    assert_null(wml_similar(wml_str(longer), names, WML_COUNT(names)));
    assert_null(wml_similar(WML_STR("perf"), names, 0));
}

static void test_glob(void **state)
{
    (void)state;
    static const struct {
        const char *pattern, *text;
        bool match;
    } row[] = {
        {"*", "", true},         {"*", "abc", true},           {"", "", true},          {"", "a", false},
        {"a*c", "abbc", true},   {"a*c", "abcd", false},       {"?", "x", true},        {"?", "", false},
        {"*.onnx", "m.onnx", true}, {"*.onnx", "m.onnx2", false}, {"[a-c]x", "bx", true}, {"[a-c]x", "dx", false},
        {"[!a-c]x", "dx", true}, {"[^a]", "a", false},         {"[]]", "]", true},      {"[a-]", "-", true},
        {"a[", "a[", false},     {"**a**", "bab", true},       {"*a*b*c*", "xaxbxcx", true}, {"*a*b*c*", "xcxbxax", false},
        {"A", "a", false},       {"/model/*/Conv", "/model/l.0/m/Conv", true},
    };
    for (size_t i = 0; i < WML_COUNT(row); i++)
        if (wml_glob_match(wml_str(row[i].pattern), wml_str(row[i].text)) != row[i].match)
            fail_msg("%s against %s", row[i].pattern, row[i].text);
    /* Linear in practice: this is exponential for a careless matcher. */
    char stars[100], as[3001];
    for (size_t i = 0; i < 98; i += 2) memcpy(stars + i, "*a", 2);
    memcpy(stars + 98, "b", 2);
    memset(as, 'a', 3000);
    as[3000] = 0;
    assert_false(wml_glob_match(wml_str(stars), wml_str(as)));
}

static void test_utf8(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool valid;
        size_t width;
    } row[] = {
        {"", true, 0},
        {"abc", true, 3},
        {"\xc3\xa9t\xc3\xa9", true, 3},
        {"e\xcc\x81", true, 1},              /* combining accent */
        {"\xe6\xa8\xa1\xe5\x9e\x8b", true, 4}, /* wide */
        {"\xf0\x9f\x98\x80", true, 2},
        {"\xef\xbf\xbd", true, 1},           /* U+FFFD itself */
        {"\x80", false, 1},
        {"\xc0\xaf", false, 2},
        {"\xed\xa0\x80", false, 3},
        {"\xf5\x80\x80\x80", false, 4},
        {"a\xe6\xa8", false, 3},
    };
    for (size_t i = 0; i < WML_COUNT(row); i++) {
        if (wml_utf8_valid(wml_str(row[i].text)) != row[i].valid) fail_msg("row %zu", i);
        assert_int_equal(wml_utf8_width(wml_str(row[i].text)), row[i].width);
    }
    struct wml_str s = WML_STR("a\xe6\xa8\xa1z");
    assert_int_equal(wml_utf8_prefix(s, 0), 0);
    assert_int_equal(wml_utf8_prefix(s, 1), 1);
    assert_int_equal(wml_utf8_prefix(s, 2), 1);
    assert_int_equal(wml_utf8_prefix(s, 3), 4);
    assert_int_equal(wml_utf8_prefix(s, 99), 5);
}

static void test_amounts(void **state)
{
    (void)state;
    static const struct {
        int kind;
        double v;
        const char *text;
    } row[] = {
        {0, 0, "0 B"},          {0, 9999, "9999 B"},      {0, 10000, "10.0 kB"},  {0, 1500000, "1.5 MB"},
        {0, 999949, "999.9 kB"}, {0, 999960, "1.0 MB"},    {0, 94e6, "94.0 MB"},   {0, 1.2e13, "12.0 TB"},
        {1, 0.85, "850 us"},    {1, 12.3, "12.30 ms"},    {1, 123.4, "123 ms"},   {1, 4510, "4.51 s"},
        {1, 125000, "2 min 5 s"}, {1, -1, "0 us"},        {2, 0, "0"},            {2, 999, "999"},
        {2, 1000, "1,000"},     {2, 1234567, "1,234,567"},
    };
    for (size_t i = 0; i < WML_COUNT(row); i++) {
        struct wml_buf b = {0};
        if (row[i].kind == 0) wml_size_text(&b, (uint64_t)row[i].v);
        else if (row[i].kind == 1) wml_duration_text(&b, row[i].v);
        else wml_count_text(&b, (uint64_t)row[i].v);
        assert_string_equal(wml_buf_text(&b), row[i].text);
        wml_buf_release(&b);
    }
    struct wml_buf b = {0};
    wml_size_text(&b, UINT64_MAX);
    wml_count_text(&b, UINT64_MAX);
    assert_true(wml_str_ends(wml_buf_view(&b), "18,446,744,073,709,551,615"));
    wml_buf_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_csv),     cmocka_unit_test(test_csv_limits), cmocka_unit_test(test_csv_find),
        cmocka_unit_test(test_csv_put), cmocka_unit_test(test_similar),    cmocka_unit_test(test_glob),
        cmocka_unit_test(test_utf8),    cmocka_unit_test(test_amounts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
