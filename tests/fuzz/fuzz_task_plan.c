/* preprocessor_config.json from any bytes: what is taken fits a model, and makes an array of the size that it says. */
#include <stddef.h>
#include <stdint.h>

#include "task/image_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void aim(const struct wml_image_plan *plan, int64_t h, int64_t w)
{
    struct wml_image_plan p = *plan;
    struct wml_err err = {0};
    int64_t dim[] = {1, 3, h, w}, mask[] = {1, h, w}, fixed_h, fixed_w;
    struct wml_task_input in[] = {{WML_STR("pixel_values"), WML_F32, dim, 4}, {WML_STR("pixel_mask"), WML_I64, mask, 3}};
    if (!wml_image_plan_aim(&p, in, 2, NULL, &err)) abort();
    bool fixed = wml_image_fixed_size(&p, &fixed_h, &fixed_w);
    if (h > 0 && (!fixed || fixed_h != h || fixed_w != w)) abort();
    struct wml_picture picture = {0};
    if (!wml_picture_new(13, 9, &picture, &err)) abort();
    memset(picture.rgb, 77, 13 * 9 * 3);
    size_t to_w = 13, to_h = 9;
    if (p.resize) wml_image_resized(&p, 13, 9, &to_w, &to_h);
    bool small = to_w < 2000 && to_h < 2000 && (!fixed || (fixed_h < 2000 && fixed_w < 2000)) && p.pad_multiple < 2000;
    struct wml_picture ready = {0};
    const struct wml_picture *one = &ready;
    struct wml_npys sample = {0};
    if (small && wml_image_prepare(&p, &picture, &ready, &err) && wml_image_make(&p, &one, 1, &sample, &err)) {
        if (sample.v.len != 2) abort();
        if (h > 0 && (sample.v.at[0].dim[2] != h || sample.v.at[0].dim[3] != w)) abort();
    } else if (small && (!err.code || !err.msg[0])) {
        abort();
    }
    wml_npys_release(&sample);
    wml_picture_release(&ready);
    wml_picture_release(&picture);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wml_image_plan p;
    struct wml_buf text = {0};
    struct wml_err err = {0};
    if (!wml_image_plan_parse((struct wml_str){(const char *)data, size}, &p, NULL, &err)) {
        if (!err.code || !err.msg[0]) abort();
        return 0;
    }
    aim(&p, -1, -1);
    aim(&p, 24, 40);
    aim(&p, 32, 32);
    wml_image_plan_text(&p, &text);
    if (!text.len) abort();
    wml_buf_release(&text);
    return 0;
}
