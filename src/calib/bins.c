/* Histograms with equal bins, as numpy makes them: edges by linspace in the type of the values, a value in the bin whose
 * lower edge it has reached, the last bin with both edges. numpy guesses the bin by a division and corrects the guess by
 * the edges; here a multiplication guesses, which the edges correct to the same bin. In half precision numpy's guess can
 * be off by more than its correction, so there its very steps are repeated, once for every value there is.
 *
 * Source: numpy.histogram and numpy.linspace, by their documented behaviour and by tests against them. */
#include "calib/bins.h"

#include <math.h>

enum { BLOCK = 512 };

static struct wml_bins *own(struct wml_range_state *s)
{
    if (!s->own) s->own = wml_xcalloc(1, sizeof(struct wml_bins));
    return s->own;
}

void wml_bins_first(struct wml_range_state *part, size_t sample, const struct wml_extent *piece, const void *data, size_t n)
{
    (void)sample, (void)piece;
    if (part->dtype == WML_F16) wml_tally_add(&own(part)->tally, part->dtype, data, n);
}

void wml_bins_release(struct wml_range_state *s)
{
    struct wml_bins *b = s->own;
    wml_tally_release(&b->tally);
    free(b->edge);
    free(b->count);
    free(b->cut);
    free(b);
}

/* The edges, or false when they do not rise: too many bins for so small a range. */
static bool make_edges(struct wml_bins *b, enum wml_dtype d, double first, double last)
{
    double n = wml_range_round(d, (double)b->n), delta = wml_range_round(d, last - first), step = wml_range_round(d, delta / n);
    for (size_t i = 0; i < b->n; i++) {
        double y = wml_range_round(d, (double)i);
        y = step > 0 ? wml_range_round(d, y * step) : wml_range_round(d, wml_range_round(d, y / n) * delta);
        b->edge[i] = (float)wml_range_round(d, y + first);
    }
    b->edge[b->n] = (float)last;
    for (size_t i = 0; i < b->n; i++)
        if (!(b->edge[i] < b->edge[i + 1])) return false;
    return isfinite(delta);
}

/* For the counting loop: a factor that guesses the bin within one. A value x of bin i, edge[i] <= x < edge[i + 1], is
 * guessed between the guesses of these edges, since subtraction and multiplication keep the order even when rounded. */
static void make_guess(struct wml_bins *b)
{
    float n = (float)b->n, scale = n / (b->last - b->first);
    b->cut = wml_xcalloc(b->n + 3, sizeof *b->cut);
    memcpy(b->cut, b->edge, b->n * sizeof *b->cut);
    b->cut[b->n] = INFINITY;      /* the last bin is never left upwards */
    b->cut[b->n + 1] = -INFINITY; /* the place of values outside */
    b->cut[b->n + 2] = INFINITY;
    for (size_t i = 0; i <= b->n && isfinite(scale); i++) {
        float guess = (b->edge[i] - b->first) * scale;
        if (!(fabsf(guess - (float)i) < 0.25F)) return;
    }
    b->scale = isfinite(scale) ? scale : 0;
}

/* The bin of x by its edges alone. */
static size_t find(const struct wml_bins *b, float x)
{
    size_t low = 0, high = b->n; /* edge[low] <= x < edge[high], but for the last edge */
    while (high - low > 1) {
        size_t mid = low + (high - low) / 2;
        if (x < b->edge[mid]) high = mid;
        else low = mid;
    }
    return low;
}

/* numpy's own guess in half precision, with its correction by one at most. */
static size_t find_half(const struct wml_bins *b, double x)
{
    double delta = wml_range_round(WML_F16, (double)b->last - (double)b->first), n = wml_range_round(WML_F16, (double)b->n);
    double share = wml_range_round(WML_F16, wml_range_round(WML_F16, x - (double)b->first) / delta);
    size_t k = (size_t)wml_range_round(WML_F16, share * n);
    if (k >= b->n) k = b->n - 1;
    if (k && x < (double)b->edge[k]) k--;
    if (k != b->n - 1 && x >= (double)b->edge[k + 1]) k++;
    return k;
}

