/* A clipping grid over the range of a constant. Integers are made as quant/kernel.h makes them, so the sums are those of the
 * file. */
#include "quant/weight_search.h"

#include <math.h>
#include <string.h>

enum { PIECE = 1024, COARSE = 5, LEAST = 30, WHOLE = 100 /* hundredths of the range */ };

struct search {
    const struct wml_qform *form;
    enum wml_dtype real;
    const unsigned char *data;
    size_t outer, channels, inner, c;
    double low, high, min_range;
    double least; /* sum so far */
    struct wml_qparams best;
};

static void read_piece(const struct search *s, size_t at, size_t n, float *out)
{
    uint16_t half[PIECE];
    if (s->real == WML_F32) {
        memcpy(out, s->data + at * sizeof *out, n * sizeof *out);
        return;
    }
    memcpy(half, s->data + at * sizeof *half, n * sizeof *half);
    for (size_t i = 0; i < n; i++) out[i] = wml_half_to_float(half[i]);
}

/* Sum of squares over one piece; (q - zero) lies in low..high. */
static double piece_error(const float *restrict x, size_t n, float scale, float low, float high)
{
    const float magic = 12582912.0f; /* 1.5 * 2^23: adding it rounds half to even */
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        float v = x[i] / scale;
        v = v > low ? v : low;
        v = v < high ? v : high;
        v = (v + magic) - magic;
        double d = (double)x[i] - (double)(v * scale);
        sum += d * d;
    }
    return sum;
}

static double error_of(const struct search *s, struct wml_qparams p)
{
    const unsigned bits = wml_dtype_info((int)s->form->type)->bits;
    const int32_t first = wml_dtype_info((int)s->form->type)->cls == WML_CLASS_UINT ? 0 : -((int32_t)1 << (bits - 1));
    const float low = (float)(first - p.zero), high = (float)(first + ((int32_t)1 << bits) - 1 - p.zero);
    float x[PIECE];
    double sum = 0;
    for (size_t o = 0; o < s->outer; o++) {
        const size_t start = (o * s->channels + s->c) * s->inner;
        for (size_t i = 0, n; i < s->inner; i += n) {
            n = WML_MIN(s->inner - i, (size_t)PIECE);
            read_piece(s, start + i, n, x);
            sum += piece_error(x, n, (float)p.scale, low, high);
        }
    }
    return sum;
}

/* Whether this share of the range is better than what was tried. */
static bool try_share(struct search *s, int hundredths)
{
    double share = hundredths / 100.0;
    struct wml_qparams p = wml_qparams_of(s->form, s->real, wml_real_round(s->real, s->low * share), wml_real_round(s->real, s->high * share), s->min_range);
    double sum = error_of(s, p);
    if (!(sum < s->least)) return false;
    s->least = sum;
    s->best = p;
    return true;
}

struct wml_qparams wml_weight_search(const struct wml_qform *f, enum wml_dtype real, const void *data, size_t outer, size_t channels, size_t inner,
                                     size_t c, double low, double high, double min_range)
{
    struct search s = {.form = f, .real = real, .data = data, .outer = outer, .channels = channels, .inner = inner, .c = c, .low = low,
                       .high = high, .min_range = min_range};
    int best = WHOLE;
    s.best = wml_qparams_of(f, real, low, high, min_range);
    s.least = error_of(&s, s.best);
    for (int h = WHOLE - COARSE; h >= LEAST; h -= COARSE)
        if (try_share(&s, h)) best = h;
    const int middle = best;
    for (int h = WML_MIN(middle + COARSE - 1, WHOLE - 1); h > middle - COARSE; h--)
        if (h != middle) (void)try_share(&s, h);
    return s.best;
}
