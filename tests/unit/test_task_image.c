/* Plans without files of their own: aimed at inputs, applied to a picture, over a folder. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "os/file.h"
#include "os/path.h"
#include "task/image.h"

static const int64_t dims_2x3[] = {1, 3, 2, 3};

static struct wml_image_plan plan_for(enum wml_dtype dtype, const int64_t *dim)
{
    struct wml_image_plan p;
    struct wml_err err = {0};
    struct wml_task_input in = {WML_STR("x"), dtype, dim, 4};
    wml_image_plan_init(&p);
    if (!wml_image_plan_aim(&p, &in, 1, NULL, &err)) fail_msg("%s", err.msg);
    return p;
}

/* 2 rows, 3 columns; every sample is its index. */
static struct wml_picture counting(void)
{
    struct wml_picture p;
    struct wml_err err = {0};
    assert_true(wml_picture_new(3, 2, &p, &err));
    for (unsigned char i = 0; i < 18; i++) p.rgb[i] = i;
    return p;
}

static struct wml_npys make(const struct wml_image_plan *plan, size_t n)
{
    struct wml_npys sample = {0};
    struct wml_err err = {0};
    struct wml_picture p = counting(), ready = {0};
    const struct wml_picture *one[4] = {&ready, &ready, &ready, &ready};
    if (!wml_image_prepare(plan, &p, &ready, &err)) fail_msg("%s", err.msg);
    if (!wml_image_make(plan, one, n, &sample, &err)) fail_msg("%s", err.msg);
    wml_picture_release(&p);
    wml_picture_release(&ready);
    assert_int_equal(sample.v.len, 1);
    assert_true(wml_str_is(sample.v.at[0].name, "x"));
    return sample;
}

static double value(const struct wml_npys *s, size_t i)
{
    return wml_dtype_load((int)s->v.at[0].dtype, s->v.at[0].data.ptr, i);
}

static void test_channels_first(void **state)
{
    (void)state;
    struct wml_image_plan p = plan_for(WML_F32, dims_2x3);
    struct wml_npys s = make(&p, 1);
    assert_memory_equal(s.v.at[0].dim, dims_2x3, sizeof dims_2x3);
    for (size_t c = 0, i = 0; c < 3; c++)
        for (size_t k = 0; k < 6; k++, i++) assert_true(value(&s, i) == (double)(float)((double)(k * 3 + c) / 255));
    wml_npys_release(&s);
}

static void test_channels_last_uint8(void **state)
{
    (void)state;
    const int64_t dim[] = {-1, 2, 3, 3};
    struct wml_image_plan p = plan_for(WML_U8, dim);
    struct wml_npys s = make(&p, 2);
    assert_int_equal(s.v.at[0].dim[0], 2);
    assert_int_equal(s.v.at[0].data.len, 36);
    for (size_t i = 0; i < 36; i++) assert_true(value(&s, i) == (double)(i % 18));
    wml_npys_release(&s);
}

static void test_steps(void **state)
{
    (void)state;
    struct wml_image_plan p = plan_for(WML_F32, dims_2x3);
    p.rescale_factor = 2;
    p.offset = p.normalize = p.flip_channels = true;
    for (int c = 0; c < 3; c++) p.mean[c] = c + 1, p.std[c] = 4;
    struct wml_npys s = make(&p, 1);
    for (size_t c = 0; c < 3; c++) /* blue comes first */
        for (size_t k = 0; k < 6; k++)
            assert_true(value(&s, (2 - c) * 6 + k) == ((double)(k * 3 + c) * 2 - 1 - (double)(c + 1)) / 4);
    wml_npys_release(&s);
}

static void test_grey(void **state)
{
    (void)state;
    const int64_t dim[] = {1, 1, 2, 3};
    struct wml_image_plan p = plan_for(WML_I8, dim);
    struct wml_npys s = make(&p, 1);
    assert_int_equal(s.v.at[0].data.len, 6);
    for (size_t k = 0; k < 6; k++) assert_true(value(&s, k) == (double)(k * 3 + 1) - 128); /* (299 R + 587 G + 114 B) / 1000 */
    wml_npys_release(&s);
}

