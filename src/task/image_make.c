/* Pictures through a plan into arrays. Pixels have 8 bits until the end, so rescaling, normalising and the model's type are
 * one table of 256 elements per channel, made with the arithmetic of numpy: scaled in double, the rest in float32. */
#include "task/image_internal.h"

#include <inttypes.h>
#include <math.h>

struct batch {
    const struct wml_picture *const *ready; /* n */
    size_t n, height, width;   /* with padding */
    size_t top, left;          /* where the picture begins in it */
};

/* Grey in all three channels, as Pillow weighs them: ITU-R 601-2 in 16-bit fractions. */
static void make_grey(struct wml_picture *p)
{
    unsigned char *at = p->rgb;
    for (size_t i = p->width * p->height; i; i--, at += 3)
        at[0] = at[1] = at[2] = (unsigned char)((at[0] * 19595u + at[1] * 38470u + at[2] * 7471u + 0x8000u) >> 16);
}

bool wml_image_prepare(const struct wml_image_plan *p, const struct wml_picture *in, struct wml_picture *out, struct wml_err *err)
{
    struct wml_picture sized = {0};
    size_t w = in->width, h = in->height;
    if (p->resize) wml_image_resized(p, in->width, in->height, &w, &h);
    bool ok;
    if (p->channels == 1) { /* grey first: resizing rounds */
        struct wml_picture grey = {0};
        ok = wml_picture_new(in->width, in->height, &grey, err);
        if (ok) {
            memcpy(grey.rgb, in->rgb, in->width * in->height * 3);
            make_grey(&grey);
            ok = wml_picture_resize(&grey, w, h, p->resample, &sized, err);
        }
        wml_picture_release(&grey);
    } else {
        ok = wml_picture_resize(in, w, h, p->resample, &sized, err);
    }
    if (!ok) return false;
    if (!p->crop) {
        *out = sized;
        return true;
    }
    ok = wml_picture_crop(&sized, (size_t)p->crop_width, (size_t)p->crop_height, out, err);
    wml_picture_release(&sized);
    return ok;
}

/* What a channel's 256 values become. */
static void make_values(const struct wml_image_plan *p, size_t channel, float value[256])
{
    float mean = (float)p->mean[channel], std = (float)p->std[channel];
    for (int i = 0; i < 256; i++) {
        float v = p->rescale ? (float)((double)i * p->rescale_factor) : (float)i;
        if (p->rescale && p->offset) v -= 1;
        if (p->normalize) v = (v - mean) / std;
        if (p->twice) v /= std;
        value[i] = p->dtype == WML_I8 ? v - 128 : v;
    }
}

struct layout {
    size_t element, row, column, channel; /* bytes: of an element, and from one row, column, channel to the next */
};

/* One channel of one picture; `from` is its first sample, `to` where that goes. */
static void put_channel(const unsigned char *from, const struct wml_picture *in, const unsigned char *table,
                        const struct layout *l, unsigned char *to)
{
    for (size_t y = 0; y < in->height; y++, to += l->row) {
        unsigned char *at = to;
        for (size_t x = 0; x < in->width; x++, from += 3, at += l->column)
            switch (l->element) {
            case 1: *at = table[*from]; break;
            case 2: memcpy(at, table + *from * 2u, 2); break;
            case 4: memcpy(at, table + *from * 4u, 4); break;
            default: memcpy(at, table + *from * 8u, 8); break;
            }
    }
}

static void put_values(const struct wml_image_plan *p, const struct batch *b, unsigned char *to)
{
    unsigned char table[256 * 8];
    float value[256];
    size_t channels = (size_t)p->channels, size = wml_dtype_info((int)p->dtype)->bits / 8;
    struct layout l = {.element = size};
    l.column = p->channels_last ? size * channels : size;
    l.row = l.column * b->width;
    l.channel = p->channels_last ? size : l.row * b->height;
    for (size_t c = 0; c < channels; c++) {
        size_t place = p->flip_channels && channels == 3 ? 2 - c : c;
        make_values(p, c, value);
        for (size_t i = 0; i < 256; i++) wml_dtype_store((int)p->dtype, table, i, (double)value[i]);
        for (size_t k = 0; k < b->n; k++)
            put_channel(b->ready[k]->rgb + c, b->ready[k], table, &l,
                        to + k * size * channels * b->height * b->width + place * l.channel + b->top * l.row + b->left * l.column);
    }
}

static void put_mask(const struct wml_image_plan *p, const struct batch *b, void *to)
{
    for (size_t k = 0; k < b->n; k++)
        for (size_t y = 0; y < b->ready[k]->height; y++)
            for (size_t x = 0; x < b->ready[k]->width; x++)
                wml_dtype_store((int)p->mask_dtype, to, (k * b->height + b->top + y) * b->width + b->left + x, 1);
}

/* Size of all pictures of the batch with padding. */
static bool measure(const struct wml_image_plan *p, struct batch *b, struct wml_err *err)
{
    size_t w = b->ready[0]->width, h = b->ready[0]->height, m = (size_t)p->pad_multiple;
    for (size_t k = 1; k < b->n; k++)
        if (b->ready[k]->width != w || b->ready[k]->height != h) {
            wml_fail(err, WML_E_UNSUPPORTED, "pictures of one batch come out in %zu x %zu and %zu x %zu", h, w, b->ready[k]->height,
                     b->ready[k]->width);
            return wml_hint(err, "fix the height and width of the model's input, or its batch to 1");
        }
    b->width = w;
    b->height = h;
    if (p->pad && p->pad_height) {
        if (h > (size_t)p->pad_height || w > (size_t)p->pad_width)
            return wml_fail(err, WML_E_UNSUPPORTED, "a picture of %zu x %zu does not fit into the padded size %" PRId64 " x %" PRId64, h, w,
                            p->pad_height, p->pad_width);
        b->height = (size_t)p->pad_height;
        b->width = (size_t)p->pad_width;
    }
    if (p->pad && m > 1) {
        b->height = (h + m - 1) / m * m;
        b->width = (w + m - 1) / m * m;
        b->top = (b->height - h) / 2;
        b->left = (b->width - w) / 2;
    }
    return true;
}

static bool make(const struct wml_image_plan *p, struct batch *b, struct wml_npys *sample, struct wml_err *err)
{
    int64_t n = (int64_t)b->n, h = (int64_t)b->height, w = (int64_t)b->width, c = p->channels;
    int64_t first[4] = {n, c, h, w}, last[4] = {n, h, w, c}, mask[3] = {n, h, w};
    void *to = wml_sample_add(sample, p->input, p->dtype, p->channels_last ? last : first, 4, err);
    if (!to) return false;
    put_values(p, b, to);
    if (!p->mask.ptr) return true;
    to = wml_sample_add(sample, p->mask, p->mask_dtype, mask, 3, err);
    if (to) put_mask(p, b, to);
    return to != NULL;
}

bool wml_image_make(const struct wml_image_plan *p, const struct wml_picture *const *prepared, size_t n,
                    struct wml_npys *sample, struct wml_err *err)
{
    struct batch b = {.ready = prepared, .n = n};
    if (!n || (p->batch > 0 && (size_t)p->batch != n))
        return wml_fail(err, WML_E_UNSUPPORTED, "the model takes %" PRId64 " pictures at a time, not %zu", p->batch, n);
    return measure(p, &b, err) && make(p, &b, sample, err);
}
