/* Names that come from outside, header lines, checksums. The protocol is tested by tests/parity/test_hub.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "hub/internal.h"
#include "os/sys.h"

static void test_ids(void **state)
{
    static const char *const good[] = {"resnet", "microsoft/resnet-50", "a/b@main", "a/b@refs/pr/12", "A.b_c/0-1.2", "a@v1.0"};
    static const char *const bad[] = {"", "/", "a/", "/b", "a/b/c", "a--b", "a..b", ".a", "a-", "a/b.git", "a b", "a@", "a/b@-x",
                                      "a/b@../x", "a/b@x/../y", "a/b@x^1", "a/b@x.lock", "a/b@x:y", "a/b@x//y", "~/a", "C:/a", "a\\b", "\xc3\xa9"};
    (void)state;
    for (size_t i = 0; i < WML_COUNT(good); i++)
        if (!wml_hub_is_id(wml_str(good[i]))) fail_msg("'%s' is an id", good[i]);
    for (size_t i = 0; i < WML_COUNT(bad); i++)
        if (wml_hub_is_id(wml_str(bad[i]))) fail_msg("'%s' is no id", bad[i]);
}

static void test_file_names(void **state)
{
    static const char *const good[] = {"config.json", "a/b/c.txt", ".gitattributes", "1_Pooling/config.json", "a b", "..a", "\xc3\xa9"};
    static const char *const bad[] = {"", "/a", "../a", "a/../b", "a/..", "a//b", "a/", "./a", "a/./b", "a\\b", "C:a", "a\nb", "a\x7f"};
    (void)state;
    for (size_t i = 0; i < WML_COUNT(good); i++)
        if (!wml_hub_is_file_name(wml_str(good[i]))) fail_msg("'%s' is a file name", good[i]);
    for (size_t i = 0; i < WML_COUNT(bad); i++)
        if (wml_hub_is_file_name(wml_str(bad[i]))) fail_msg("'%s' is no file name", bad[i]);
    assert_true(wml_hub_is_word(WML_STR("d7edf6bd-1")));
    assert_false(wml_hub_is_word(WML_STR("../x")));
    assert_false(wml_hub_is_word(WML_STR(".x")));
    assert_true(wml_hub_is_commit(WML_STR("0123456789abcdef0123456789abcdef01234567")));
    assert_false(wml_hub_is_commit(WML_STR("0123456789abcdef0123456789abcdef0123456Z")));
}

static void test_escape(void **state)
{
    struct wml_buf b = {0};
    (void)state;
    wml_hub_escape(&b, WML_STR("refs/pr/1"), false);
    assert_string_equal(wml_buf_text(&b), "refs%2Fpr%2F1");
    wml_buf_clear(&b);
    wml_hub_escape(&b, WML_STR("a b/\xc3\xa9+%~.x"), true);
    assert_string_equal(wml_buf_text(&b), "a%20b/%C3%A9%2B%25~.x");
    wml_buf_release(&b);
}

static void lines(struct wml_http_answer *a, const char *text)
{
    struct wml_str rest = wml_str(text), line;
    while (wml_str_split(&rest, '\n', &line)) wml_http_answer_line(a, line);
}

static void test_answers(void **state)
{
    struct wml_http_answer a = {0};
    (void)state;
    lines(&a, "HTTP/1.1 206 Partial Content\nContent-Range: bytes 5-9/10\nCONTENT-LENGTH: 5\netag: \"x\"\nX-Linked-Size: 12\nX-Error-Message: a\x1b[1m\n"
              "Retry-After: 3");
    assert_int_equal(a.status, 206);
    assert_int_equal(a.range_from, 5);
    assert_int_equal(a.range_total, 10);
    assert_int_equal(a.length, 5);
    assert_int_equal(a.linked_size, 12);
    assert_int_equal(a.wait_ms, 3000);
    assert_string_equal(wml_buf_text(&a.etag), "\"x\"");
    assert_string_equal(wml_buf_text(&a.error_message), "a[1m");
    lines(&a, "HTTP/2 200\nContent-Range: bytes */10\nContent-Length: -5\nRetry-After: Wed, 21 Oct 2026 07:28:00 GMT\nno header\n:");
    assert_int_equal(a.status, 200);
    assert_true(a.length == UINT64_MAX && a.linked_size == UINT64_MAX && a.range_from == UINT64_MAX);
    assert_int_equal(a.range_total, 10);
    assert_int_equal(a.wait_ms, 0);
    assert_int_equal(a.etag.len, 0);
    lines(&a, "HTTP/1.1 99999999999999999999\nRetry-After: 99999999999999999999999");
    assert_int_equal(a.status, 999);
    lines(&a, "HTTP/");
    assert_int_equal(a.status, 0);
    wml_http_answer_release(&a);
}

/* Names from `git hash-object` and sha256sum. */
static void test_sums(void **state)
{
    static const struct { const char *etag, *content; bool fits; } rows[] = {
        {"e69de29bb2d1d6434b8b29ae775ad8c2e48c5391", "", true},
        {"ce013625030ba8dba906f756967f9e9ca394464a", "hello\n", true},
        {"ce013625030ba8dba906f756967f9e9ca394464a", "hello", false},
        {"5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03", "hello\n", true},
        {"5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03", "hello", false},
        {"some-other-tag", "anything", true},
    };
    (void)state;
    for (size_t i = 0; i < WML_COUNT(rows); i++) {
        struct wml_hub_sum s;
        wml_hub_sum_begin(&s, wml_str(rows[i].etag), strlen(rows[i].content));
        for (const char *c = rows[i].content; *c; c++) wml_hub_sum_add(&s, c, 1);
        if (wml_hub_sum_fits(&s) != rows[i].fits) fail_msg("row %zu", i);
    }
}

static void test_offline(void **state)
{
    const struct wml_hub_opts o = {.network = WML_HUB_OFFLINE, .cache_dir = WML_TEST_DATA "/none"};
    struct wml_buf folder = {0};
    struct wml_err err = {0};
    (void)state;
    assert_false(wml_hub_fetch(NULL, "org/name", &o, &folder, &err));
    assert_int_equal(err.code, WML_E_NOT_FOUND);
    assert_false(wml_hub_fetch(NULL, "org/name/more", &o, &folder, &err));
    assert_int_equal(err.code, WML_E_USAGE);
    wml_buf_release(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ids),     cmocka_unit_test(test_file_names), cmocka_unit_test(test_escape),
        cmocka_unit_test(test_answers), cmocka_unit_test(test_sums),       cmocka_unit_test(test_offline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
