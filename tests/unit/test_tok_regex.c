/* Patterns: what becomes of Oniguruma's syntax, what is refused, and that nothing runs for ever. What they match is judged by
 * tests/parity/test_tok.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tok/regex.h"

static void becomes(const char *pattern, const char *expected)
{
    struct wml_buf b = {0};
    struct wml_err err = {0};
    if (!wml_regex_translate(wml_str(pattern), &b, &err)) {
        wml_buf_clear(&b);
        wml_buf_cstr(&b, err.msg);
    }
    if (strcmp(wml_buf_text(&b), expected) != 0) fail_msg("'%s' becomes '%s', not '%s'", pattern, wml_buf_text(&b), expected);
    wml_buf_release(&b);
}

static void test_syntax(void **state)
{
    (void)state;
    becomes("'s| ?\\p{L}+(?!\\P{N})", "'s| ?\\p{L}+(?!\\P{N})");
    becomes("\\p{Han}\\P{^Latin}\\p{Lu}\\p{Alphabetic}", "\\p{sc:Han}\\P{^sc:Latin}\\p{Lu}\\p{Alphabetic}");
    becomes("\\h[\\h]\\H", "[0-9A-Fa-f][0-9A-Fa-f][^0-9A-Fa-f]");
    becomes("a{1,3}+b", "(?:a{1,3})+b");
    becomes("(a|b){2}+", "(?:(a|b){2})+");
    becomes("a++b?+c*+d{2}?", "a++b?+c*+d{2}?");
    becomes("x{a}{", "x\\{a}\\{");
    becomes("[a-z&&[^b]]", "[a-z&&[^b]]");
    becomes("[a&b|-]", "[a\\&b\\|\\-]");
    becomes("[]a]", "[\\]a]");
    becomes("(?m:.)(?i)a", "(?s:.)(?i)a");
    becomes("\\u00e9\\x41\\x{1F600}\\v", "\\x{00e9}\\x{41}\\x{1F600}\\x0b");
    becomes("\\R", "this escape at byte 1 is not supported");
    becomes("(?<n>a)", "this group at byte 3 is not supported");
    becomes("a\\1", "this escape at byte 2 is not supported");
    becomes("[[:alpha:]]", "a POSIX bracket at byte 2 is not supported");
    becomes("(a", "a ( without ) at byte 3 is not supported");
    becomes("a)", "a ) without ( at byte 2 is not supported");
    becomes("[a", "a bracket without an end at byte 3 is not supported");
    becomes("*a", "a repetition of nothing at byte 1 is not supported");
    becomes("(*ACCEPT)", "a verb at byte 1 is not supported");
    becomes("\\pL", "\\p without braces at byte 1 is not supported");
    becomes("a\xff", "it is no UTF-8");
}

static void test_endless(void **state)
{
    struct wml_regex *r;
    struct wml_regex_match *m = wml_regex_match_new();
    struct wml_err err = {0};
    struct wml_buf text = {0};
    size_t start, end;
    (void)state;
    for (int i = 0; i < 5000; i++) wml_buf_char(&text, 'a');
    assert_true(wml_regex_new(WML_STR("(?:a+a+)+b|(?:a|aa)+$c"), &r, &err));
    assert_false(wml_regex_find(r, m, wml_buf_view(&text), 0, &start, &end, &err));
    assert_int_equal(err.code, WML_E_UNSUPPORTED);
    assert_true(err.hint[0]);
    wml_regex_free(r);
    wml_regex_match_free(m);
    wml_buf_release(&text);
}

static void test_walk(void **state)
{
    struct wml_regex *r;
    struct wml_regex_match *m = wml_regex_match_new();
    struct wml_err err = {0};
    struct wml_regex_walk walk = {0, SIZE_MAX};
    struct wml_buf b = {0};
    size_t start, end;
    (void)state;
    assert_true(wml_regex_new(WML_STR("x*"), &r, &err));
    for (;;) {
        assert_true(wml_regex_next(r, m, WML_STR("axx\xc3\xa9"), &walk, &start, &end, &err));
        if (start == SIZE_MAX) break;
        wml_buf_fmt(&b, "%zu-%zu ", start, end);
    }
    assert_string_equal(wml_buf_text(&b), "0-0 1-3 5-5 ");
    wml_buf_release(&b);
    wml_regex_free(r);
    wml_regex_match_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_syntax), cmocka_unit_test(test_endless), cmocka_unit_test(test_walk)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
