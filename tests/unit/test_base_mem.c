/* Arenas, vectors, the growing buffer, maps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/map.h"
#include "base/rng.h"
#include "base/vec.h"

static void test_arena(void **state)
{
    (void)state;
    struct wml_arena a = {0};
    char *kept[500];
    for (size_t i = 0; i < 500; i++) {
        kept[i] = wml_arena_alloc(&a, i * 37);
        assert_int_equal((uintptr_t)kept[i] % _Alignof(max_align_t), 0);
        memset(kept[i], (int)(i & 0xff), i * 37);
    }
    /* Later allocations never touch earlier ones, blocks of every size included. */
    for (size_t i = 0; i < 500; i++)
        for (size_t k = 0; k < i * 37; k++) assert_int_equal((unsigned char)kept[i][k], i & 0xff);
    char *big = wml_arena_zalloc(&a, 9 << 20);
    for (size_t i = 0; i < 9 << 20; i += 4096) assert_int_equal(big[i], 0);
    assert_true(a.used >= 9 << 20);
    wml_arena_reset(&a);
    assert_int_equal(a.used, 0);
    assert_string_equal(wml_arena_fmt(&a, "%d-%s", 7, "x").ptr, "7-x");
    assert_null(wml_arena_str(&a, WML_NO_STR).ptr);
    struct wml_str empty = wml_arena_str(&a, WML_STR(""));
    assert_non_null(empty.ptr);
    assert_string_equal(wml_arena_cstr(&a, wml_str_sub(WML_STR("abcdef"), 1, 3)), "bc");
    wml_arena_release(&a);
    wml_arena_release(&a);
    assert_null(a.head);
}

static void test_vec(void **state)
{
    (void)state;
    WML_VEC(int) v = {0}, w = {0};
    struct wml_arena a = {0};
    for (int i = 0; i < 1000; i++) {
        WML_PUSH(&v, i);
        WML_PUSH_IN(&a, &w, i * 2);
    }
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(v.at[i], i);
        assert_int_equal(w.at[i], i * 2);
    }
    WML_REMOVE(&v, 0);
    WML_REMOVE(&v, 998);
    assert_int_equal(v.len, 998);
    assert_int_equal(v.at[0], 1);
    assert_int_equal(v.at[997], 998);
    WML_VEC_RELEASE(&v);
    assert_null(v.at);
    wml_arena_release(&a);
}

static void test_buf(void **state)
{
    (void)state;
    struct wml_buf b = {0};
    assert_string_equal(wml_buf_text(&b), "");
    assert_int_equal(wml_buf_view(&b).len, 0);
    wml_buf_add(&b, "", 0);
    for (int i = 0; i < 10000; i++) wml_buf_fmt(&b, "%d,", i);
    assert_int_equal(b.len, 48890);
    assert_true(wml_str_ends(wml_buf_view(&b), "9998,9999,"));
    assert_int_equal(b.ptr[b.len], 0);
    wml_buf_clear(&b);
    assert_string_equal(b.ptr, "");
    wml_buf_release(&b);
    assert_null(b.ptr);
}

static void test_buf_maximum(void **state)
{
    (void)state;
    struct wml_buf b = {.max = 100};
    for (int i = 0; i < 100; i++) wml_buf_char(&b, 'x');
    assert_false(b.failed);
    wml_buf_char(&b, 'y');
    assert_true(b.failed);
    wml_buf_cstr(&b, "");
    assert_int_equal(b.len, 100);
    wml_buf_clear(&b);
    assert_false(b.failed);
    wml_buf_fmt(&b, "%0101d", 1);
    assert_true(b.failed);
    assert_int_equal(b.len, 0);
    wml_buf_release(&b);
    assert_int_equal(b.max, 100);
}

/* Against a plain array: random puts and removes. */
static void test_map_random(void **state)
{
    (void)state;
    enum { N = 700 };
    static char names[N][8];
    void *truth[N] = {0};
    struct wml_map m = {0};
    struct wml_rng rng = {42};
    for (int i = 0; i < N; i++) snprintf(names[i], sizeof names[i], "k%d", i);
    for (int step = 0; step < 20000; step++) {
        int i = (int)wml_rng_range(&rng, 0, N);
        struct wml_str key = wml_str(names[i]);
        if (wml_rng_unit(&rng) < 0.55) {
            void *value = names[wml_rng_range(&rng, 0, N)];
            assert_ptr_equal(wml_map_put(&m, key, value), truth[i]);
            truth[i] = value;
        } else {
            assert_int_equal(wml_map_remove(&m, key), truth[i] != NULL);
            truth[i] = NULL;
        }
    }
    size_t live = 0;
    for (int i = 0; i < N; i++) {
        assert_ptr_equal(wml_map_get(&m, wml_str(names[i])), truth[i]);
        assert_int_equal(wml_map_has(&m, wml_str(names[i])), truth[i] != NULL);
        live += truth[i] != NULL;
    }
    assert_int_equal(m.live, live);
    assert_false(wml_map_has(&m, WML_STR("k")));
    wml_map_release(&m);
}

static void test_map_order(void **state)
{
    (void)state;
    struct wml_map m = {0};
    static const char *const word[] = {"zeta", "alpha", "", "mu", "alpha2"};
    for (size_t i = 0; i < WML_COUNT(word); i++) wml_map_put(&m, wml_str(word[i]), (void *)(uintptr_t)word[i]);
    wml_map_remove(&m, WML_STR("mu"));
    size_t seen = 0;
    static const char *const left[] = {"zeta", "alpha", "", "alpha2"};
    for (size_t i = 0; i < m.len; i++) {
        if (!m.entry[i].live) continue;
        assert_true(wml_str_is(m.entry[i].key, left[seen]));
        seen++;
    }
    assert_int_equal(seen, 4);
    wml_map_release(&m);
    assert_null(wml_map_get(&m, WML_STR("zeta")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arena),       cmocka_unit_test(test_vec),        cmocka_unit_test(test_buf),
        cmocka_unit_test(test_buf_maximum), cmocka_unit_test(test_map_random), cmocka_unit_test(test_map_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
