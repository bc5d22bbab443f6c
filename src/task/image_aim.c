/* A plan meets a model: which input takes pictures, of which type, layout and size. */
#include "task/image_internal.h"

#include <inttypes.h>
#include <math.h>

static bool is_channels(int64_t n)
{
    return n == 3 || n == 1;
}

/* Float types, and 8-bit integers that take the pixels themselves. */
static bool takes_pixels(enum wml_dtype d)
{
    return d == WML_F32 || d == WML_F16 || d == WML_BF16 || d == WML_F64 || d == WML_U8 || d == WML_I8;
}

static bool looks_like_pictures(const struct wml_task_input *in)
{
    return in->rank == 4 && takes_pixels(in->dtype) && (is_channels(in->dim[1]) || is_channels(in->dim[3]));
}

static const struct wml_task_input *find_input(const struct wml_task_input *in, size_t n, struct wml_err *err)
{
    const struct wml_task_input *found = NULL;
    for (size_t i = 0; i < n; i++)
        if (wml_str_is(in[i].name, "pixel_values")) {
            if (in[i].rank == 4 && takes_pixels(in[i].dtype)) return &in[i];
            wml_fail(err, WML_E_UNSUPPORTED, "input 'pixel_values' is %s of %zu dimensions, which no picture has",
                     wml_dtype_name((int)in[i].dtype), in[i].rank);
            return NULL;
        }
    for (size_t i = 0; i < n; i++) {
        if (!looks_like_pictures(&in[i])) continue;
        if (found) {
            wml_fail(err, WML_E_UNSUPPORTED, "inputs '%.*s' and '%.*s' could both take pictures", WML_ARG(found->name), WML_ARG(in[i].name));
            wml_hint(err, "give prepared arrays (.npz) instead of pictures");
            return NULL;
        }
        found = &in[i];
    }
    if (found) return found;
    wml_fail(err, WML_E_UNSUPPORTED, "the model has no input for pictures");
    wml_hint(err, "such an input has 4 dimensions, of which one is 3 or 1 channels; give prepared arrays (.npz) for others");
    return NULL;
}

static const char *source(const struct wml_image_plan *p)
{
    return p->from_file ? "the preprocessor file" : "the default";
}

/* The crop keeps its share of what was resized. */
static void scale_crop(struct wml_image_plan *p, int64_t h, int64_t w)
{
    double ratio_h = (double)h / (double)p->crop_height, ratio_w = (double)w / (double)p->crop_width;
    bool alike = h * p->crop_width == w * p->crop_height; /* the form stays */
    if (p->fit == WML_FIT_SHORTEST && !alike) {
        /* The shorter edge would leave black bars at the sides of another form. */
        double share = (double)p->shortest / (double)WML_MIN(p->crop_height, p->crop_width);
        p->fit = WML_FIT_COVER;
        p->height = llround((double)h * share);
        p->width = llround((double)w * share);
    } else if (p->fit == WML_FIT_SHORTEST) {
        p->shortest = llround((double)p->shortest * ratio_h);
        p->longest = llround((double)p->longest * ratio_h);
    } else if (p->fit == WML_FIT_EXACT) {
        p->height = llround((double)p->height * ratio_h);
        p->width = llround((double)p->width * ratio_w);
    }
    p->crop_height = h;
    p->crop_width = w;
}

static void set_exact(struct wml_image_plan *p, int64_t h, int64_t w)
{
    p->resize = true;
    p->pad = false;
    p->fit = WML_FIT_EXACT;
    p->round = WML_ROUND_COMMON;
    p->multiple = 0;
    p->height = h;
    p->width = w;
}

static void say_size(const struct wml_image_plan *p, int64_t old_h, int64_t old_w, int64_t h, int64_t w, struct wml_ctx *cx)
{
    char was[64] = "sizes that vary";
    if (old_h) snprintf(was, sizeof was, "%" PRId64 " x %" PRId64, old_h, old_w);
    wml_log(cx, WML_LOG_WARN, "the model takes pictures of %" PRId64 " x %" PRId64 " (height x width), %s says %s: the model's size is used%s",
            h, w, source(p), was, p->crop ? ", resize and crop in proportion" : p->pad ? ", padded" : "");
}

