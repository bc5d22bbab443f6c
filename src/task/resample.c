/* Resizing as Pillow's Image.resize does it for 8-bit pictures, to the pixel.
 *
 * Every pixel of the result is a weighted sum of the source pixels under a filter that is stretched by the ratio of sizes
 * when shrinking. Weights are computed in double, brought to the sum 1, and rounded to 22 fractional bits; sums are of 32
 * bits and rounded to 8, between the passes too. They fit: the sizes of no filter's weights reach 2 in sum.
 *
 * Both passes run the same kernel: n bytes of several lines, each times one weight. Vertically a line is a row. Horizontally
 * it is a column of pixels of LANES rows, so those are transposed first: neighbours in memory then share the weight, and
 * compilers turn the loop into vector instructions. */
#include "task/picture.h"

#include <math.h>
#include "base/arena.h"

enum { BITS = 22, LANES = 16, PIXELS = LANES * 3, BLOCK = 96 };
static const double PI = 3.14159265358979323846;

struct filter {
    double reach; /* zero from here on */
    double (*at)(double x);
};

static double box(double x)
{
    return x > -0.5 && x <= 0.5 ? 1 : 0;
}

static double triangle(double x)
{
    x = fabs(x);
    return x < 1 ? 1 - x : 0;
}

static double hamming(double x)
{
    x = fabs(x);
    if (x == 0) return 1;
    if (x >= 1) return 0;
    x *= PI;
    return sin(x) / x * (0.54 + 0.46 * cos(x));
}

/* Keys, "Cubic convolution interpolation for digital image processing" (1981), a = -1/2. */
static double cubic(double x)
{
    const double a = -0.5;
    x = fabs(x);
    if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    if (x < 2) return (((x - 5) * x + 8) * x - 4) * a;
    return 0;
}

static double sinc(double x)
{
    x *= PI;
    return x == 0 ? 1 : sin(x) / x;
}

static double lanczos(double x)
{
    return x >= -3 && x < 3 ? sinc(x) * sinc(x / 3) : 0;
}

static const struct filter filters[] = {
    [WML_LANCZOS] = {3, lanczos}, [WML_BILINEAR] = {1, triangle}, [WML_BICUBIC] = {2, cubic},
    [WML_BOX] = {0.5, box},       [WML_HAMMING] = {1, hamming},
};

struct taps { /* of one dimension */
    size_t n, most;  /* results; weights that each may have */
    size_t *first;   /* by result: the first source pixel, and how many */
    size_t *count;
    int32_t *weight; /* n x most, fractions of BITS bits */
    void *memory;
};

static bool new_taps(size_t n, size_t most, struct taps *t, struct wml_err *err)
{
    uint64_t index = (uint64_t)n * sizeof(size_t);
    t->memory = wml_big_alloc(2 * index + (uint64_t)n * most * sizeof(int32_t), err);
    if (!t->memory) return false;
    t->n = n;
    t->most = most;
    t->first = t->memory;
    t->count = t->first + n;
    t->weight = (int32_t *)(t->count + n);
    return true;
}

static int32_t fixed(double w)
{
    w *= 1 << BITS;
    return (int32_t)(w < 0 ? w - 0.5 : w + 0.5);
}

static bool make_taps(const struct filter *f, size_t from, size_t to, struct taps *t, struct wml_err *err)
{
    double ratio = (double)from / (double)to, stretch = ratio < 1 ? 1 : ratio, reach = f->reach * stretch;
    if (!new_taps(to, (size_t)ceil(reach) * 2 + 1, t, err)) return false;
    double *w = wml_big_alloc((uint64_t)t->most * sizeof *w, err);
    if (!w) return false;
    for (size_t i = 0; i < to; i++) {
        double centre = ((double)i + 0.5) * ratio, low = centre - reach + 0.5, high = centre + reach + 0.5, sum = 0;
        size_t first = low < 0 ? 0 : (size_t)low, end = high > (double)from ? from : (size_t)high;
        for (size_t k = 0; k < end - first; k++) {
            w[k] = f->at(((double)(first + k) - centre + 0.5) * (1 / stretch));
            sum += w[k];
        }
        for (size_t k = 0; k < end - first; k++) t->weight[i * t->most + k] = fixed(sum != 0 ? w[k] / sum : w[k]);
        t->first[i] = first;
        t->count[i] = end - first;
    }
    free(w);
    return true;
}

/* out[i] = the sum over the lines k of line[k][i] * weight[k], rounded and cut to 8 bits; lines are `step` bytes apart. */
static void weigh(const unsigned char *restrict line, size_t step, const int32_t *restrict weight, size_t count,
                  unsigned char *restrict out, size_t n)
{
    int32_t sum[BLOCK];
    for (size_t at = 0; at < n; at += BLOCK) {
        size_t m = WML_MIN(n - at, (size_t)BLOCK);
        for (size_t i = 0; i < m; i++) sum[i] = 1 << (BITS - 1);
        for (size_t k = 0; k < count; k++) {
            const unsigned char *restrict p = line + k * step + at;
            int32_t w = weight[k];
            for (size_t i = 0; i < m; i++) sum[i] += p[i] * w;
        }
        for (size_t i = 0; i < m; i++) {
            int32_t v = sum[i] >> BITS;
            out[at + i] = (unsigned char)(v < 0 ? 0 : v > 255 ? 255 : v);
        }
    }
}

