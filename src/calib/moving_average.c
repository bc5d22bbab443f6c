/* ORT's MinMax with moving_average, every sample being a batch of its own: the first sample sets the range, each further
 * one pulls both ends towards its own by `averaging` of the difference. In the arithmetic of the tensor's type, and in the
 * order of the samples, however they came: so the extents are kept sample by sample. */
#include "calib/internal.h"

struct sample { size_t number; double low, high; };
struct series { WML_VEC(struct sample) v; };

static void first(struct wml_range_state *part, size_t number, const struct wml_extent *piece, const void *data, size_t n)
{
    (void)data, (void)n;
    if (!piece->finite) return;
    if (!part->own) part->own = wml_xcalloc(1, sizeof(struct series));
    struct series *s = part->own;
    WML_PUSH(&s->v, ((struct sample){number, piece->low, piece->high}));
}

static void merge(struct wml_range_state *into, const struct wml_range_state *part)
{
    const struct series *from = part->own;
    if (!into->own) into->own = wml_xcalloc(1, sizeof(struct series));
    struct series *to = into->own;
    for (size_t i = 0; i < from->v.len; i++) WML_PUSH(&to->v, from->v.at[i]);
}

static void release(struct wml_range_state *s)
{
    WML_VEC_RELEASE(&((struct series *)s->own)->v);
    free(s->own);
}

static int by_number(const void *a, const void *b)
{
    size_t x = ((const struct sample *)a)->number, y = ((const struct sample *)b)->number;
    return (x > y) - (x < y);
}

/* Pieces of one sample become one. Returns how many there are. */
static size_t join_pieces(struct sample *at, size_t n)
{
    size_t out = 0;
    qsort(at, n, sizeof *at, by_number);
    for (size_t i = 0; i < n; i++) {
        if (out && at[out - 1].number == at[i].number) {
            at[out - 1].low = WML_MIN(at[out - 1].low, at[i].low);
            at[out - 1].high = WML_MAX(at[out - 1].high, at[i].high);
        } else {
            at[out++] = at[i];
        }
    }
    return out;
}

/* One step at a time, each rounded to the type. */
static double pulled(enum wml_dtype dtype, double old, double now, double by)
{
    double difference = wml_range_round(dtype, now - old), step = wml_range_round(dtype, wml_range_round(dtype, by) * difference);
    return wml_range_round(dtype, old + step);
}

static bool check(const struct wml_range_opts *o, struct wml_err *err)
{
    if (o->averaging >= 0 && o->averaging <= 1) return true;
    return wml_fail(err, WML_E_USAGE, "averaging constant %g is not in [0, 1]", o->averaging);
}

static struct wml_range finish(const struct wml_range_state *s, const struct wml_range_opts *o)
{
    const struct series *all = s->own;
    double by = o->averaging > 0 ? o->averaging : 0.01;
    bool symmetric = o->form == WML_RANGE_SYMMETRIC;
    struct sample *at = wml_xcalloc(all->v.len, sizeof *at);
    memcpy(at, all->v.at, all->v.len * sizeof *at);
    size_t n = join_pieces(at, all->v.len);
    struct wml_range r = wml_range_make(s->dtype, at[0].low, at[0].high, symmetric);
    for (size_t i = 1; i < n; i++) {
        struct wml_range now = wml_range_make(s->dtype, at[i].low, at[i].high, symmetric);
        r.low = pulled(s->dtype, r.low, now.low, by);
        r.high = pulled(s->dtype, r.high, now.high, by);
    }
    free(at);
    return r;
}

static const struct wml_range_collect collect = {.first = first, .merge = merge, .release = release};

const struct wml_range_method wml_range_moving_average = {
    .name = "moving-average", .ort_name = "MinMax", .ours = true, .passes = 1, .extremes = true, .collect = &collect, .check = check,
    .finish = finish, .summary = "smallest and largest value, each sample pulling them by 1 % of the difference",
};
