/* The JSON renderer: order, one-line arrays, what is left out, numbers, documents copied in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include "report/render.h"
#include "text/json.h"

static const struct wml_column columns[] = {
    {"name", "Name", false, 0}, {"us", "Time", true, 0}, {NULL, "Share", true, 0}, {"id", NULL, true, 0}};

static void check(struct wml_report *r, unsigned indent, const char *expected)
{
    struct wml_buf out = {0};
    struct wml_render_opts o = {.indent = indent};
    wml_renderer_find("json")->render(r, &o, &out);
    assert_string_equal(wml_buf_text(&out), expected);
    struct wml_json_doc *doc = NULL;
    struct wml_err err = {0};
    if (!wml_json_parse(wml_buf_view(&out), &doc, &err)) fail_msg("%s", err.msg);
    wml_json_free(doc);
    wml_buf_release(&out);
    wml_report_free(r);
}

static void test_members(void **state)
{
    (void)state;
    struct wml_report *r = wml_report_new();
    struct wml_item *root = wml_report_root(r);
    assert_true(wml_report_is_empty(r));
    wml_item_int(root, "schema_version", NULL, 1, WML_SHOW_PLAIN);
    wml_item_cstr(root, "model", "Model", "a\"b\n");
    wml_item_cstr(root, NULL, "Text only", "x");
    wml_item_line(root, WML_TONE_GOOD, "not in %s", "JSON");
    wml_item_gap(root);
    struct wml_item *shape = wml_item_array(root, "shape", "Shape");
    for (int64_t i = 1; i < 4; i++) wml_item_int(shape, NULL, NULL, i, WML_SHOW_COUNT);
    struct wml_item *memory = wml_item_object(root, "memory", "Memory");
    wml_item_num(memory, "peak_mb", "Peak", 12.34567, 2, WML_SHOW_PLAIN);
    wml_item_num(memory, "bad", NULL, NAN, 2, WML_SHOW_PLAIN);
    wml_item_bool(memory, "ok", NULL, true);
    wml_item_object(root, NULL, "Only text");
    wml_item_str(root, "none", NULL, WML_NO_STR);
    check(r, 2,
          "{\n  \"schema_version\": 1,\n  \"model\": \"a\\\"b\\n\",\n  \"shape\": [1, 2, 3],\n"
          "  \"memory\": {\n    \"peak_mb\": 12.35,\n    \"bad\": null,\n    \"ok\": true\n  },\n"
          "  \"none\": null\n}\n");
}

static void test_table(void **state)
{
    (void)state;
    struct wml_report *r = wml_report_new();
    struct wml_item *t = wml_item_table(wml_report_root(r), "ops", "Operators", columns, WML_COUNT(columns));
    wml_table_limit(t, 1);
    for (int i = 0; i < 2; i++) {
        struct wml_item *row = wml_table_row(t);
        wml_item_cstr(row, "name", NULL, i ? "Conv" : "Add");
        wml_item_num(row, "us", NULL, 1.5, 1, WML_SHOW_PLAIN);
        wml_item_cstr(row, NULL, "Share", "1 %");
        wml_item_int(row, "id", NULL, i, WML_SHOW_PLAIN);
    }
    check(r, 0, "{\"ops\":[{\"name\":\"Add\",\"us\":1.5,\"id\":0},{\"name\":\"Conv\",\"us\":1.5,\"id\":1}]}\n");
}

static void test_copied_document(void **state)
{
    (void)state;
    static const char text[] = "{\"a\":[1,2.5,[3,4]],\"b\":{\"c\":null,\"d\":true},\"e\":1e-7,\"f\":[{\"g\":\"h\"}]}";
    struct wml_json_doc *doc = NULL;
    struct wml_err err = {0};
    assert_true(wml_json_parse(wml_str(text), &doc, &err));
    struct wml_report *r = wml_report_new();
    wml_item_json(wml_report_root(r), "x", wml_json_root(doc));
    wml_json_free(doc);
    assert_non_null(wml_item_find(wml_item_find(wml_report_root(r), "x"), "b"));
    assert_null(wml_item_find(wml_report_root(r), "b"));
    check(r, 0, "{\"x\":{\"a\":[1,2.5,[3,4]],\"b\":{\"c\":null,\"d\":true},\"e\":1e-7,\"f\":[{\"g\":\"h\"}]}}\n");
}

static void test_empty_containers(void **state)
{
    (void)state;
    struct wml_report *r = wml_report_new();
    wml_item_array(wml_report_root(r), "a", NULL);
    wml_item_object(wml_report_root(r), "o", NULL);
    wml_item_table(wml_report_root(r), "t", NULL, columns, WML_COUNT(columns));
    check(r, 0, "{\"a\":[],\"o\":{},\"t\":[]}\n");
}

static void test_renderers(void **state)
{
    (void)state;
    assert_non_null(wml_renderer_find("text"));
    assert_null(wml_renderer_find("yaml"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_members),         cmocka_unit_test(test_table),
        cmocka_unit_test(test_copied_document), cmocka_unit_test(test_empty_containers),
        cmocka_unit_test(test_renderers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
