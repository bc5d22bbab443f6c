/* numpy arrays and archives, read as numpy wrote them, written, damaged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "os/file.h"
#include "os/path.h"
#include "text/npy.h"
#include "text/npz.h"

static void load(const char *name, struct wml_npys *out)
{
    struct wml_err err = {0};
    char path[1024];
    snprintf(path, sizeof path, "%s/npy/%s", WML_TEST_DATA, name);
    if (!wml_npy_load(path, out, &err)) fail_msg("%s", err.msg);
}

static const struct wml_npy *find(const struct wml_npys *a, const char *name, enum wml_dtype dtype, size_t rank)
{
    const struct wml_npy *n = wml_npys_find(a, wml_str(name));
    assert_non_null(n);
    assert_int_equal(n->dtype, dtype);
    assert_int_equal(n->rank, rank);
    return n;
}

static double at(const struct wml_npy *a, size_t i)
{
    return wml_dtype_load((int)a->dtype, a->data.ptr, i);
}

static void test_stored(void **state)
{
    (void)state;
    struct wml_npys a = {0};
    load("stored.npz", &a);
    assert_int_equal(a.v.len, 4);
    const struct wml_npy *x = find(&a, "x", WML_F32, 3), *y = find(&a, "y", WML_I64, 1);
    assert_true(x->dim[0] == 2 && x->dim[1] == 3 && x->dim[2] == 4 && x->data.len == 96);
    for (size_t i = 0; i < 24; i++) assert_true(at(x, i) == (double)i);
    assert_true(at(y, 0) == 1 && at(y, 1) == -2 && at(y, 2) == 3);
    assert_true(at(find(&a, "scalar", WML_F64, 0), 0) == 2.5);
    const struct wml_npy *flag = find(&a, "flag", WML_BOOL, 1);
    assert_true(at(flag, 0) == 1 && at(flag, 1) == 0);
    assert_null(wml_npys_find(&a, WML_STR("z")));
    wml_npys_release(&a);
    wml_npys_release(&a);
}

static void test_deflated(void **state)
{
    (void)state;
    struct wml_npys a = {0};
    load("deflated.npz", &a);
    const struct wml_npy *x = find(&a, "x", WML_F32, 3), *z = find(&a, "z", WML_U8, 1), *h = find(&a, "half", WML_F16, 1);
    assert_int_equal(x->dim[0], 40);
    for (size_t i = 0; i < 480; i++) assert_true(at(x, i) == (double)(i % 24));
    for (size_t i = 0; i < 1000; i++) assert_true(at(z, i) == 0);
    assert_true(at(h, 0) == 1.5 && at(h, 1) == -0.25);
    wml_npys_release(&a);
    load("streamed.npz", &a);
    const struct wml_npy *s = find(&a, "s1", WML_I32, 1);
    for (size_t i = 0; i < 5; i++) assert_true(at(s, i) == (double)i);
    assert_true(at(find(&a, "s2", WML_U8, 2), 8) == 7);
    wml_npys_release(&a);
}

static void test_orders(void **state)
{
    (void)state;
    static const char *const same[] = {"fortran", "big_endian"};
    struct wml_npys a = {0};
    char name[64];
    for (size_t f = 0; f < 2; f++) {
        snprintf(name, sizeof name, "%s.npy", same[f]);
        load(name, &a);
        const struct wml_npy *x = find(&a, same[f], WML_F32, 3);
        for (size_t i = 0; i < 24; i++) assert_true(at(x, i) == (double)i);
        wml_npys_release(&a);
    }
    load("fortran_big_endian.npy", &a);
    for (size_t i = 0; i < 6; i++) assert_true(at(find(&a, "fortran_big_endian", WML_I16, 2), i) == (double)i);
    wml_npys_release(&a);
    load("big_endian_complex.npy", &a);
    float c[4];
    memcpy(c, find(&a, "big_endian_complex", WML_C64, 1)->data.ptr, sizeof c);
    assert_true(c[0] == 1 && c[1] == 2 && c[2] == 3 && c[3] == -4);
    wml_npys_release(&a);
    for (int v = 2; v <= 3; v++) {
        snprintf(name, sizeof name, "version%d.npy", v);
        load(name, &a);
        assert_true(a.v.len == 1 && at(&a.v.at[0], 2) == 2);
        wml_npys_release(&a);
    }
    load("empty.npy", &a);
    assert_true(find(&a, "empty", WML_F32, 2)->data.len == 0);
    wml_npys_release(&a);
}

static void test_refused(void **state)
{
    (void)state;
    static const char *const names[] = {"text.npy", "object.npy"};
    for (size_t i = 0; i < 2; i++) {
        struct wml_npys a = {0};
        struct wml_err err = {0};
        char path[1024];
        snprintf(path, sizeof path, "%s/npy/%s", WML_TEST_DATA, names[i]);
        assert_false(wml_npy_load(path, &a, &err));
        assert_int_equal(err.code, WML_E_UNSUPPORTED);
        assert_non_null(strstr(err.hint, "astype"));
        assert_non_null(strstr(err.msg, names[i]));
    }
}

/* A header by hand. */
static void header(const char *dict, size_t n_data, bool ok)
{
    struct wml_buf b = {0};
    struct wml_npys a = {0};
    struct wml_err err = {0};
    size_t n = strlen(dict);
    wml_buf_add(&b, "\x93NUMPY\x01\x00", 8);
    wml_buf_char(&b, (char)(n & 255));
    wml_buf_char(&b, (char)(n >> 8));
    wml_buf_cstr(&b, dict);
    for (size_t i = 0; i < n_data; i++) wml_buf_char(&b, 1);
    if (wml_npy_parse((struct wml_span){(unsigned char *)b.ptr, b.len}, WML_STR("x"), &a, &err) != ok)
        fail_msg("%s: %s", dict, ok ? err.msg : "taken");
    if (!ok) assert_true(err.code == WML_E_FORMAT || err.code == WML_E_UNSUPPORTED);
    wml_npys_release(&a);
    wml_buf_release(&b);
}