static void test_pad(void **state)
{
    (void)state;
    struct wml_image_plan p = plan_for(WML_F32, dims_2x3);
    p.pad = true;
    p.pad_multiple = 4;
    struct wml_npys s = make(&p, 1);
    assert_true(s.v.at[0].dim[2] == 4 && s.v.at[0].dim[3] == 4);
    for (size_t i = 0; i < 4; i++) assert_true(value(&s, i) == 0 && value(&s, 12 + i) == 0); /* a row above, one below */
    assert_true(value(&s, 4 + 1) == (double)(float)(3.0 / 255) && value(&s, 4 + 3) == 0);
    wml_npys_release(&s);
    p.pad_multiple = 0;
    p.pad_height = 2;
    p.pad_width = 2;
    struct wml_picture picture = counting();
    const struct wml_picture *one = &picture;
    struct wml_err err = {0};
    assert_false(wml_image_make(&p, &one, 1, &s, &err));
    assert_non_null(strstr(err.msg, "does not fit"));
    wml_picture_release(&picture);
    wml_npys_release(&s);
}

static void test_batch_of_different_sizes(void **state)
{
    (void)state;
    const int64_t dim[] = {2, 3, -1, -1};
    struct wml_image_plan p = plan_for(WML_F32, dim);
    struct wml_picture a = counting(), b = counting();
    const struct wml_picture *both[] = {&a, &b};
    struct wml_npys s = {0};
    struct wml_err err = {0};
    assert_false(wml_image_make(&p, both, 1, &s, &err));
    assert_non_null(strstr(err.msg, "2 pictures at a time, not 1"));
    assert_true(wml_image_make(&p, both, 2, &s, &err));
    b.width = 2;
    b.height = 3;
    assert_false(wml_image_make(&p, both, 2, &s, &err));
    assert_non_null(strstr(err.msg, "2 x 3 and 3 x 2"));
    wml_picture_release(&a);
    wml_picture_release(&b);
    wml_npys_release(&s);
}

static void test_folder(void **state)
{
    (void)state;
    struct wml_buf dir = {0}, sub = {0};
    struct wml_err err = {0};
    struct wml_images l = {0};
    assert_true(wml_dir_temp(NULL, "images", &dir, &err));
    wml_path_join(&sub, wml_buf_view(&dir), WML_STR("Klasse ü"));
    assert_true(wml_dir_make(wml_buf_text(&sub), &err));
    assert_false(wml_images_list(wml_buf_text(&dir), &l, &err));
    assert_int_equal(err.code, WML_E_NOT_FOUND);
    wml_buf_cstr(&sub, "/a.PNG");
    assert_true(wml_file_write(wml_buf_text(&sub), WML_STR("no picture"), &err));
    assert_true(wml_images_list(wml_buf_text(&dir), &l, &err));
    assert_int_equal(l.path.len, 1);
    struct wml_image_plan p = plan_for(WML_F32, dims_2x3);
    struct wml_picture picture;
    const char *path;
    assert_false(wml_images_next(&l, &p, NULL, &picture, &path, &err));
    assert_non_null(strstr(err.msg, "no JPEG, PNG, BMP or GIF"));
    assert_non_null(strstr(err.msg, "a.PNG"));
    wml_images_release(&l);
    assert_true(wml_dir_remove(wml_buf_text(&dir)));
    wml_buf_release(&sub);
    wml_buf_release(&dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_channels_first), cmocka_unit_test(test_channels_last_uint8), cmocka_unit_test(test_steps),
        cmocka_unit_test(test_grey),           cmocka_unit_test(test_pad),                 cmocka_unit_test(test_batch_of_different_sizes),
        cmocka_unit_test(test_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
