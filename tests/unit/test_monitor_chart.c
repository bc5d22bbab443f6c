/* The live panel: sizes, hostile items, long runs, colours. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "monitor/chart.h"
#include "text/words.h"

static struct wml_chart new_chart(void)
{
    return (struct wml_chart){.title = "HW Monitor - nét.onnx", .device = "qnn on npu", .cpus = 4, .stage = "Iter", .done = 30, .total = 60};
}

static void fill(struct wml_chart *c, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char item[96];
        snprintf(item, sizeof item, WML_LIVE_ITEM, (double)(i % 41) * 10, 210.4, 1.5 + (double)(i % 7), -1.0, -1.0);
        assert_true(wml_chart_add(c, 100 + 0.1 * (double)i, wml_str(item)));
    }
}

static void test_items(void **state)
{
    (void)state;
    struct wml_chart c = new_chart();
    char big[200];
    memset(big, '1', sizeof big - 1);
    big[sizeof big - 1] = 0;
    const char *const bad[] = {"", "cpu", "cpu 1 mb 2", "cpu x mb 2 ms 3", "net.onnx", "cpu 1 mb 2 ms 3", "cpu inf mb 2 ms 3 gpu 4 npu 5",
                               "cpu 1 mb nan ms 3 gpu 4 npu 5", "cpu 1 mb 2 ms 3 gpu 4 npu 5 ", "cpu 1 mb 2 ms 3 gpu 4 npu 5x", big};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) assert_false(wml_chart_add(&c, 1, wml_str(bad[i])));
    assert_true(wml_chart_add(&c, 7, WML_STR("cpu 200.0 mb 12.5 ms 1.25 gpu -1.0 npu 250")));
    assert_true(wml_chart_add(&c, 8, WML_STR("cpu 99999 mb 12.5 ms 1.25 gpu 7 npu -1")));
    assert_true(c.point.len == 2 && c.point.at[0].cpu == 50 && c.point.at[0].t_s == 0 && c.point.at[1].cpu == 100 && c.point.at[1].t_s == 1);
    assert_true(c.point.at[0].gpu == -1 && c.point.at[0].npu == 100 && c.point.at[1].gpu == 7);
    wml_chart_release(&c);
}

static void test_sizes(void **state)
{
    (void)state;
    const struct { unsigned width, height; size_t lines; } row[] = {{80, 24, 14}, {200, 50, 14}, {80, 17, 10}, {40, 10, 4}, {29, 24, 0}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct wml_chart c = new_chart();
        struct wml_buf out = {0};
        fill(&c, 400);
        assert_int_equal(wml_chart_draw(&c, row[i].width, row[i].height, false, &out), row[i].lines);
        size_t lines = 0;
        for (struct wml_str rest = wml_buf_view(&out); rest.len;) {
            const char *end = memchr(rest.ptr, '\n', rest.len);
            assert_non_null(end);
            struct wml_str line = {rest.ptr, (size_t)(end - rest.ptr)};
            assert_true(wml_utf8_valid(line) && wml_utf8_width(line) <= row[i].width);
            rest = wml_str_sub(rest, line.len + 1, rest.len);
            lines++;
        }
        assert_int_equal(lines, row[i].lines);
        if (lines) assert_true(wml_str_has(wml_buf_view(&out), "Iter: 30/60") && !wml_str_has(wml_buf_view(&out), "\x1b"));
        wml_buf_release(&out);
        wml_chart_release(&c);
    }
}

/* The chart is that of the accelerator as soon as its load is known. */
static void test_accelerators(void **state)
{
    (void)state;
    struct wml_chart c = new_chart();
    struct wml_buf out = {0};
    for (int i = 0; i < 40; i++) {
        char item[128];
        snprintf(item, sizeof item, WML_LIVE_ITEM, 40.0, 100.0, 2.0, i % 10 ? -1.0 : 30.0, i < 20 ? -1.0 : 80.0);
        assert_true(wml_chart_add(&c, i * 0.1, wml_str(item)));
    }
    assert_int_equal(wml_chart_draw(&c, 100, 24, true, &out), 14);
    assert_true(wml_str_has(wml_buf_view(&out), "NPU 80% now, 80% avg   GPU 30% now, 30% avg   CPU 10% now, 10% avg   Memory 100 MB"));
    assert_true(wml_str_has(wml_buf_view(&out), "\x1b[32m") && !wml_str_has(wml_buf_view(&out), "\x1b[33m"));
    c.timed = true;
    c.done = 1500;
    c.total = 3000;
    wml_buf_clear(&out);
    wml_chart_draw(&c, 100, 24, false, &out);
    assert_true(wml_str_has(wml_buf_view(&out), "Time: 1.5/3.0 s"));
    wml_buf_release(&out);
    wml_chart_release(&c);
}

static void test_no_points_and_many(void **state)
{
    (void)state;
    struct wml_chart c = new_chart();
    struct wml_buf out = {0};
    assert_int_equal(wml_chart_draw(&c, 80, 24, true, &out), 0);
    fill(&c, 1);
    assert_int_equal(wml_chart_draw(&c, 80, 24, true, &out), 14);
    assert_true(wml_str_has(wml_buf_view(&out), "\x1b[0m"));
    fill(&c, 5000);
    assert_true(c.point.len <= 1200);
    c.total = 0;
    assert_int_equal(wml_chart_draw(&c, 80, 24, false, &out), 14);
    wml_buf_release(&out);
    wml_chart_release(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_items), cmocka_unit_test(test_sizes), cmocka_unit_test(test_accelerators), cmocka_unit_test(test_no_points_and_many)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