/* LANES rows from `y` on, of which those beyond the end repeat the last, as columns of PIXELS bytes. */
static void to_columns(const struct wml_picture *in, size_t y, unsigned char *restrict columns)
{
    for (size_t r = 0; r < LANES; r++) {
        const unsigned char *restrict row = in->rgb + WML_MIN(y + r, in->height - 1) * in->width * 3;
        for (size_t i = 0; i < in->width * 3; i++) columns[i * LANES + r] = row[i];
    }
}

static void from_columns(const unsigned char *restrict columns, size_t y, struct wml_picture *out)
{
    for (size_t r = 0; r < LANES && y + r < out->height; r++) {
        unsigned char *restrict row = out->rgb + (y + r) * out->width * 3;
        for (size_t i = 0; i < out->width * 3; i++) row[i] = columns[i * LANES + r];
    }
}

static bool across(const struct wml_picture *in, const struct taps *t, struct wml_picture *out, struct wml_err *err)
{
    unsigned char *columns = wml_big_alloc((uint64_t)(in->width + t->n) * PIXELS, err);
    if (!columns) return false;
    unsigned char *result = columns + in->width * PIXELS;
    bool ok = wml_picture_new(t->n, in->height, out, err);
    for (size_t y = 0; ok && y < in->height; y += LANES) {
        to_columns(in, y, columns);
        for (size_t x = 0; x < t->n; x++)
            weigh(columns + t->first[x] * PIXELS, PIXELS, t->weight + x * t->most, t->count[x], result + x * PIXELS, PIXELS);
        from_columns(result, y, out);
    }
    free(columns);
    return ok;
}

static bool down(const struct wml_picture *in, const struct taps *t, struct wml_picture *out, struct wml_err *err)
{
    size_t row = in->width * 3;
    if (!wml_picture_new(in->width, t->n, out, err)) return false;
    for (size_t y = 0; y < t->n; y++)
        weigh(in->rgb + t->first[y] * row, row, t->weight + y * t->most, t->count[y], out->rgb + y * row, row);
    return true;
}

/* The source pixel under each centre, by repeated addition as Pillow does it: its rounding shows in large pictures. */
static bool nearest(const struct wml_picture *in, size_t width, size_t height, struct wml_picture *out,
                    struct wml_err *err)
{
    double ratio_x = (double)in->width / (double)width, ratio_y = (double)in->height / (double)height;
    size_t *column = wml_big_alloc((uint64_t)width * sizeof *column, err);
    bool ok = column && wml_picture_new(width, height, out, err);
    double at = ratio_x * 0.5;
    for (size_t x = 0; ok && x < width; x++, at += ratio_x) column[x] = WML_MIN((size_t)at, in->width - 1) * 3;
    at = ratio_y * 0.5;
    for (size_t y = 0; ok && y < height; y++, at += ratio_y) {
        const unsigned char *from = in->rgb + WML_MIN((size_t)at, in->height - 1) * in->width * 3;
        unsigned char *to = out->rgb + y * width * 3;
        for (size_t x = 0; x < width; x++) memcpy(to + x * 3, from + column[x], 3);
    }
    free(column);
    return ok;
}

static bool copy(const struct wml_picture *in, struct wml_picture *out, struct wml_err *err)
{
    if (!wml_picture_new(in->width, in->height, out, err)) return false;
    memcpy(out->rgb, in->rgb, in->width * in->height * 3);
    return true;
}

/* One pass, into *out. */
static bool pass(const struct wml_picture *in, const struct filter *f, bool vertical, size_t to,
                 struct wml_picture *out, struct wml_err *err)
{
    struct taps t = {0};
    bool ok = make_taps(f, vertical ? in->height : in->width, to, &t, err) &&
              (vertical ? down(in, &t, out, err) : across(in, &t, out, err));
    free(t.memory);
    return ok;
}

bool wml_picture_resize(const struct wml_picture *in, size_t width, size_t height, enum wml_resample how,
                        struct wml_picture *out, struct wml_err *err)
{
    *out = (struct wml_picture){0};
    if (!width || !height || width > WML_PICTURE_MAX / height)
        return wml_fail(err, WML_E_UNSUPPORTED, "a size of %zu x %zu pixels: at most %d pixels", width, height, WML_PICTURE_MAX);
    if (width == in->width && height == in->height) return copy(in, out, err);
    if (how == WML_NEAREST) return nearest(in, width, height, out, err);
    const struct filter *f = &filters[how];
    if (width == in->width) return pass(in, f, true, height, out, err);
    if (height == in->height) return pass(in, f, false, width, out, err);
    /* Pillow 13: the vertical pass comes first where the height loses over twice as much as the width. */
    bool vertical = height < in->height && (int64_t)(in->height - height) > 2 * ((int64_t)in->width - (int64_t)width);
    struct wml_picture half = {0};
    bool ok = pass(in, f, vertical, vertical ? height : width, &half, err) &&
              pass(&half, f, !vertical, vertical ? width : height, out, err);
    wml_picture_release(&half);
    return ok;
}
