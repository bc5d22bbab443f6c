/* Environment, clocks, this process, libraries, terminal, threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/arena.h"
#include "os/crew.h"
#include "os/sys.h"
#include "os/thread.h"

static void test_env(void **state)
{
    (void)state;
    struct wml_buf b = {0};
    assert_false(wml_env("WML_NOT_SET", &b) || wml_env_is_set("WML_NOT_SET"));
    wml_env_set("WML_SET", "v\xc3\xa4lue = 1");
    assert_true(wml_env("WML_SET", &b) && wml_env_is_set("WML_SET"));
    assert_string_equal(wml_buf_text(&b), "v\xc3\xa4lue = 1");
    wml_env_set("WML_SET", "");
    wml_buf_clear(&b);
    assert_true(wml_env("WML_SET", &b));
    assert_int_equal(b.len, 0);
    assert_false(wml_env_is_set("WML_SET"));
    wml_env_set("WML_SET", NULL);
    assert_false(wml_env("WML_SET", &b));
    char longer[5000];
    memset(longer, 'e', sizeof longer);
    longer[sizeof longer - 1] = 0;
    wml_env_set("WML_SET", longer);
    assert_true(wml_env("WML_SET", &b));
    assert_string_equal(wml_buf_text(&b), longer);
    wml_env_set("WML_SET", NULL);
    wml_buf_release(&b);
}

static void test_clocks(void **state)
{
    (void)state;
    char utc[WML_TIME_TEXT], stamp[WML_TIME_TEXT];
    uint64_t a = wml_now_ns();
    wml_sleep_ms(30);
    uint64_t b = wml_now_ns();
    assert_true(b - a >= 29000000 && b - a < UINT64_C(5000000000));
    wml_time_utc(utc);
    wml_time_stamp(stamp);
    assert_true(strlen(utc) == 20 && utc[4] == '-' && utc[10] == 'T' && utc[19] == 'Z');
    assert_true(strlen(stamp) == 15 && stamp[8] == '-');
    uint64_t cpu = wml_cpu_ns();
    volatile double x = 1;
    for (int i = 0; i < 30000000; i++) x = x * 1.0000001;
    assert_true(wml_cpu_ns() > cpu);
}

static void test_memory(void **state)
{
    (void)state;
    enum { SIZE = 64 << 20 };
    uint64_t before = wml_rss(), anon = wml_rss_anon();
    volatile char *p = malloc(SIZE);
    for (size_t i = 0; i < SIZE; i += 1024) p[i] = (char)i;
    uint64_t grown = wml_rss();
    assert_true(before > 100000 && grown > before + SIZE / 2);
    assert_true(wml_rss_peak() >= grown - (1 << 20));
    if (anon) assert_true(wml_rss_anon() > anon + SIZE / 2);
    free((void *)(uintptr_t)p);
    assert_true(wml_pid() > 0);
}

static void test_libraries(void **state)
{
    (void)state;
    struct wml_dl *d = NULL;
    struct wml_err err = {0};
    struct wml_buf b = {0};
#ifdef _WIN32
    assert_true(wml_dl_open("kernel32.dll", &d, &err));
    assert_non_null(wml_dl_symbol(d, "CreateFileW"));
#else
    assert_true(wml_dl_open("libm.so.6", &d, &err));
    assert_non_null(wml_dl_symbol(d, "cos"));
#endif
    assert_null(wml_dl_symbol(d, "no_such_symbol"));
    assert_true(wml_dl_path(d, &b) && b.len > 5);
    wml_dl_close(d);
    wml_dl_close(NULL);
    assert_false(wml_dl_open("/no/such/library.so", &d, &err));
    assert_int_equal(err.code, WML_E_NOT_FOUND);
    assert_non_null(strstr(err.msg, "/no/such/library.so"));
    wml_buf_release(&b);
}

static void test_terminal(void **state)
{
    (void)state;
    wml_env_set("COLUMNS", "100");
    if (!wml_term_is(1)) assert_int_equal(wml_term_width(1), 100);
    wml_env_set("COLUMNS", "many");
    if (!wml_term_is(1)) assert_int_equal(wml_term_width(1), 80);
    wml_env_set("COLUMNS", NULL);
    wml_term_write(1, WML_STR(""));
}

struct shared {
    struct wml_mutex *m;
    struct wml_cond *c;
    int count, turn;
};

static void count_up(void *arg)
{
    struct shared *s = arg;
    for (int i = 0; i < 20000; i++) {
        wml_mutex_lock(s->m);
        s->count++;
        wml_mutex_unlock(s->m);
    }
}

static void play(void *arg)
{
    struct shared *s = arg;
    wml_mutex_lock(s->m);
    for (int i = 0; i < 500; i++) {
        while (s->turn != 1) wml_cond_wait(s->c, s->m, UINT64_MAX);
        s->turn = 0;
        wml_cond_signal(s->c);
    }
    wml_mutex_unlock(s->m);
}

static void test_threads(void **state)
{
    (void)state;
    struct shared s = {.m = wml_mutex_new(), .c = wml_cond_new()};
    struct wml_thread *t[4] = {0};
    struct wml_err err = {0};
    for (size_t i = 0; i < 4; i++) assert_true(wml_thread_start(&t[i], count_up, &s, &err));
    for (size_t i = 0; i < 4; i++) wml_thread_join(t[i]);
    assert_int_equal(s.count, 80000);
    assert_true(wml_thread_start(&t[0], play, &s, &err));
    wml_mutex_lock(s.m);
    for (int i = 0; i < 500; i++) {
        s.turn = 1;
        wml_cond_signal(s.c);
        while (s.turn != 0) wml_cond_wait(s.c, s.m, 60000);
    }
    uint64_t begin = wml_now_ns();
    assert_false(wml_cond_wait(s.c, s.m, 40));
    assert_true(wml_now_ns() - begin >= 35000000);
    wml_mutex_unlock(s.m);
    wml_thread_join(t[0]);
    wml_thread_join(NULL);
    wml_mutex_free(s.m);
    wml_cond_free(s.c);
    assert_true(wml_cpu_count() >= 1);
}

struct shares { struct wml_mutex *lock; size_t done[64], inside[4], fail_from, n; };

static bool one_share(void *arg, size_t item, unsigned worker, struct wml_err *err)
{
    struct shares *s = arg;
    wml_mutex_lock(s->lock);
    assert_int_equal(s->inside[worker]++, 0);
    s->done[item]++;
    s->n++;
    wml_mutex_unlock(s->lock);
    wml_sleep_ms(item == s->fail_from ? 20 : 2); /* the first that fails ends last */
    wml_mutex_lock(s->lock);
    s->inside[worker]--;
    wml_mutex_unlock(s->lock);
    return item < s->fail_from || wml_fail(err, WML_E_IO, "item %zu", item);
}

