/* What programs that share a folder need: locks, links, files that grow. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "os/file.h"
#include "os/grow.h"
#include "os/lock.h"
#include "os/path.h"

static struct wml_buf dir;

static const char *in(const char *name)
{
    static char text[4][1024];
    static unsigned turn;
    turn = (turn + 1) % 4;
    snprintf(text[turn], sizeof text[turn], "%s/%s", wml_buf_text(&dir), name);
    return text[turn];
}

static int set_up(void **state)
{
    (void)state;
    return wml_dir_temp(NULL, "wml share-", &dir, NULL) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    bool ok = wml_dir_remove(wml_buf_text(&dir));
    wml_buf_release(&dir);
    return ok ? 0 : -1;
}

static void has(const char *path, const char *text)
{
    struct wml_buf b = {0};
    assert_true(wml_file_read(path, 0, &b, NULL));
    assert_string_equal(wml_buf_text(&b), text);
    wml_buf_release(&b);
}

static void test_grow(void **state)
{
    struct wml_grow g = {0};
    struct wml_err err = {0};
    (void)state;
    assert_true(wml_grow_open(&g, in("grow"), &err));
    assert_int_equal(g.size, 0);
    assert_true(wml_grow_reserve(&g, 4000000, &err));
    assert_true(wml_grow_write(&g, "hello ", 6, &err));
    assert_true(wml_grow_write(&g, "world", 5, &err));
    wml_grow_close(&g);
    wml_grow_close(&g);
    has(in("grow"), "hello world"); /* the room that was kept is no content */
    assert_true(wml_grow_open(&g, in("grow"), &err));
    assert_int_equal(g.size, 11);
    assert_true(wml_grow_cut(&g, 99, &err));
    assert_int_equal(g.size, 11);
    assert_true(wml_grow_cut(&g, 5, &err));
    assert_true(wml_grow_write(&g, "!", 1, &err));
    assert_true(wml_grow_flush(&g, &err));
    assert_int_equal(g.size, 6);
    wml_grow_close(&g);
    has(in("grow"), "hello!");
    assert_false(wml_grow_open(&g, in("none/grow"), &err));
    assert_int_equal(err.code, WML_E_NOT_FOUND);
    assert_false(wml_grow_open(&g, wml_buf_text(&dir), &err));
    wml_grow_close(&g);
}

static void test_lock(void **state)
{
    struct wml_lock a = {0}, b = {0};
    struct wml_err err = {0};
    (void)state;
    assert_true(wml_lock_try(&a, in("lock"), &err) && a.file);
    assert_true(wml_lock_try(&b, in("lock"), &err) && !b.file);
    assert_true(wml_lock_try(&b, in("other"), &err) && b.file);
    wml_lock_release(&b);
    wml_lock_release(&a);
    wml_lock_release(&a);
    assert_true(wml_lock_try(&b, in("lock"), &err) && b.file);
    wml_lock_release(&b);
    assert_true(wml_file_exists(in("lock")));
    assert_false(wml_lock_try(&b, in("none/lock"), &err));
}

/* Where links cannot be made, it says so and leaves nothing. */
static void test_link(void **state)
{
    struct wml_err err = {0};
    (void)state;
    assert_true(wml_file_write(in("target"), WML_STR("text"), &err));
    assert_true(wml_dir_make(in("sub"), &err));
    if (wml_file_link_hard(in("target"), in("sub/second"))) {
        assert_true(wml_file_same(in("target"), in("sub/second")));
        assert_false(wml_file_link_hard(in("target"), in("sub/second")));
    }
    assert_false(wml_file_link_hard(in("nothing"), in("sub/third")));
    if (!wml_file_link("../target", in("sub/link"), &err)) {
        assert_int_equal(err.code, WML_E_UNSUPPORTED);
        assert_int_equal(wml_file_info(in("sub/link")).kind, WML_FILE_NONE);
        return;
    }
    has(in("sub/link"), "text");
    assert_false(wml_file_link("../other", in("sub/link"), &err));
    assert_int_equal(err.code, WML_E_EXISTS);
    assert_true(wml_file_link("nothing", in("sub/dangling"), &err));
    assert_false(wml_file_exists(in("sub/dangling")));
    assert_true(wml_file_remove(in("sub/dangling")));
    assert_true(wml_file_link("../target", in("sub/dangling"), &err));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grow), cmocka_unit_test(test_lock), cmocka_unit_test(test_link),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
