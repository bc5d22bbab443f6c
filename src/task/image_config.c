/* preprocessor_config.json to a plan: the type's defaults, then the file's members over them, then what the type makes of
 * their combination. Members that no step needs are left alone; those of a wrong type are errors, since a default in their
 * place would give other pictures in silence. */
#include "task/image_internal.h"

#include "os/file.h"
#include "text/json.h"

void wml_image_plan_init(struct wml_image_plan *p)
{
    *p = (struct wml_image_plan){.resize = true, .rescale = true, .resample = WML_BILINEAR, .rescale_factor = 1.0 / 255,
                                 .std = {1, 1, 1}, .batch = -1, .channels = 3};
}

static bool wrong(const char *key, const char *want, struct wml_err *err)
{
    return wml_fail(err, WML_E_FORMAT, "'%s': %s is wanted", key, want);
}

/* A member that is there and not null. */
static const struct wml_json_val *member(const struct wml_json_val *o, const char *key)
{
    const struct wml_json_val *v = wml_json_get(o, key);
    return wml_json_is_null(v) ? NULL : v;
}

static bool get_flag(const struct wml_json_val *o, const char *key, bool *out, struct wml_err *err)
{
    const struct wml_json_val *v = member(o, key);
    if (v && !wml_json_is_bool(v)) return wrong(key, "true or false", err);
    *out = wml_json_bool(v, *out);
    return true;
}

static bool get_edge(const struct wml_json_val *v, const char *key, int64_t *out, struct wml_err *err)
{
    int64_t n = wml_json_int(v, 0);
    if (n < 1 || n > WML_EDGE_MAX) return wrong(key, "a whole number of pixels, 1 to 65535,", err);
    *out = n;
    return true;
}

static bool edge_member(const struct wml_json_val *o, const char *key, int64_t *out, struct wml_err *err)
{
    const struct wml_json_val *v = key ? member(o, key) : NULL;
    return v ? get_edge(v, key, out, err) : true;
}

/* As before, or 0: none. */
static bool multiple_member(const struct wml_json_val *o, const char *key, int64_t *out, struct wml_err *err)
{
    if (!key || !member(o, key) || wml_json_int(member(o, key), 1) != 0) return edge_member(o, key, out, err);
    *out = 0;
    return true;
}

static bool get_number(const struct wml_json_val *o, const char *key, double *out, struct wml_err *err)
{
    const struct wml_json_val *v = member(o, key);
    if (v && !wml_json_is_number(v)) return wrong(key, "a number", err);
    *out = wml_json_num(v, *out);
    return true;
}

/* One number for all channels, or a list of one or three. */
static bool get_channels(const struct wml_json_val *o, const char *key, bool divisor, double out[3], struct wml_err *err)
{
    const struct wml_json_val *v = member(o, key);
    if (!v) return true;
    size_t n = wml_json_is_array(v) ? wml_json_len(v) : 0;
    if (n != 1 && n != 3 && !wml_json_is_number(v)) return wrong(key, "a number, or a list of 1 or 3,", err);
    for (size_t i = 0; i < 3; i++) {
        const struct wml_json_val *x = n ? wml_json_at(v, n == 1 ? 0 : i) : v;
        if (!wml_json_is_number(x)) return wrong(key, "a list of numbers", err);
        out[i] = wml_json_num(x, 0);
        if (divisor && out[i] == 0) return wrong(key, "a number other than 0", err);
    }
    return true;
}

/* Two edges, height first: a number for both, a list of two, or an object. */
static bool get_rectangle(const struct wml_json_val *o, const char *key, int64_t *height, int64_t *width, struct wml_err *err)
{
    const struct wml_json_val *v = member(o, key), *h = v, *w = v;
    if (!v) return true;
    if (wml_json_is_array(v)) {
        if (wml_json_len(v) != 2) return wrong(key, "a list of height and width", err);
        h = wml_json_at(v, 0);
        w = wml_json_at(v, 1);
    } else if (wml_json_is_object(v)) {
        h = wml_json_get(v, "height");
        w = wml_json_get(v, "width");
        if (!h && !w) h = w = wml_json_get(v, "shortest_edge");
    }
    return get_edge(h, key, height, err) && get_edge(w, key, width, err);
}

