/* The runner behind cmocka.h of the cross build. One test at a time, so its place to return to is static;
 * the house rule against setjmp is for the program, not for this stand-in. */
#include "cmocka.h"

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { PASSED, FAILED, SKIPPED };

static jmp_buf test_end;
static const char *filter;

void cmocka_set_test_filter(const char *pattern)
{
    filter = pattern;
}

static void end_test(int how)
{
    fflush(stdout);
    longjmp(test_end, how);
}

void print_message(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    fputs("# ", stdout);
    vprintf(fmt, args);
    va_end(args);
}

void print_error(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
}

void shim_fail(const char *file, int line, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    printf("# %s:%d: ", file, line);
    vprintf(fmt, args);
    va_end(args);
    puts("");
    end_test(FAILED);
}

void shim_skip(void)
{
    end_test(SKIPPED);
}

void shim_true(int holds, const char *what, const char *file, int line)
{
    if (!holds) shim_fail(file, line, "does not hold: %s", what);
}

void shim_int(uint64_t a, uint64_t b, int equal, const char *what, const char *file, int line)
{
    if ((a == b) != equal)
        shim_fail(file, line, "does not hold: %s: %" PRId64 " and %" PRId64, what, (int64_t)a, (int64_t)b);
}

void shim_range(uint64_t v, uint64_t low, uint64_t high, int inside, const char *what, const char *file, int line)
{
    if ((v >= low && v <= high) != inside)
        shim_fail(file, line, "%s is %" PRIu64 ", the range %" PRIu64 "..%" PRIu64, what, v, low, high);
}

void shim_string(const char *a, const char *b, int equal, const char *what, const char *file, int line)
{
    if (!a || !b) shim_fail(file, line, "a string is NULL: %s", what);
    else if ((strcmp(a, b) == 0) != equal) shim_fail(file, line, "does not hold: %s: \"%s\" and \"%s\"", what, a, b);
}

void shim_memory(const void *a, const void *b, size_t n, int equal, const char *what, const char *file, int line)
{
    const unsigned char *x = a, *y = b;
    size_t at = 0;
    while (at < n && x[at] == y[at]) at++;
    if ((at == n) != equal) shim_fail(file, line, "does not hold: %s: first difference at byte %zu", what, at);
}

void shim_float(double a, double b, double epsilon, int equal, const char *what, const char *file, int line)
{
    if ((fabs(a - b) <= epsilon) != equal) shim_fail(file, line, "does not hold: %s: %.17g and %.17g", what, a, b);
}

static int run_one(const struct CMUnitTest *t, void *group_state)
{
    void *state = t->initial_state ? t->initial_state : group_state;
    int how = FAILED;
    if (t->setup_func && t->setup_func(&state) != 0) {
        printf("# the setup of %s failed\n", t->name);
        return FAILED;
    }
    switch (setjmp(test_end)) {
    case PASSED:
        t->test_func(&state);
        how = PASSED;
        break;
    case SKIPPED: how = SKIPPED; break;
    default: break;
    }
    if (t->teardown_func && t->teardown_func(&state) != 0) how = FAILED;
    return how;
}

int shim_run(const char *group, const struct CMUnitTest *tests, size_t n, CMFixtureFunction setup,
             CMFixtureFunction teardown)
{
    static void *state;
    int failed = 0;
    if (!filter) filter = getenv("CMOCKA_TEST_FILTER");
    printf("# %s\n1..%zu\n", group, n);
    if (setup && setup(&state) != 0) {
        printf("Bail out! the setup of %s failed\n", group);
        return (int)n;
    }
    for (size_t i = 0; i < n; i++) {
        int out = filter && !strstr(tests[i].name, filter) ? SKIPPED : run_one(&tests[i], state);
        printf("%s %zu - %s%s\n", out == FAILED ? "not ok" : "ok", i + 1, tests[i].name,
               out == SKIPPED ? " # SKIP" : "");
        fflush(stdout);
        failed += out == FAILED;
    }
    if (teardown) teardown(&state);
    return failed;
}
