/* The table: complete, in order, no row twice. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "catalog/catalog.h"

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static int order(const struct wml_catalog_model *a, const struct wml_catalog_model *b)
{
    const char *x = a->id, *y = b->id;
    while (*x && lower(*x) == lower(*y)) x++, y++;
    return lower(*x) != lower(*y) ? (lower(*x) < lower(*y) ? -1 : 1) : strcmp(a->task, b->task);
}

static void test_rows(void **state)
{
    size_t releases[4] = {0};
    (void)state;
    for (size_t i = 0; i < wml_n_catalog; i++) {
        const struct wml_catalog_model *m = &wml_catalog[i];
        if (i && order(&wml_catalog[i - 1], m) >= 0) fail_msg("%s, %s: not behind the row before it", m->id, m->task);
        assert_true(m->releases > 0 && m->releases < 4);
        assert_true(m->size_mb > 0 && m->ep[0].alias);
        releases[m->releases]++;
    }
    assert_int_equal(releases[1] + releases[3], 66); /* 0.3.0 */
    assert_int_equal(releases[2] + releases[3], 43); /* 0.4.0 */
    assert_int_equal(wml_n_catalog, 87);
    assert_string_equal(wml_catalog_release(0), "0.3.0");
    assert_null(wml_catalog_release(2));
}

static void test_tasks(void **state)
{
    const struct wml_catalog_model mask = {.task = "fill-mask"}, masked = {.task = "masked-lm"}, other = {.task = "translation"};
    (void)state;
    assert_true(wml_catalog_is_task(&mask, WML_STR("Masked-LM")) && wml_catalog_is_task(&masked, WML_STR("fill-mask")));
    assert_true(wml_catalog_is_task(&masked, WML_STR("masked-lm")) && wml_catalog_is_task(&other, WML_STR("translation")));
    assert_false(wml_catalog_is_task(&other, WML_STR("masked-lm")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows), cmocka_unit_test(test_tasks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