static void count_tally(struct wml_bins *b)
{
    struct wml_tally_item item;
    for (size_t at = 0; wml_tally_next(&b->tally, WML_F16, &at, &item);) {
        double x = item.negative && !b->magnitudes ? -item.from : item.from;
        if (x < (double)b->first || x > (double)b->last) continue;
        b->count[b->arithmetic == WML_F16 ? find_half(b, x) : find(b, (float)x)] += item.count;
    }
}

/* Bins in the arithmetic of type d; one value alone gets room of a half on both sides. */
static bool make_bins(struct wml_bins *b, enum wml_dtype d, size_t n, double first, double last)
{
    double room = first < last ? 0 : 0.5;
    b->n = n;
    b->arithmetic = d;
    b->first = (float)wml_range_round(d, first - room);
    b->last = (float)wml_range_round(d, last + room);
    if (!make_edges(b, d, (double)b->first, (double)b->last)) b->n = 0;
    return b->n != 0;
}

bool wml_bins_plan(struct wml_range_state *s, size_t n, double first, double last, bool magnitudes)
{
    struct wml_bins *b = own(s);
    bool half = s->dtype == WML_F16;
    b->edge = wml_xcalloc(n + 1, sizeof *b->edge);
    b->count = wml_xcalloc(n, sizeof *b->count);
    b->magnitudes = magnitudes;
    if (!make_bins(b, s->dtype, n, first, last) && !(half && make_bins(b, WML_F32, n, first, last))) return false;
    if (half) count_tally(b);
    else make_guess(b);
    return !half;
}

/* Bins of one block: those of values outside, NaN among them, are n + 1. */
static inline void guess_block(const struct wml_bins *b, const float *x, size_t n, bool magnitudes, int32_t *bin, float *v)
{
    float first = b->first, last = b->last, scale = b->scale, most = (float)(b->n - 1), outside = (float)(b->n + 1);
    for (size_t j = 0; j < n; j++) {
        float y = magnitudes ? fabsf(x[j]) : x[j], g = (y - first) * scale;
        g = g < most ? g : most;
        g = ((y >= first) & (y <= last)) ? g : outside;
        v[j] = y;
        bin[j] = (int32_t)g;
    }
}

/* Two counters a bin, in turn: many equal values in a row, zeros above all, do not wait for each other. */
static void count_block(const struct wml_bins *b, uint64_t *count, const float *x, size_t n)
{
    int32_t bin[BLOCK];
    float v[BLOCK];
    if (b->magnitudes) guess_block(b, x, n, true, bin, v);
    else guess_block(b, x, n, false, bin, v);
    for (size_t j = 0; j < n; j++) {
        const float *cut = b->cut + bin[j];
        size_t k = (size_t)(bin[j] + (v[j] >= cut[1]) - (v[j] < cut[0]));
        count[2 * k + (j & 1)]++;
    }
}

static void count_slowly(const struct wml_bins *b, uint64_t *count, const float *x, size_t n)
{
    for (size_t j = 0; j < n; j++) {
        float v = b->magnitudes ? fabsf(x[j]) : x[j];
        if (v >= b->first && v <= b->last) count[2 * find(b, v)]++;
    }
}

void wml_bins_second(struct wml_range_state *part, const struct wml_range_state *whole, const void *data, size_t n)
{
    const struct wml_bins *b = whole->own;
    struct wml_bins *mine = own(part);
    const float *x = data;
    if (!mine->count) mine->count = wml_xcalloc(2 * (b->n + 3), sizeof *mine->count);
    for (size_t i = 0; i < n; i += BLOCK) {
        size_t k = WML_MIN(n - i, (size_t)BLOCK);
        if (b->scale > 0) count_block(b, mine->count, x + i, k);
        else count_slowly(b, mine->count, x + i, k);
    }
}

void wml_bins_merge(struct wml_range_state *into, const struct wml_range_state *part)
{
    struct wml_bins *to = own(into);
    const struct wml_bins *from = part->own;
    wml_tally_merge(&to->tally, &from->tally, part->dtype);
    for (size_t i = 0; from->count && i < to->n; i++) to->count[i] += from->count[2 * i] + from->count[2 * i + 1];
}
