/* How the values of a tensor lie: the cells of its tally, upwards, cut at the smallest and the largest value. */
#include "calib/spread.h"

#include <math.h>

enum { FINE_OCTAVES = 12 }; /* from the top, those that hold anything; one piece each below: far less than any step */

static void first(struct wml_range_state *part, size_t sample, const struct wml_extent *piece, const void *data, size_t n)
{
    (void)sample, (void)piece;
    if (!part->own) part->own = wml_xcalloc(1, sizeof(struct wml_tally));
    wml_tally_add(part->own, part->dtype, data, n);
}

static void merge(struct wml_range_state *into, const struct wml_range_state *part)
{
    if (!into->own) into->own = wml_xcalloc(1, sizeof(struct wml_tally));
    wml_tally_merge(into->own, part->own, part->dtype);
}

static void release(struct wml_range_state *s)
{
    wml_tally_release(s->own);
    free(s->own);
}

const struct wml_range_collect wml_collect_tally = {.first = first, .merge = merge, .release = release};

/* 2^(e-1) <= x < 2^e. */
static int octave(double x)
{
    int e = 0;
    frexp(x, &e);
    return e;
}

/* The octave below which pieces are joined. Octaves are walked by the items of both signs. */
static int finest(const struct wml_tally *t, enum wml_dtype dtype)
{
    enum { OCTAVES = 512, BIAS = 256 };
    struct wml_tally_item item;
    bool seen[OCTAVES] = {false};
    int left = FINE_OCTAVES, e = OCTAVES;
    for (size_t at = 0; wml_tally_next(t, dtype, &at, &item);)
        if (item.from > 0) seen[octave(item.from) + BIAS] = true;
    while (left && e) left -= seen[--e];
    return e - BIAS;
}

static void add(struct wml_spread *s, const struct wml_tally_item *x, const struct wml_extent *e, int fine)
{
    double from = x->negative ? -x->to : x->from, to = x->negative ? -x->from : x->to, before = s->n ? s->to[s->n - 1] : 0;
    if (x->from == 0) from = to = 0; /* the smallest cell: zeros, and what is far below any step */
    from = WML_MAX(from, e->low);
    to = WML_MIN(to, e->high);
    bool join = s->n && from * before > 0 && octave(fabs(from)) < fine && octave(fabs(from)) == octave(fabs(before));
    join |= s->n && from == 0 && before == 0;
    if (!join) s->from[s->n++] = from;
    s->to[s->n - 1] = to;
    s->count[s->n - 1] += (double)x->count;
    s->total += (double)x->count;
}

void wml_spread_make(struct wml_spread *s, const struct wml_range_state *state)
{
    const struct wml_tally *t = state->own;
    struct wml_tally_item item;
    int fine = finest(t, state->dtype);
    size_t n = 0;
    for (size_t at = 0; wml_tally_next(t, state->dtype, &at, &item);) n++;
    *s = (struct wml_spread){0};
    s->from = wml_xcalloc(n, sizeof *s->from);
    s->to = wml_xcalloc(n, sizeof *s->to);
    s->count = wml_xcalloc(n, sizeof *s->count);
    for (size_t at = 0; wml_tally_next(t, state->dtype, &at, &item);) add(s, &item, &state->extent, fine);
}

void wml_spread_release(struct wml_spread *s)
{
    free(s->from);
    free(s->to);
    free(s->count);
    *s = (struct wml_spread){0};
}
