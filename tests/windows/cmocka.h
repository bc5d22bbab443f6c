/* cmocka.h of the cross build: the part of cmocka's interface that tests/unit uses, since cmocka itself is
 * not there for Windows. A failed assertion ends its test by longjmp, as in cmocka. */
#ifndef WML_TESTS_CMOCKA_H
#define WML_TESTS_CMOCKA_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

typedef void (*CMUnitTestFunction)(void **state);
typedef int (*CMFixtureFunction)(void **state);

struct CMUnitTest {
    const char *name;
    CMUnitTestFunction test_func;
    CMFixtureFunction setup_func, teardown_func;
    void *initial_state;
};

#define cmocka_unit_test(f) {#f, f, NULL, NULL, NULL}
#define cmocka_unit_test_setup_teardown(f, s, t) {#f, f, s, t, NULL}
#define cmocka_unit_test_setup(f, s) {#f, f, s, NULL, NULL}
#define cmocka_unit_test_teardown(f, t) {#f, f, NULL, t, NULL}

/* Number of failed tests. Prints TAP. Environment CMOCKA_TEST_FILTER: only tests whose name has this part. */
int shim_run(const char *group, const struct CMUnitTest *tests, size_t n, CMFixtureFunction setup,
             CMFixtureFunction teardown);
#define cmocka_run_group_tests(tests, setup, teardown)                                                         \
    shim_run(#tests, tests, sizeof(tests) / sizeof((tests)[0]), setup, teardown)
#define cmocka_run_group_tests_name(name, tests, setup, teardown)                                              \
    shim_run(name, tests, sizeof(tests) / sizeof((tests)[0]), setup, teardown)
void cmocka_set_test_filter(const char *pattern);

/* Each ends the test when it does not hold. */
void shim_true(int holds, const char *what, const char *file, int line);
void shim_int(uint64_t a, uint64_t b, int equal, const char *what, const char *file, int line);
void shim_range(uint64_t v, uint64_t low, uint64_t high, int inside, const char *what, const char *file, int line);
void shim_string(const char *a, const char *b, int equal, const char *what, const char *file, int line);
void shim_memory(const void *a, const void *b, size_t n, int equal, const char *what, const char *file, int line);
void shim_float(double a, double b, double epsilon, int equal, const char *what, const char *file, int line);
void shim_fail(const char *file, int line, const char *fmt, ...);
void shim_skip(void);
void print_message(const char *fmt, ...);
void print_error(const char *fmt, ...);

/* Pointers and integers alike, as cmocka casts them. */
#define SHIM_WORD(x) ((uint64_t)(x))
#define assert_true(x) shim_true(!!(x), #x, __FILE__, __LINE__)
#define assert_false(x) shim_true(!(x), "!(" #x ")", __FILE__, __LINE__)
#define assert_non_null(x) shim_true((x) != NULL, #x " != NULL", __FILE__, __LINE__)
#define assert_null(x) shim_true((x) == NULL, #x " == NULL", __FILE__, __LINE__)
#define assert_ptr_equal(a, b) shim_true((const void *)(a) == (const void *)(b), #a " == " #b, __FILE__, __LINE__)
#define assert_ptr_not_equal(a, b) shim_true((const void *)(a) != (const void *)(b), #a " != " #b, __FILE__, __LINE__)
#define assert_int_equal(a, b) shim_int(SHIM_WORD(a), SHIM_WORD(b), 1, #a " == " #b, __FILE__, __LINE__)
#define assert_int_not_equal(a, b) shim_int(SHIM_WORD(a), SHIM_WORD(b), 0, #a " != " #b, __FILE__, __LINE__)
#define assert_in_range(v, a, b) shim_range(SHIM_WORD(v), SHIM_WORD(a), SHIM_WORD(b), 1, #v, __FILE__, __LINE__)
#define assert_not_in_range(v, a, b) shim_range(SHIM_WORD(v), SHIM_WORD(a), SHIM_WORD(b), 0, #v, __FILE__, __LINE__)
#define assert_string_equal(a, b) shim_string(a, b, 1, #a " == " #b, __FILE__, __LINE__)
#define assert_string_not_equal(a, b) shim_string(a, b, 0, #a " != " #b, __FILE__, __LINE__)
#define assert_memory_equal(a, b, n) shim_memory(a, b, n, 1, #a " == " #b, __FILE__, __LINE__)
#define assert_memory_not_equal(a, b, n) shim_memory(a, b, n, 0, #a " != " #b, __FILE__, __LINE__)
#define assert_float_equal(a, b, e) shim_float(a, b, e, 1, #a " == " #b, __FILE__, __LINE__)
#define assert_float_not_equal(a, b, e) shim_float(a, b, e, 0, #a " != " #b, __FILE__, __LINE__)
#define assert_double_equal assert_float_equal
#define fail() shim_fail(__FILE__, __LINE__, "fail()")
#define fail_msg(...) shim_fail(__FILE__, __LINE__, __VA_ARGS__)
#define skip() shim_skip()

#endif
