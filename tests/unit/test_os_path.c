/* Text of paths. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "os/file.h"
#include "os/path.h"
#include "os/sys.h"

static void test_parts(void **state)
{
    (void)state;
    static const struct {
        const char *path, *dir, *name, *stem, *ext;
    } row[] = {
        {"a/b/c.onnx", "a/b", "c.onnx", "c", ".onnx"}, {"c.onnx", ".", "c.onnx", "c", ".onnx"},
        {"/c", "/", "c", "c", ""},                     {"/", "/", "", "", ""},
        {"a/", "a", "", "", ""},                       {"a//b", "a", "b", "b", ""},
        {"//a", "/", "a", "a", ""},                    {".hidden", ".", ".hidden", ".hidden", ""},
        {"x.tar.gz", ".", "x.tar.gz", "x.tar", ".gz"}, {"", ".", "", "", ""},
        {"a.b/c", "a.b", "c", "c", ""},                {"..", ".", "..", ".", "."},
    };
    for (size_t i = 0; i < WML_COUNT(row); i++) {
        struct wml_str p = wml_str(row[i].path);
        if (!wml_str_is(wml_path_dir(p), row[i].dir)) fail_msg("dir of %s: %.*s", row[i].path, WML_ARG(wml_path_dir(p)));
        if (!wml_str_is(wml_path_name(p), row[i].name)) fail_msg("name of %s", row[i].path);
        if (!wml_str_is(wml_path_stem(p), row[i].stem)) fail_msg("stem of %s", row[i].path);
        if (!wml_str_is(wml_path_ext(p), row[i].ext)) fail_msg("extension of %s", row[i].path);
    }
}

static void gives(struct wml_buf *b, const char *expected, const char *what)
{
    if (strcmp(wml_buf_text(b), expected) != 0) fail_msg("%s: '%s', not '%s'", what, wml_buf_text(b), expected);
    wml_buf_release(b);
}

static void test_join(void **state)
{
    (void)state;
    static const char *const row[][3] = {{"a", "b", "a/b"}, {"a/", "b", "a/b"}, {"", "b", "b"},
                                         {".", "b", "b"},   {"a", "/b", "/b"},  {"/", "b", "/b"}};
    for (size_t i = 0; i < WML_COUNT(row); i++) {
        struct wml_buf b = {0};
        wml_path_join(&b, wml_str(row[i][0]), wml_str(row[i][1]));
        gives(&b, row[i][2], row[i][0]);
    }
}

static void test_normal(void **state)
{
    (void)state;
    static const char *const row[][2] = {
        {"a/./b", "a/b"}, {"a//b/", "a/b"}, {"./a", "a"},      {"a/..", "."},           {"a/../..", ".."},
        {"../a", "../a"}, {"../../a/../b", "../../b"},         {"/../a", "/a"},         {"/a/../..", "/"},
        {"/", "/"},       {"", "."},        {".", "."},        {"a/b/../../c/./d", "c/d"}, {"a/..b/...", "a/..b/..."}};
    for (size_t i = 0; i < WML_COUNT(row); i++) {
        struct wml_buf b = {0};
        wml_path_normal(&b, wml_str(row[i][0]));
        gives(&b, row[i][1], row[i][0]);
    }
}

static void test_relative(void **state)
{
    (void)state;
    static const char *const row[][3] = {
        {"/a/b/c", "/a/b", "c"},   {"/a/bc", "/a/b", "../bc"}, {"/a/b", "/a/b", "."}, {"/a", "/a/b/c", "../.."},
        {"/x", "/a/b", "../../x"}, {"/a", "/", "a"},           {"/", "/", "."},       {"/", "/a", ".."}};
    for (size_t i = 0; i < WML_COUNT(row); i++) {
        struct wml_buf b = {0};
        wml_path_relative(&b, wml_str(row[i][0]), wml_str(row[i][1]));
        gives(&b, row[i][2], row[i][0]);
    }
}

static void test_inside(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        size_t n;
        bool inside;
    } row[] = {
        {"w.data", 6, true},  {"sub/w.data", 10, true}, {"a..b", 4, true}, {"...", 3, true},   {"./w", 3, true},
        {"", 0, false},       {"/etc/passwd", 11, false}, {"../w", 4, false}, {"a/../b", 6, false}, {"a\\..\\b", 6, false},
        {"..", 2, false},     {"a/..", 4, false},       {"C:/w", 4, false}, {"C:w", 3, false},  {"\\\\srv\\x", 7, false},
        {"w\0x", 3, false},
    };
    for (size_t i = 0; i < WML_COUNT(row); i++)
        if (wml_path_is_inside((struct wml_str){row[i].path, row[i].n}) != row[i].inside) fail_msg("%s", row[i].path);
}

static void test_known_places(void **state)
{
    (void)state;
    struct wml_buf b = {0}, c = {0};
    struct wml_err err = {0};
    assert_true(wml_path_program(&b));
    assert_true(wml_path_is_absolute(wml_buf_view(&b)) && wml_file_exists(wml_buf_text(&b)));
    assert_true(wml_path_real(&c, wml_buf_view(&b), &err));
    assert_true(wml_file_same(b.ptr, c.ptr));
    wml_buf_clear(&b);
    wml_path_temp(&b);
    assert_true(wml_dir_exists(wml_buf_text(&b)));
    wml_buf_clear(&b);
    wml_buf_clear(&c);
    assert_true(wml_path_absolute(&b, WML_STR("x/../y"), &err));
    assert_true(wml_path_is_absolute(wml_buf_view(&b)) && wml_str_ends(wml_buf_view(&b), "/y"));
    assert_false(wml_path_real(&c, WML_STR("no such file"), &err));
    assert_int_equal(err.code, WML_E_NOT_FOUND);
    wml_buf_release(&b);
    wml_buf_release(&c);
}

#ifdef _WIN32
static void test_windows(void **state)
{
    (void)state;
    static const char *const row[][2] = {{"C:\\a\\..\\b\\", "C:/b"},
                                         {"\\\\server\\share\\x\\..\\y", "//server/share/y"},
                                         {"a\\b/c", "a/b/c"},
                                         {"C:\\", "C:/"}};
    for (size_t i = 0; i < WML_COUNT(row); i++) {
        struct wml_buf b = {0};
        wml_path_normal(&b, wml_str(row[i][0]));
        gives(&b, row[i][1], row[i][0]);
    }
    struct wml_buf b = {0};
    wml_path_relative(&b, WML_STR("C:/Models/A/x"), WML_STR("c:/models/b"));
    gives(&b, "../A/x", "case");
    wml_path_relative(&b, WML_STR("D:/x"), WML_STR("C:/y"));
    gives(&b, "D:/x", "drives");
    assert_true(wml_str_is(wml_path_name(WML_STR("C:\\a\\b.onnx")), "b.onnx"));
    assert_true(wml_str_is(wml_path_dir(WML_STR("C:\\b.onnx")), "C:\\"));
    assert_true(wml_path_is_absolute(WML_STR("C:/x")) && !wml_path_is_absolute(WML_STR("C:x")));
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts),    cmocka_unit_test(test_join),   cmocka_unit_test(test_normal),
        cmocka_unit_test(test_relative), cmocka_unit_test(test_inside), cmocka_unit_test(test_known_places),
#ifdef _WIN32
        cmocka_unit_test(test_windows),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
