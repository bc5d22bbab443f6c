/* Sizes, as the image processors compute them: in double, in their order, since a result next to a whole number decides. */
#include "task/image_internal.h"

#include <math.h>

/* A whole number of pixels from a product that is not negative. */
static double whole(const struct wml_image_plan *p, double v)
{
    return floor(p->round == WML_ROUND_HALF_UP ? v + 0.5 : v);
}

static double multiple_of(const struct wml_image_plan *p, double v)
{
    double m = (double)p->multiple;
    if (m < 2) return p->round == WML_ROUND_DEPTH ? rint(v) : v;
    switch (p->round) {
    case WML_ROUND_COMMON: return ceil(v / m) * m;
    case WML_ROUND_DEPTH: return rint(v / m) * m;
    default: return floor(v / m) * m;
    }
}

/* The longer edge is cut off at its limit, then the shorter one follows. */
static void shortest_common(const struct wml_image_plan *p, double shorter, double longer, double *s, double *l)
{
    *s = (double)p->shortest;
    *l = floor(*s * longer / shorter);
    if (p->longest && *l > (double)p->longest) {
        *s = floor((double)p->longest * *s / *l);
        *l = (double)p->longest;
    }
}

/* Detection models: the limit decides the shorter edge first, which stays a fraction for the longer one. An edge that is
 * right already leaves the picture alone; Yolos, which alone has multiples, looks at that in wide pictures only. */
static void shortest_detection(const struct wml_image_plan *p, double shorter, double longer, bool tall, double *s, double *l)
{
    double raw = (double)p->shortest;
    *s = raw;
    if (p->longest && longer / shorter * raw > (double)p->longest) {
        raw = (double)p->longest * shorter / longer;
        *s = rint(raw);
    }
    *l = *s == shorter && !(tall && p->multiple > 1) ? longer : floor(raw * longer / shorter);
}

/* Two scales in a row, rounded at the end. */
static void shortest_half_up(const struct wml_image_plan *p, double shorter, double longer, double *s, double *l)
{
    *s = (double)p->shortest;
    *l = *s / shorter * longer;
    if (p->longest && *l > (double)p->longest) {
        double again = (double)p->longest / *l;
        *s *= again;
        *l *= again;
    }
    *s = whole(p, *s);
    *l = whole(p, *l);
}

static void fit_shortest(const struct wml_image_plan *p, double w, double h, double *to_w, double *to_h)
{
    double shorter = fmin(w, h), longer = fmax(w, h), s = 0, l = 0;
    if (p->round == WML_ROUND_DETECTION) shortest_detection(p, shorter, longer, w < h, &s, &l);
    else if (p->round == WML_ROUND_HALF_UP) shortest_half_up(p, shorter, longer, &s, &l);
    else shortest_common(p, shorter, longer, &s, &l);
    *to_w = w <= h ? s : l;
    *to_h = w <= h ? l : s;
}

static void fit_scaled(const struct wml_image_plan *p, double w, double h, double *to_w, double *to_h)
{
    double scale_h = (double)p->height / h, scale_w = (double)p->width / w;
    switch (p->fit) {
    case WML_FIT_LONGEST: scale_w = scale_h = (double)p->longest / fmax(w, h); break;
    case WML_FIT_INSIDE: scale_w = scale_h = fmin(scale_h, scale_w); break;
    case WML_FIT_COVER: scale_w = scale_h = fmax(scale_h, scale_w); break;
    case WML_FIT_NEARER:
        if (fabs(1 - scale_w) < fabs(1 - scale_h)) scale_h = scale_w;
        else scale_w = scale_h;
        break;
    default: break;
    }
    bool depth = p->round == WML_ROUND_DEPTH; /* rounds only to multiples */
    *to_h = depth ? h * scale_h : whole(p, h * scale_h);
    *to_w = depth ? w * scale_w : whole(p, w * scale_w);
    if (p->fit != WML_FIT_COVER) return;
    *to_h = fmax(*to_h, (double)p->height); /* never a pixel short */
    *to_w = fmax(*to_w, (double)p->width);
}

static void fit_exact(const struct wml_image_plan *p, double w, double h, double *to_w, double *to_h)
{
    *to_h = p->height ? (double)p->height : floor(h * (double)p->width / w);
    *to_w = p->width ? (double)p->width : floor(w * (double)p->height / h);
}

static size_t edge(double v)
{
    return v < 1 ? 1 : v > 1e9 ? 1000000000 : (size_t)v;
}

void wml_image_resized(const struct wml_image_plan *p, size_t width, size_t height, size_t *to_width, size_t *to_height)
{
    double w = (double)width, h = (double)height, to_w = w, to_h = h;
    if (p->fit == WML_FIT_SHORTEST) fit_shortest(p, w, h, &to_w, &to_h);
    else if (p->fit == WML_FIT_EXACT && p->round != WML_ROUND_DEPTH) fit_exact(p, w, h, &to_w, &to_h);
    else if (p->fit == WML_FIT_MULTIPLE) {
        double m = (double)WML_MAX(p->multiple, 1);
        to_w = floor(w / m) * m;
        to_h = floor(h / m) * m;
    } else fit_scaled(p, w, h, &to_w, &to_h);
    if (p->fit != WML_FIT_MULTIPLE && (p->round != WML_ROUND_DETECTION || p->fit == WML_FIT_SHORTEST)) {
        to_w = multiple_of(p, to_w);
        to_h = multiple_of(p, to_h);
    }
    *to_width = edge(to_w);
    *to_height = edge(to_h);
}

bool wml_image_fixed_size(const struct wml_image_plan *p, int64_t *height, int64_t *width)
{
    int64_t h = 0, w = 0;
    if (p->crop) {
        h = p->crop_height;
        w = p->crop_width;
    } else if (p->resize && p->fit == WML_FIT_EXACT && p->height && p->width) {
        size_t to_w, to_h;
        wml_image_resized(p, (size_t)p->width, (size_t)p->height, &to_w, &to_h);
        h = (int64_t)to_h;
        w = (int64_t)to_w;
    }
    if (p->pad && p->pad_height) {
        h = p->pad_height;
        w = p->pad_width;
    }
    if (p->pad && p->pad_multiple > 1) {
        h = (h + p->pad_multiple - 1) / p->pad_multiple * p->pad_multiple;
        w = (w + p->pad_multiple - 1) / p->pad_multiple * p->pad_multiple;
    }
    *height = h;
    *width = w;
    return h && w;
}