static void test_crew(void **state)
{
    (void)state;
    static const struct { unsigned workers; size_t n, fail_from; } row[] = {{4, 64, 64}, {1, 9, 9}, {4, 2, 2}, {3, 0, 0}, {4, 64, 5}, {1, 9, 3}};
    for (size_t r = 0; r < WML_COUNT(row); r++) {
        struct shares s = {.lock = wml_mutex_new(), .fail_from = row[r].fail_from};
        struct wml_err err = {0};
        bool fails = row[r].fail_from < row[r].n;
        assert_true(wml_crew_run(row[r].workers, row[r].n, one_share, &s, &err) == !fails);
        for (size_t i = 0; i < row[r].n; i++) assert_int_equal(s.done[i], fails && i > row[r].fail_from ? s.done[i] & 1 : 1);
        if (fails) {
            char text[32];
            snprintf(text, sizeof text, "item %zu", row[r].fail_from);
            assert_string_equal(err.msg, text);
            assert_true(s.n <= row[r].fail_from + row[r].workers); /* no further one was begun */
        } else {
            assert_int_equal(err.code, 0);
            assert_int_equal(s.n, row[r].n);
        }
        wml_mutex_free(s.lock);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_crew), cmocka_unit_test(test_env),       cmocka_unit_test(test_clocks),   cmocka_unit_test(test_memory),
        cmocka_unit_test(test_libraries), cmocka_unit_test(test_terminal), cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