/* The members of an object that give a size; each pair decides how the picture is fitted. */
static bool size_object(const struct wml_json_val *v, struct wml_image_plan *p, struct wml_err *err)
{
    bool nearer = p->fit == WML_FIT_NEARER;
    p->longest = 0;
    if (member(v, "height") || member(v, "width")) {
        p->fit = nearer ? WML_FIT_NEARER : WML_FIT_EXACT;
        return get_edge(wml_json_get(v, "height"), "size", &p->height, err) &&
               get_edge(wml_json_get(v, "width"), "size", &p->width, err);
    }
    if (member(v, "shortest_edge")) {
        p->fit = WML_FIT_SHORTEST;
        return edge_member(v, "shortest_edge", &p->shortest, err) && edge_member(v, "longest_edge", &p->longest, err);
    }
    if (member(v, "longest_edge")) {
        p->fit = WML_FIT_LONGEST;
        return edge_member(v, "longest_edge", &p->longest, err);
    }
    if (member(v, "max_height") && member(v, "max_width")) {
        p->fit = WML_FIT_INSIDE;
        return edge_member(v, "max_height", &p->height, err) && edge_member(v, "max_width", &p->width, err);
    }
    return wrong("size", "height and width, shortest_edge, longest_edge, or max_height and max_width", err);
}

static bool get_size(const struct wml_json_val *o, const struct wml_image_type *t, struct wml_image_plan *p, struct wml_err *err)
{
    const struct wml_json_val *v = member(o, "size");
    if (!v || (t && t->fit == WML_FIT_MULTIPLE)) return true;
    if (!t) p->resize = true;
    if (wml_json_is_object(v)) return size_object(v, p, err);
    if (wml_json_is_array(v) || (t ? t->fit == WML_FIT_EXACT : true)) {
        if (p->fit != WML_FIT_NEARER) p->fit = WML_FIT_EXACT;
        return get_rectangle(o, "size", &p->height, &p->width, err);
    }
    /* Older files: the shorter edge, and beside it the limit of the longer one. */
    p->fit = t->fit;
    return get_edge(v, "size", t->fit == WML_FIT_LONGEST ? &p->longest : &p->shortest, err) &&
           edge_member(o, "max_size", &p->longest, err);
}

static bool get_resample(const struct wml_json_val *o, struct wml_image_plan *p, struct wml_err *err)
{
    static const char *const names[] = {"nearest", "lanczos", "bilinear", "bicubic", "box", "hamming"};
    const struct wml_json_val *v = member(o, "resample");
    if (!v) return true;
    int64_t n = wml_json_int(v, -1);
    struct wml_str s = wml_json_str(v);
    if (s.ptr) s = wml_str_sub(s, wml_str_rfind(s, '.') + 1, s.len); /* "PILImageResampling.BICUBIC"; no dot: SIZE_MAX + 1 */
    for (size_t i = 0; s.ptr && i < WML_COUNT(names); i++)
        if (wml_str_ieq(s, wml_str(names[i]))) n = (int64_t)i;
    if (n < 0 || n >= (int64_t)WML_COUNT(names)) return wrong("resample", "a filter of Pillow, 0 to 5 or its name,", err);
    p->resample = (enum wml_resample)n;
    return true;
}

static bool get_members(const struct wml_json_val *o, const struct wml_image_type *t, struct wml_image_plan *p, struct wml_err *err)
{
    bool keep = false, crop_named = member(o, "do_center_crop"), ok;
    if (!t) { /* a file without a known type: what it speaks of is done */
        p->normalize = member(o, "image_mean") != NULL;
        p->crop = member(o, "crop_size") != NULL;
    }
    ok = get_flag(o, "keep_aspect_ratio", &keep, err);
    if (keep && t && t->round == WML_ROUND_DEPTH) p->fit = WML_FIT_NEARER;
    ok = ok && get_size(o, t, p, err) && get_flag(o, "do_resize", &p->resize, err) && get_resample(o, p, err) &&
         get_flag(o, "do_center_crop", &p->crop, err) && get_rectangle(o, "crop_size", &p->crop_height, &p->crop_width, err) &&
         get_flag(o, "do_rescale", &p->rescale, err) && get_number(o, "rescale_factor", &p->rescale_factor, err) &&
         get_flag(o, "do_normalize", &p->normalize, err) && get_channels(o, "image_mean", false, p->mean, err) &&
         get_channels(o, "image_std", true, p->std, err) && get_flag(o, "do_flip_channel_order", &p->flip_channels, err) &&
         get_flag(o, "pad_and_return_pixel_mask", &p->pad, err) && get_flag(o, "do_pad", &p->pad, err) &&
         get_rectangle(o, "pad_size", &p->pad_height, &p->pad_width, err);
    if (!ok) return false;
    if (p->crop && !p->crop_height && crop_named) return wrong("crop_size", "a size, since do_center_crop is true,", err);
    return !t || (multiple_member(o, t->multiple_key, &p->multiple, err) && multiple_member(o, t->pad_key, &p->pad_multiple, err));
}

