/* Statistics as the reports define them; the sampler sees work and memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <time.h>
#include "base/arena.h"
#include "monitor/sampler.h"
#include "monitor/stats.h"
#include "os/sys.h"

static void test_percentiles(void **state)
{
    (void)state;
    const double four[] = {1, 2, 3, 4}, one[] = {7};
    double hundred[100];
    for (int i = 0; i < 100; i++) hundred[i] = i + 1;
    const struct { const double *at; size_t n; double p, expected; } row[] = {
        {four, 4, 50, 3},  {four, 4, 0, 1},      {four, 4, 100, 4},     {four, 4, 25, 2},      {four, 4, 90, 4},
        {one, 1, 50, 7},   {one, 1, 99, 7},      {hundred, 100, 50, 51}, {hundred, 100, 90, 91}, {hundred, 100, 95, 96},
        {hundred, 100, 99, 100}, {one, 0, 50, 0}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        assert_true(wml_percentile(row[i].at, row[i].n, row[i].p) == row[i].expected);
}

static void test_stats(void **state)
{
    (void)state;
    const double sample[] = {4, 1, 3, 2};
    struct wml_stats s;
    wml_stats(sample, 4, &s);
    assert_true(s.n == 4 && s.mean == 2.5 && s.min == 1 && s.max == 4 && s.p50 == 3 && s.p99 == 4);
    assert_true(fabs(s.std - sqrt(1.25)) < 1e-12);
    assert_true(sample[0] == 4); /* the samples stay in their order */
    wml_stats(sample, 0, &s);
    assert_true(s.n == 0 && s.mean == 0 && s.max == 0 && s.std == 0);
    wml_stats(sample, 1, &s);
    assert_true(s.mean == 4 && s.std == 0 && s.p50 == 4);
    assert_true(wml_mean(sample, 0) == 0 && wml_mean(sample, 2) == 2.5);
}

/* CPU time of this process by another clock than the sampler's, where the C library has one. */
static double cpu_ms(void)
{
#ifdef _WIN32
    return (double)wml_cpu_ns() / 1e6;
#else
    return (double)clock() * 1e3 / CLOCKS_PER_SEC;
#endif
}

static double now_ms(void)
{
    return (double)wml_now_ns() / 1e6;
}

/* Other processes may take any share of the CPU: what the sampler says is held against what this one measures just
 * before and just behind, and within. */
static void test_sampler(void **state)
{
    (void)state;
    enum { EVERY_MS = 20, SLACK_MS = 30 }; /* ticks of the system's clocks */
    double outer = now_ms(), outer_cpu = cpu_ms();
    struct wml_sampler *s = wml_sampler_start(EVERY_MS);
    assert_non_null(s);
    double inner = now_ms(), inner_cpu = cpu_ms();
    volatile double x = 1;
    while (cpu_ms() - inner_cpu < 300 || (wml_sampler_now(s).n < 5 && now_ms() - inner < 60000)) x = x * 1.0000001;
    inner = now_ms() - inner;
    inner_cpu = cpu_ms() - inner_cpu;
    struct wml_usage u = wml_sampler_stop(s);
    outer = now_ms() - outer;
    outer_cpu = cpu_ms() - outer_cpu;
    assert_true(u.n >= 5 && (double)u.n <= outer / EVERY_MS + 2);
    assert_true(u.cpu_mean_percent >= 100 * (inner_cpu - SLACK_MS) / outer && u.cpu_mean_percent <= 100 * (outer_cpu + SLACK_MS) / inner);
    assert_true(u.cpu_peak_percent >= u.cpu_mean_percent && u.cpu_peak_percent < 400);
    assert_true(u.rss_mean_mb > 0.5 && u.rss_peak_mb >= u.rss_mean_mb);
    u = wml_sampler_stop(NULL);
    assert_true(u.n == 0 && u.cpu_mean_percent == 0);
}

static void test_sampler_that_ends_at_once(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++) {
        struct wml_usage u = wml_sampler_stop(wml_sampler_start(1000));
        assert_true(u.n == 1 && isfinite(u.cpu_mean_percent) && u.rss_mean_mb > 0.5);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_percentiles), cmocka_unit_test(test_stats),
                                       cmocka_unit_test(test_sampler), cmocka_unit_test(test_sampler_that_ends_at_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
