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
    if (all->aa == 0 || all->bb == 0) all->cosine = all->aa == all->bb ? 1 : 0;
    else all->cosine = all->dd == 0 ? 1 : all->ab / (sqrt(all->aa) * sqrt(all->bb));
    all->sqnr_db = all->dd == 0 ? INFINITY : all->aa == 0 ? -INFINITY : 10 * log10(all->aa / all->dd);
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