/* ConvNext and those like it: a share of the picture is kept by resizing to more and cropping. */
static bool crop_rule(const struct wml_json_val *o, const struct wml_image_type *t, struct wml_image_plan *p, struct wml_err *err)
{
    double share = t->crop_share;
    if (!get_number(o, "crop_pct", &share, err)) return false;
    if (share <= 0 || share > 1) return wrong("crop_pct", "a share above 0, up to 1,", err);
    if (t->crop_rule == WML_CROP_SHORTEST && p->fit == WML_FIT_EXACT && p->height == p->width) {
        p->fit = WML_FIT_SHORTEST;
        p->shortest = p->height;
    }
    if (p->fit != WML_FIT_SHORTEST) {
        p->height = (int64_t)((double)p->height / share);
        p->width = (int64_t)((double)p->width / share);
        return true;
    }
    int64_t size = p->shortest;
    p->shortest = (int64_t)((double)size / share);
    if (t->crop_rule != WML_CROP_BELOW_384) return true;
    p->crop = p->resize && size < 384;
    p->crop_height = p->crop_width = size;
    if (size < 384) return true;
    p->fit = WML_FIT_EXACT;
    p->height = p->width = size;
    return true;
}

static bool combine(const struct wml_json_val *o, const struct wml_image_type *t, struct wml_image_plan *p, struct wml_err *err)
{
    if (!t) return true;
    if (t->crop_rule == WML_CROP_256_OF_224 && p->fit == WML_FIT_SHORTEST)
        p->shortest = (int64_t)(256.0 / 224 * (double)p->shortest);
    if ((t->crop_rule == WML_CROP_SHORTEST || t->crop_rule == WML_CROP_BELOW_384) && !crop_rule(o, t, p, err)) return false;
    bool limited = t->longest || t->fit == WML_FIT_LONGEST;
    if (p->fit == WML_FIT_SHORTEST && !limited) p->longest = 0; /* such a member is not looked at */
    if (t->round == WML_ROUND_DETECTION && p->fit == WML_FIT_SHORTEST && !p->longest) p->longest = t->longest;
    if (t->fit == WML_FIT_SHORTEST && t->round == WML_ROUND_HALF_UP) p->longest = (int64_t)(1333.0 / 800 * (double)p->shortest);
    if (!wml_str_is(wml_str(t->name), "EfficientNet")) return true;
    p->twice = true;
    return get_flag(o, "include_top", &p->twice, err) && get_flag(o, "rescale_offset", &p->offset, err);
}

static bool from_object(const struct wml_json_val *o, struct wml_image_plan *p, struct wml_ctx *cx, struct wml_err *err)
{
    const struct wml_json_val *inner = wml_json_get(o, "image_processor");
    if (wml_json_is_object(inner)) o = inner;
    if (!wml_json_is_object(o)) return wml_fail(err, WML_E_FORMAT, "a JSON object is wanted");
    struct wml_str name = wml_json_get_str(o, "image_processor_type");
    if (!name.ptr) name = wml_json_get_str(o, "feature_extractor_type");
    const struct wml_image_type *t = wml_image_type_find(name);
    if (!t)
        wml_log(cx, WML_LOG_WARN, "image processor type '%.*s' is not known: resize, crop, rescale and normalise are taken from the members of its file",
                WML_ARG(name.ptr ? name : WML_STR("(none)")));
    wml_image_type_apply(t, p);
    if (!get_members(o, t, p, err) || !combine(o, t, p, err)) return false;
    if (!p->resize || p->fit != WML_FIT_EXACT || (p->height && p->width)) return true;
    return wrong("size", "a size, since do_resize is true,", err);
}

bool wml_image_plan_parse(struct wml_str json, struct wml_image_plan *p, struct wml_ctx *cx, struct wml_err *err)
{
    struct wml_json_doc *doc = NULL;
    wml_image_plan_init(p);
    bool ok = wml_json_parse(json, &doc, err) && from_object(wml_json_root(doc), p, cx, err);
    wml_json_free(doc);
    return ok;
}

bool wml_image_plan_load(const char *path, struct wml_image_plan *p, struct wml_ctx *cx, struct wml_err *err)
{
    struct wml_buf text = {0};
    wml_image_plan_init(p);
    bool ok = wml_file_read(path, 1 << 20, &text, err);
    if (ok && !wml_image_plan_parse(wml_buf_view(&text), p, cx, err)) ok = wml_wrap(err, "%s", path);
    wml_buf_release(&text);
    return ok;
}