/* Both edges of the model are fixed. */
static void take_size(struct wml_image_plan *p, int64_t h, int64_t w, struct wml_ctx *cx)
{
    int64_t old_h = 0, old_w = 0;
    if (!p->from_file) {
        set_exact(p, h, w);
        return;
    }
    if (wml_image_fixed_size(p, &old_h, &old_w) && old_h == h && old_w == w) return;
    if (p->crop && !p->pad_height) {
        scale_crop(p, h, w);
    } else if (p->pad && p->pad_height && p->resize && p->fit == WML_FIT_LONGEST) {
        if (h != w || p->pad_height != p->pad_width) {
            p->fit = WML_FIT_INSIDE;
            p->height = h;
            p->width = w;
        } else {
            p->longest = llround((double)p->longest * (double)h / (double)p->pad_height);
        }
        p->pad_height = h;
        p->pad_width = w;
    } else {
        p->crop = false;
        set_exact(p, h, w);
    }
    say_size(p, old_h, old_w, h, w, cx);
}

/* At most one edge is fixed; the other follows the file, else the picture. */
static void take_edge(struct wml_image_plan *p, int64_t h, int64_t w, struct wml_ctx *cx)
{
    int64_t old_h = 0, old_w = 0;
    bool fixed = p->from_file && wml_image_fixed_size(p, &old_h, &old_w);
    if (h < 0 && w < 0) {
        if (p->from_file) return;
        set_exact(p, 224, 224);
        wml_log(cx, WML_LOG_WARN, "the model takes pictures of any size and there is no preprocessor file: 224 x 224 is used");
    } else if (fixed) {
        take_size(p, h > 0 ? h : old_h, w > 0 ? w : old_w, cx);
    } else {
        p->crop = false;
        set_exact(p, h > 0 ? h : 0, w > 0 ? w : 0);
        wml_log(cx, WML_LOG_WARN, "the model fixes the %s of pictures to %" PRId64 ": the other edge follows in proportion",
                h > 0 ? "height" : "width", h > 0 ? h : w);
    }
}

static void take_type(struct wml_image_plan *p, enum wml_dtype d, struct wml_ctx *cx)
{
    p->dtype = d;
    if (d != WML_U8 && d != WML_I8) return;
    p->rescale = p->normalize = p->twice = false;
    wml_log(cx, WML_LOG_INFO, "the model takes %s pictures: pixels are given as they are%s, not rescaled or normalised",
            wml_dtype_name((int)d), d == WML_I8 ? " minus 128" : "");
}

static bool find_mask(struct wml_image_plan *p, const struct wml_task_input *in, size_t n, struct wml_err *err)
{
    for (size_t i = 0; i < n; i++) {
        if (!wml_str_is(in[i].name, "pixel_mask")) continue;
        enum wml_dclass c = wml_dtype_info((int)in[i].dtype)->cls;
        if (in[i].rank != 3 || (c != WML_CLASS_INT && c != WML_CLASS_UINT && c != WML_CLASS_BOOL && c != WML_CLASS_FLOAT))
            return wml_fail(err, WML_E_UNSUPPORTED, "input 'pixel_mask' is %s of %zu dimensions: [batch, height, width] is wanted",
                            wml_dtype_name((int)in[i].dtype), in[i].rank);
        p->mask = in[i].name;
        p->mask_dtype = in[i].dtype;
    }
    return true;
}