static void test_headers(void **state)
{
    (void)state;
    header("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", 8, true);
    header("{\"shape\":(2,1),\"descr\":\"f4\",\"fortran_order\":False}", 8, true);
    header("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", 7, false);
    header("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", 8, false);
    header("{'descr': '<f4', 'fortran_order': False, 'shape': (2.0,), }", 8, false);
    header("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296,4294967296,4294967296), }", 8, false);
    header("{'descr': '<f8', 'fortran_order': False, 'shape': (2305843009213693952,), }", 8, false);
    header("{'descr': '<f4', 'fortran_order': False, 'shape': (0,9223372036854775807), }", 0, true);
    header("{'descr': '<f4', 'fortran_order': True, 'shape': (9223372036854775807,9,0), }", 0, false);
    header("{'descr': '<f4', 'fortran_order': True, 'shape': (9,0,9), }", 0, true);
    header("{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"
           "1,1,1), }", 4, false);
    header("{'descr': '<f4', 'fortran_order': Maybe, 'shape': (1,), }", 4, false);
    header("{'descr': '<f4', 'fortran_order': False}", 4, false);
    header("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", 4, false);
    header("{'descr': '<V4', 'fortran_order': False, 'shape': (1,), }", 4, false);
    header("{'descr': '', 'fortran_order': False, 'shape': (1,), }", 4, false);
    header("{'descr: '<f4', 'shape': (1", 4, false);
    header("{}", 4, false);
    header("", 4, false);
}

/* Every prefix and every flipped byte of real files: an error or a result, never a crash. */
static void damage(const char *name)
{
    struct wml_buf b = {0};
    struct wml_err err = {0};
    char path[1024];
    snprintf(path, sizeof path, "%s/npy/%s", WML_TEST_DATA, name);
    assert_true(wml_file_read(path, 0, &b, &err));
    bool zip = b.ptr[0] == 'P';
    for (size_t i = 0; i < 2 * b.len; i++) {
        struct wml_npys a = {0};
        size_t n = i < b.len ? i : b.len;
        unsigned char *copy = malloc(n + 1); /* exactly n: overreads are seen */
        copy = realloc(copy, n ? n : 1);
        memcpy(copy, b.ptr, n);
        if (i >= b.len) copy[i - b.len] ^= 0xff;
        struct wml_span s = {copy, n};
        err = (struct wml_err){0};
        bool ok = zip ? wml_npz_parse(s, &a, &err) : wml_npy_parse(s, WML_STR("x"), &a, &err);
        assert_true(ok || (err.code && err.msg[0]));
        if (i < b.len) assert_false(ok);
        wml_npys_release(&a);
        free(copy);
    }
    wml_buf_release(&b);
}

static void test_damage(void **state)
{
    (void)state;
    damage("stored.npz");
    damage("deflated.npz");
    damage("streamed.npz");
    damage("fortran.npy");
    damage("version2.npy");
}

/* The checksum finds what inflate cannot. */
static void test_checksum(void **state)
{
    (void)state;
    struct wml_buf b = {0};
    struct wml_npys a = {0};
    struct wml_err err = {0};
    assert_true(wml_file_read(WML_TEST_DATA "/npy/stored.npz", 0, &b, &err));
    b.ptr[200] ^= 1; /* an element of x */
    assert_false(wml_npz_parse((struct wml_span){(unsigned char *)b.ptr, b.len}, &a, &err));
    assert_non_null(strstr(err.msg, "checksum"));
    wml_npys_release(&a);
    wml_buf_release(&b);
}

