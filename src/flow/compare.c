/* Cosine, largest difference and signal-to-quantisation-noise ratio of two tensors. */
#include "flow/compare.h"

#include <math.h>

static void add(struct wml_compare *c, double x, double y)
{
    c->aa += x * x;
    c->bb += y * y;
    c->ab += x * y;
    c->dd += (x - y) * (x - y);
    c->max_abs = fmax(c->max_abs, fabs(x - y));
}

static void finish(struct wml_compare *c)
{
    if (c->aa == 0 || c->bb == 0) c->cosine = c->aa == c->bb ? 1 : 0;
    else c->cosine = c->dd == 0 ? 1 : c->ab / (sqrt(c->aa) * sqrt(c->bb));
    c->sqnr_db = c->dd == 0 ? INFINITY : c->aa == 0 ? -INFINITY : 10 * log10(c->aa / c->dd);
}

void wml_compare_more(int dtype_a, const void *a, int dtype_b, const void *b, uint64_t n, struct wml_compare *all)
{
    all->n += n;
    for (uint64_t i = 0; i < n; i++) {
        double x = wml_dtype_load(dtype_a, a, (size_t)i), y = wml_dtype_load(dtype_b, b, (size_t)i);
        const bool same = x == y || (isnan(x) && isnan(y)), finite = isfinite(x) && isfinite(y);
        all->equal = all->equal && same;
        if (finite) add(all, x, y);
        else if (!same) all->mismatched++;
        if (isfinite(x) && !isfinite(y)) all->not_finite++;
    }
    finish(all);
}

void wml_compare_add(struct wml_compare *all, const struct wml_compare *more)
{
    all->n += more->n;
    all->mismatched += more->mismatched;
    all->not_finite += more->not_finite;
    all->equal = all->equal && more->equal;
    all->max_abs = fmax(all->max_abs, more->max_abs);
    all->aa += more->aa;
    all->bb += more->bb;
    all->ab += more->ab;
    all->dd += more->dd;
    finish(all);
}

void wml_compare(int dtype_a, const void *a, int dtype_b, const void *b, uint64_t n, struct wml_compare *out)
{
    *out = (struct wml_compare){.equal = true};
    wml_compare_more(dtype_a, a, dtype_b, b, n, out);
}

double wml_largest(int dtype, const void *data, uint64_t n)
{
    double most = 0;
    for (uint64_t i = 0; i < n; i++) {
        double v = fabs(wml_dtype_load(dtype, data, (size_t)i));
        if (isfinite(v) && v > most) most = v;
    }
    return most;
}