bool wml_image_plan_aim(struct wml_image_plan *p, const struct wml_task_input *in, size_t n, struct wml_ctx *cx,
                        struct wml_err *err)
{
    const struct wml_task_input *x = find_input(in, n, err);
    if (!x || !find_mask(p, in, n, err)) return false;
    p->input = x->name;
    p->batch = x->dim[0];
    p->channels_last = !is_channels(x->dim[1]) && is_channels(x->dim[3]);
    int64_t channels = x->dim[p->channels_last ? 3 : 1], h = x->dim[p->channels_last ? 1 : 2], w = x->dim[p->channels_last ? 2 : 3];
    p->channels = channels < 0 ? 3 : channels;
    if (!is_channels(p->channels))
        return wml_fail(err, WML_E_UNSUPPORTED, "input '%.*s' takes %" PRId64 " channels: pictures have 3, or 1 as grey", WML_ARG(x->name), channels);
    if (h == 0 || w == 0 || h > WML_EDGE_MAX || w > WML_EDGE_MAX || p->batch == 0)
        return wml_fail(err, WML_E_UNSUPPORTED, "input '%.*s' takes pictures of %" PRId64 " x %" PRId64 ", %" PRId64 " at a time",
                        WML_ARG(x->name), h, w, p->batch);
    take_type(p, x->dtype, cx);
    if (h > 0 && w > 0) take_size(p, h, w, cx);
    else take_edge(p, h, w, cx);
    if (!p->from_file)
        wml_log(cx, WML_LOG_WARN, "no preprocessor file: pictures are resized to the model's size%s%s", p->rescale ? ", values from 0 to 1" : "",
                p->rescale && !p->normalize ? ", without mean and deviation" : "");
    return true;
}

static void text_resize(const struct wml_image_plan *p, struct wml_buf *out)
{
    static const char *const filters[] = {"nearest", "lanczos", "bilinear", "bicubic", "box", "hamming"};
    if (p->fit == WML_FIT_MULTIPLE) wml_buf_fmt(out, "resize to multiples of %" PRId64 " (", p->multiple);
    else if (p->fit == WML_FIT_SHORTEST) wml_buf_fmt(out, "resize to %" PRId64 " (shorter edge, ", p->shortest);
    else if (p->fit == WML_FIT_LONGEST) wml_buf_fmt(out, "resize to %" PRId64 " (longer edge, ", p->longest);
    else if (!p->width) wml_buf_fmt(out, "resize to height %" PRId64 " (in proportion, ", p->height);
    else if (!p->height) wml_buf_fmt(out, "resize to width %" PRId64 " (in proportion, ", p->width);
    else {
        wml_buf_fmt(out, "resize to %" PRId64 " x %" PRId64 " (", p->height, p->width);
        if (p->fit != WML_FIT_EXACT)
            wml_buf_cstr(out, p->fit == WML_FIT_INSIDE ? "inside, " : p->fit == WML_FIT_COVER ? "covering, " : "in proportion, ");
    }
    wml_buf_fmt(out, "%s)", filters[p->resample]);
}

void wml_image_plan_text(const struct wml_image_plan *p, struct wml_buf *out)
{
    wml_buf_cstr(out, p->channels == 1 ? "grey" : "RGB");
    if (p->resize) {
        wml_buf_cstr(out, ", ");
        text_resize(p, out);
    }
    if (p->crop) wml_buf_fmt(out, ", crop to %" PRId64 " x %" PRId64, p->crop_height, p->crop_width);
    if (p->rescale && p->rescale_factor == 1.0 / 255 && !p->offset) wml_buf_cstr(out, ", 0..1");
    else if (p->rescale) wml_buf_fmt(out, ", times %g%s", p->rescale_factor, p->offset ? " minus 1" : "");
    if (p->normalize) wml_buf_cstr(out, ", mean and std");
    if (p->twice) wml_buf_cstr(out, ", std again");
    if (p->flip_channels) wml_buf_cstr(out, ", BGR");
    if (p->pad && p->pad_height) wml_buf_fmt(out, ", pad to %" PRId64 " x %" PRId64, p->pad_height, p->pad_width);
    if (p->pad && p->pad_multiple > 1) wml_buf_fmt(out, ", pad to multiples of %" PRId64, p->pad_multiple);
}
