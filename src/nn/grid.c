/* nn/grid.c - see grid.h. */
#include <math.h>
#include "nn/grid.h"

struct taps { /* what one place of the result is made of */
    int64_t at[4];
    double weight[4];
    size_t n;
};

static double cubic(double x, double a)
{
    x = fabs(x);
    if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

static struct taps taps_of(int64_t i, int64_t from, int64_t to, enum wml_nn_filter filter)
{
    struct taps t = {.n = filter == WML_NN_BICUBIC ? 4 : 2};
    double x = ((double)i + 0.5) * (double)from / (double)to - 0.5;
    if (filter == WML_NN_BILINEAR && x < 0) x = 0;
    const int64_t base = (int64_t)floor(x), first = filter == WML_NN_BICUBIC ? base - 1 : base;
    for (size_t k = 0; k < t.n; k++) {
        const int64_t at = first + (int64_t)k;
        t.weight[k] = filter == WML_NN_BICUBIC ? cubic(x - (double)at, -0.75) : 1 - fabs(x - (double)at);
        t.at[k] = at < 0 ? 0 : at >= from ? from - 1 : at;
    }
    return t;
}

/* A line of `n` places, each of `channels` and `step` floats behind the one before it, as one of `to` places: what is left out
 * counts, too, and weights that fall over the edge are shared out among the others. */
static void smooth(const float *from, int64_t n, int64_t step, float *out, int64_t to, int64_t out_step, int64_t channels)
{
    const double scale = (double)n / (double)to, wide = scale > 1 ? scale : 1;
    for (int64_t i = 0; i < to; i++) {
        const double centre = scale * ((double)i + 0.5);
        const int64_t first = WML_MAX((int64_t)(centre - 2 * wide + 0.5), 0), end = WML_MIN((int64_t)(centre + 2 * wide + 0.5), n);
        double total = 0;
        for (int64_t k = first; k < end; k++) total += cubic(((double)k - centre + 0.5) / wide, -0.5);
        for (int64_t c = 0; c < channels; c++) {
            double sum = 0;
            for (int64_t k = first; k < end; k++) sum += cubic(((double)k - centre + 0.5) / wide, -0.5) * (double)from[k * step + c];
            out[i * out_step + c] = (float)(sum / total);
        }
    }
}

/* Columns first. */
static const float *resize_smooth(struct wml_nn *b, const float *from, const int64_t size[2], const int64_t to[2], int64_t channels)
{
    float *half = wml_nn_room(b, "positions", sizeof *half, WML_DIMS(size[0], to[1], channels));
    float *out = half ? wml_nn_room(b, "positions", sizeof *out, WML_DIMS(to[0], to[1], channels)) : NULL;
    if (!out) return NULL;
    for (int64_t y = 0; y < size[0]; y++)
        smooth(from + y * size[1] * channels, size[1], channels, half + y * to[1] * channels, to[1], channels, channels);
    for (int64_t x = 0; x < to[1]; x++)
        smooth(half + x * channels, size[0], to[1] * channels, out + x * channels, to[0], to[1] * channels, channels);
    return out;
}

const float *wml_nn_resize_grid(struct wml_nn *b, const float *from, const int64_t size[2], const int64_t to[2], int64_t channels,
                                enum wml_nn_filter filter)
{
    if (b->failed || !from) return NULL;
    if (size[0] == to[0] && size[1] == to[1]) return from;
    if (to[0] < 1 || to[1] < 1 || to[0] > 1 << 12 || to[1] > 1 << 12 || channels > 1 << 16)
        return wml_nn_fail(b, WML_E_UNSUPPORTED, "a grid of %lld x %lld places", (long long)to[0], (long long)to[1]);
    if (filter == WML_NN_BICUBIC_SMOOTH) return resize_smooth(b, from, size, to, channels);
    float *out = wml_nn_room(b, "positions", sizeof *out, WML_DIMS(to[0], to[1], channels));
    if (!out) return NULL;
    for (int64_t y = 0; y < to[0]; y++) {
        const struct taps v = taps_of(y, size[0], to[0], filter);
        for (int64_t x = 0; x < to[1]; x++) {
            const struct taps h = taps_of(x, size[1], to[1], filter);
            for (int64_t c = 0; c < channels; c++) {
                double sum = 0;
                for (size_t i = 0; i < v.n; i++)
                    for (size_t k = 0; k < h.n; k++)
                        sum += v.weight[i] * h.weight[k] * (double)from[(v.at[i] * size[1] + h.at[k]) * channels + c];
                out[(y * to[1] + x) * channels + c] = (float)sum;
            }
        }
    }
    return out;
}

const float *wml_nn_resize_places(struct wml_nn *b, const float *table, int64_t front, int64_t back, const int64_t stored[2], const int64_t to[2],
                                  int64_t channels, enum wml_nn_filter filter)
{
    const int64_t places = stored[0] * stored[1], now = to[0] * to[1];
    const size_t row = (size_t)channels * sizeof(float);
    const float *middle = table ? wml_nn_resize_grid(b, table + front * channels, stored, to, channels, filter) : NULL;
    if (!middle) return NULL;
    float *out = wml_nn_room(b, "positions", sizeof *out, WML_DIMS(front + now + back, channels));
    if (!out) return NULL;
    memcpy(out, table, (size_t)front * row);
    memcpy(out + front * channels, middle, (size_t)now * row);
    memcpy(out + (front + now) * channels, table + (front + places) * channels, (size_t)back * row);
    return out;
}
