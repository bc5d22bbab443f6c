/* The text renderer: alignment, headings, gaps, wrapping, cutting, colours, hostile strings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include "report/render.h"

static void check_opts(struct wml_report *r, struct wml_render_opts o, const char *expected)
{
    struct wml_buf out = {0};
    wml_renderer_find("text")->render(r, &o, &out);
    assert_string_equal(wml_buf_text(&out), expected);
    wml_buf_release(&out);
    wml_report_free(r);
}

static void check(struct wml_report *r, const char *expected)
{
    check_opts(r, (struct wml_render_opts){.width = 60}, expected);
}

static void test_rows_align(void **state)
{
    (void)state;
    struct wml_report *r = wml_report_new();
    struct wml_item *root = wml_report_root(r);
    wml_item_int(root, "schema_version", NULL, 1, WML_SHOW_PLAIN);
    wml_item_cstr(root, "model", "Model", "ocr.onnx");
    wml_item_int(root, "nodes", "Graph nodes", 1234567, WML_SHOW_COUNT);
    struct wml_item *joined = wml_item_object(root, "extra", NULL);
    wml_item_bool(joined, "ok", "Verified", true);
    struct wml_item *s = wml_item_object(root, "io", "Inputs");
    wml_item_cstr(s, "x", "x", "float32");
    wml_item_object(root, "none", "Empty heading");
    wml_item_line(root, WML_TONE_GOOD, "Saved %s", "a.onnx");
    check(r, "Model        ocr.onnx\nGraph nodes  1,234,567\nVerified     yes\n\nInputs\n  x  float32\n\n"
             "Saved a.onnx\n");
}

static const struct wml_column columns[] = {
    {"name", "Operator", false, 0}, {"us", "Time", true, 0}, {"id", NULL, true, 0}, {"path", "Node", false, 12}};

static void test_table(void **state)
{
    (void)state;
    struct wml_report *r = wml_report_new();
    struct wml_item *t = wml_item_table(wml_report_root(r), "ops", "Top operators", columns, WML_COUNT(columns));
    wml_table_limit(t, 2);
    for (int i = 0; i < 4; i++) {
        struct wml_item *row = wml_table_row(t);
        wml_item_cstr(row, "name", NULL, i ? "Conv" : "Añadir");
        wml_item_num(row, "us", NULL, i * 100 + 1.5, 2, WML_SHOW_MS2);
        wml_item_cstr(row, "path", NULL, i ? "/model/layer/conv" : "short");
    }
    check(r, "Top operators\n  Operator    Time  Node\n  Añadir      1.50  short\n"
             "  Conv      101.50  ...ayer/conv\n  ... and 2 more\n");
}

static void test_table_fits_width(void **state)
{
    (void)state;
    static const struct wml_column two[] = {{"a", "A", false, 0}, {"b", "B", true, 0}};
    struct wml_report *r = wml_report_new();
    struct wml_item *t = wml_item_table(wml_report_root(r), "t", NULL, two, 2);
    struct wml_item *row = wml_table_row(t);
    wml_item_cstr(row, "a", NULL, "0123456789012345678901234567890123456789");
    wml_item_int(row, "b", NULL, 123456789, WML_SHOW_PLAIN);
    check_opts(r, (struct wml_render_opts){.width = 30},
               "A                            B\n...4567890123456789  123456789\n");
}

static void test_wrapping(void **state)
{
    (void)state;
    struct wml_report *r = wml_report_new();
    wml_item_cstr(wml_report_root(r), "a", "About", "one two three four five six seven eight");
    wml_item_cstr(wml_report_root(r), "p", "Path", "/a/very/long/path/that/stays/in/one/piece.onnx");
    check_opts(r, (struct wml_render_opts){.width = 31},
               "About  one two three four five\n       six seven eight\n"
               "Path   /a/very/long/path/that/stays/in/one/piece.onnx\n");
}

static void test_hostile_text(void **state)
{
    (void)state;
    struct wml_report *r = wml_report_new();
    struct wml_item *root = wml_report_root(r);
    wml_item_cstr(root, "a", "Escape", "\x1b[31mred\x1b[0m\a");
    wml_item_cstr(root, "b", "Bytes", "\xff\xfeok");
    wml_item_cstr(root, "c", "C1", "\xc2\x9b" "31m");
    wml_item_cstr(root, "d", "Empty", "");
    check(r, "Escape  ?[31mred?[0m?\nBytes   ??ok\nC1      ?31m\nEmpty   -\n");
}

static void test_numbers(void **state)
{
    (void)state;
    struct wml_report *r = wml_report_new();
    struct wml_item *root = wml_report_root(r);
    wml_item_num(root, "a", "Plain", 3.2500, 4, WML_SHOW_PLAIN);
    wml_item_num(root, "b", "Whole", 12, 3, WML_SHOW_PLAIN);
    wml_item_num(root, "c", "Percent", 12.34, 2, WML_SHOW_PERCENT);
    wml_item_num(root, "d", "Small", 1.23e-7, 9, WML_SHOW_SCIENCE);
    wml_item_num(root, "e", "NaN", NAN, 2, WML_SHOW_MS);
    wml_item_int(root, "f", "Least", INT64_MIN, WML_SHOW_COUNT);
    wml_item_num(root, "g", "Minus", -0.0001, 2, WML_SHOW_PLAIN);
    check(r, "Plain    3.25\nWhole    12\nPercent  12.3 %\nSmall    1.2e-07\nNaN      -\n"
             "Least    -9,223,372,036,854,775,808\nMinus    0\n");
}

static void test_arrays(void **state)
{
    (void)state;
    struct wml_report *r = wml_report_new();
    struct wml_item *root = wml_report_root(r);
    struct wml_item *shapes = wml_item_array(root, "shapes", "Shapes");
    struct wml_item *one = wml_item_array(shapes, NULL, NULL);
    wml_item_int(one, NULL, NULL, 1, WML_SHOW_PLAIN);
    wml_item_cstr(one, NULL, NULL, "N");
    wml_item_array(shapes, NULL, NULL);
    wml_item_array(root, "files", "Files");
    wml_item_array(root, "hidden", NULL);
    struct wml_item *parts = wml_item_array(root, "parts", "Parts");
    for (int i = 0; i < 2; i++) wml_item_int(wml_item_object(parts, NULL, NULL), "n", "n", i, WML_SHOW_PLAIN);
    check(r, "Shapes  [1, N], []\nFiles   none\n\nParts\n  n  0\n\n  n  1\n");
}

static void test_colour(void **state)
{
    (void)state;
    struct wml_report *r = wml_report_new();
    struct wml_item *s = wml_item_object(wml_report_root(r), "s", "Head");
    wml_item_cstr(s, "a", "ok", "fine");
    wml_item_tone(s, WML_TONE_GOOD);
    check_opts(r, (struct wml_render_opts){.colour = true, .width = 60},
               "\x1b[1mHead\x1b[0m\n  \x1b[2mok\x1b[0m  \x1b[32mfine\x1b[0m\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_align),   cmocka_unit_test(test_table),
        cmocka_unit_test(test_table_fits_width), cmocka_unit_test(test_wrapping),
        cmocka_unit_test(test_hostile_text), cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_arrays),       cmocka_unit_test(test_colour),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
