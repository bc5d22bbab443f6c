/* Pictures: decoded from bytes written here, turned, cropped, resized. What Pillow says is compared in tests/parity. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "task/picture.h"

/* An uncompressed BMP of 24 bits, rows from the top; 2 x 3 pixels whose red counts from 1. */
static const unsigned char bmp[] = {
    'B', 'M', 78, 0, 0, 0, 0, 0, 0, 0, 54, 0, 0, 0, 40, 0, 0, 0, 2, 0, 0, 0, 0xfd, 0xff, 0xff, 0xff, 1, 0, 24, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    30, 20, 1, 30, 20, 2, 0, 0, 30, 20, 3, 30, 20, 4, 0, 0, 30, 20, 5, 30, 20, 6, 0, 0};

static struct wml_picture load(void)
{
    struct wml_picture p;
    struct wml_err err = {0};
    if (!wml_picture_decode((struct wml_span){bmp, sizeof bmp}, &p, &err)) fail_msg("%s", err.msg);
    return p;
}

static void reds_are(const struct wml_picture *p, size_t width, size_t height, const char *digits)
{
    assert_int_equal(p->width, width);
    assert_int_equal(p->height, height);
    for (size_t i = 0; i < width * height; i++) assert_int_equal(p->rgb[i * 3], digits[i] - '0');
}

static void test_decode(void **state)
{
    (void)state;
    struct wml_picture p = load();
    reds_are(&p, 2, 3, "123456");
    assert_int_equal(p.rgb[1], 20);
    assert_int_equal(p.rgb[2], 30);
    wml_picture_release(&p);
    wml_picture_release(&p);
    assert_null(p.rgb);
}

static void test_cut(void **state)
{
    (void)state;
    for (size_t n = 0; n < sizeof bmp; n++) {
        struct wml_picture p;
        struct wml_err err = {0};
        assert_false(wml_picture_decode((struct wml_span){bmp, n}, &p, &err));
        assert_true(err.code == WML_E_FORMAT || err.code == WML_E_UNSUPPORTED);
        assert_null(p.rgb);
    }
}

static void test_turn(void **state)
{
    (void)state;
    static const struct { size_t width, height; const char *reds; } want[] = {
        {2, 3, "123456"}, {2, 3, "123456"}, {2, 3, "214365"}, {2, 3, "654321"}, {2, 3, "563412"},
        {3, 2, "135246"}, {3, 2, "531642"}, {3, 2, "642531"}, {3, 2, "246135"}, {2, 3, "123456"}};
    for (unsigned i = 0; i < WML_COUNT(want); i++) {
        struct wml_picture p = load();
        struct wml_err err = {0};
        assert_true(wml_picture_turn(&p, i, &err));
        reds_are(&p, want[i].width, want[i].height, want[i].reds);
        wml_picture_release(&p);
    }
}

static void test_crop(void **state)
{
    (void)state;
    static const struct { size_t width, height; const char *reds; } want[] = {
        {1, 1, "3"}, {2, 1, "34"}, {1, 2, "13"}, {2, 3, "123456"}, {3, 3, "012034056"}, {4, 1, "0340"}, {1, 5, "01350"}};
    for (size_t i = 0; i < WML_COUNT(want); i++) {
        struct wml_picture p = load(), to;
        struct wml_err err = {0};
        assert_true(wml_picture_crop(&p, want[i].width, want[i].height, &to, &err));
        reds_are(&to, want[i].width, want[i].height, want[i].reds);
        wml_picture_release(&p);
        wml_picture_release(&to);
    }
}

/* One colour stays that colour: the weights of every filter sum to 1 in their 22 bits, at the edges too. */
static void test_flat(void **state)
{
    (void)state;
    struct wml_err err = {0};
    struct wml_picture p, to;
    assert_true(wml_picture_new(37, 29, &p, &err));
    for (int how = WML_NEAREST; how <= WML_HAMMING; how++)
        for (size_t size = 1; size < 120; size += 7) {
            for (size_t i = 0; i < 37 * 29; i++) {
                static const unsigned char pixel[] = {255, 1, 128};
                memcpy(p.rgb + i * 3, pixel, 3);
            }
            assert_true(wml_picture_resize(&p, size, 121 - size, (enum wml_resample)how, &to, &err));
            for (size_t i = 0; i < size * (121 - size); i++)
                assert_true(to.rgb[i * 3] == 255 && to.rgb[i * 3 + 1] == 1 && to.rgb[i * 3 + 2] == 128);
            wml_picture_release(&to);
        }
    wml_picture_release(&p);
}

static void test_resize(void **state)
{
    (void)state;
    struct wml_err err = {0};
    struct wml_picture p = load(), to;
    assert_true(wml_picture_resize(&p, 1, 3, WML_BOX, &to, &err)); /* 1.5, 3.5, 5.5 rounded up */
    reds_are(&to, 1, 3, "246");
    wml_picture_release(&to);
    assert_true(wml_picture_resize(&p, 2, 1, WML_BOX, &to, &err)); /* means of a column */
    reds_are(&to, 2, 1, "34");
    wml_picture_release(&to);
    assert_true(wml_picture_resize(&p, 4, 3, WML_NEAREST, &to, &err));
    reds_are(&to, 4, 3, "112233445566");
    wml_picture_release(&to);
    assert_true(wml_picture_resize(&p, 2, 3, WML_LANCZOS, &to, &err));
    assert_ptr_not_equal(to.rgb, p.rgb);
    reds_are(&to, 2, 3, "123456");
    wml_picture_release(&to);
    assert_false(wml_picture_resize(&p, 0, 3, WML_BOX, &to, &err));
    assert_false(wml_picture_resize(&p, SIZE_MAX, SIZE_MAX, WML_BOX, &to, &err));
    assert_int_equal(err.code, WML_E_UNSUPPORTED);
    wml_picture_release(&p);
}

/* Kinds of JPEG that are not decoded are named before anything is. */
static void test_jpeg_kinds(void **state)
{
    (void)state;
    static const struct { unsigned char marker, bits; const char *why; } want[] = {
        {0xc9, 8, "arithmetically"}, {0xc3, 8, "lossless"}, {0xc5, 8, "layers"}, {0xc1, 12, "12 bits"}};
    for (size_t i = 0; i < WML_COUNT(want); i++) {
        const unsigned char file[] = {0xff, 0xd8, 0xff, 0xe0, 0, 4, 0, 0, 0xff, want[i].marker, 0, 11, want[i].bits,
                                      0, 8, 0, 8, 1, 1, 0x11, 0, 0xff, 0xda, 0, 8, 1, 1, 0, 0, 63, 0, 0xff, 0xd9};
        struct wml_picture p;
        struct wml_err err = {0};
        assert_false(wml_picture_decode((struct wml_span){file, sizeof file}, &p, &err));
        if (!strstr(err.msg, want[i].why)) fail_msg("%s", err.msg);
        assert_true(err.hint[0]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_decode), cmocka_unit_test(test_cut),    cmocka_unit_test(test_turn),       cmocka_unit_test(test_crop),
        cmocka_unit_test(test_flat),   cmocka_unit_test(test_resize), cmocka_unit_test(test_jpeg_kinds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