static void test_bomb(void **state)
{
    (void)state;
    struct wml_buf b = {0};
    struct wml_npys a = {0};
    struct wml_err err = {0};
    assert_true(wml_file_read(WML_TEST_DATA "/npy/deflated.npz", 0, &b, &err));
    /* The first entry of the directory claims 4 GiB. */
    for (size_t i = 0; i + 46 < b.len; i++) {
        if (memcmp(b.ptr + i, "PK\1\2", 4) != 0) continue;
        memcpy(b.ptr + i + 24, "\xf0\xff\xff\xff", 4);
        break;
    }
    assert_false(wml_npz_parse((struct wml_span){(unsigned char *)b.ptr, b.len}, &a, &err));
    assert_non_null(strstr(err.msg, "claims"));
    wml_npys_release(&a);
    wml_buf_release(&b);
}

static void test_save(void **state)
{
    (void)state;
    static const float x[] = {1, 2, 3, 4, 5, 6};
    static const uint8_t y[] = {9};
    struct wml_npy array[] = {{WML_STR("x"), WML_F32, 2, {2, 3}, {(const unsigned char *)x, sizeof x}},
                              {WML_STR("d/y"), WML_U8, 0, {0}, {y, 1}},
                              {WML_STR("none"), WML_I64, 1, {0}, {NULL, 0}}};
    struct wml_buf dir = {0}, one = {0}, two = {0}, bytes[2] = {{0}, {0}};
    struct wml_npys a = {0};
    struct wml_err err = {0};
    assert_true(wml_dir_temp(NULL, "wml npy-", &dir, &err));
    wml_path_join(&one, wml_buf_view(&dir), WML_STR("a.npz"));
    wml_path_join(&two, wml_buf_view(&dir), WML_STR("b.npz"));
    assert_true(wml_npz_save(one.ptr, array, 3, &err) && wml_npz_save(two.ptr, array, 3, &err));
    assert_true(wml_file_read(one.ptr, 0, &bytes[0], &err) && wml_file_read(two.ptr, 0, &bytes[1], &err));
    assert_true(wml_str_eq(wml_buf_view(&bytes[0]), wml_buf_view(&bytes[1])));
    assert_true(wml_npy_load(one.ptr, &a, &err));
    assert_int_equal(a.v.len, 3);
    for (size_t i = 0; i < 6; i++) assert_true(at(find(&a, "x", WML_F32, 2), i) == x[i]);
    assert_true(at(find(&a, "d/y", WML_U8, 0), 0) == 9);
    assert_int_equal(find(&a, "none", WML_I64, 1)->dim[0], 0);
    wml_npys_release(&a);
    /* A folder of single arrays; what is no .npy is not looked at. */
    assert_true(wml_file_remove(one.ptr) && wml_file_remove(two.ptr));
    assert_false(wml_npy_load(dir.ptr, &a, &err));
    assert_int_equal(err.code, WML_E_NOT_FOUND);
    static const char *const names[] = {"x.npy", "y.npy", "notes.txt"};
    for (size_t i = 0; i < 3; i++) {
        wml_buf_clear(&one);
        wml_path_join(&one, wml_buf_view(&dir), wml_str(names[i]));
        if (i < 2) assert_true(wml_npy_save(one.ptr, &array[i], &err));
        else assert_true(wml_file_write(one.ptr, WML_STR("hello"), &err));
    }
    assert_true(wml_npy_load(dir.ptr, &a, &err));
    assert_true(a.v.len == 2 && wml_npys_find(&a, WML_STR("x")) && wml_npys_find(&a, WML_STR("y")));
    wml_npys_release(&a);
    assert_false(wml_npy_load(one.ptr, &a, &err));
    assert_non_null(strstr(err.msg, "notes.txt"));
    array[0].dtype = WML_BF16;
    assert_false(wml_npz_save(two.ptr, array, 1, &err) || wml_npy_save(two.ptr, array, &err));
    assert_int_equal(err.code, WML_E_UNSUPPORTED);
    assert_true(wml_dir_remove(dir.ptr));
    for (size_t i = 0; i < 2; i++) wml_buf_release(&bytes[i]);
    wml_buf_release(&dir);
    wml_buf_release(&one);
    wml_buf_release(&two);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stored),  cmocka_unit_test(test_deflated), cmocka_unit_test(test_orders),
        cmocka_unit_test(test_refused), cmocka_unit_test(test_headers),  cmocka_unit_test(test_damage),
        cmocka_unit_test(test_checksum), cmocka_unit_test(test_bomb),    cmocka_unit_test(test_save),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
