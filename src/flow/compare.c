/* Cosine, largest difference and signal-to-quantisation-noise ratio of two tensors. */
#include "flow/compare.h"

#include <math.h>

void wml_compare(int dtype_a, const void *a, int dtype_b, const void *b, uint64_t n, struct wml_compare *out)
{
    double aa = 0, bb = 0, ab = 0, dd = 0;
    *out = (struct wml_compare){.n = n, .equal = true};
    for (uint64_t i = 0; i < n; i++) {
        double x = wml_dtype_load(dtype_a, a, (size_t)i), y = wml_dtype_load(dtype_b, b, (size_t)i);
        if (x == y || (isnan(x) && isnan(y))) {
            if (isfinite(x)) {
                aa += x * x;
                bb += y * y;
                ab += x * y;
            }
            continue;
        }
        out->equal = false;
        if (isfinite(x) && !isfinite(y)) out->not_finite++;
        if (!isfinite(x) || !isfinite(y)) {
            out->mismatched++;
            continue;
        }
        double d = x - y;
        aa += x * x;
        bb += y * y;
        ab += x * y;
        dd += d * d;
        if (fabs(d) > out->max_abs) out->max_abs = fabs(d);
    }
    if (aa == 0 || bb == 0) out->cosine = aa == bb ? 1 : 0;
    else out->cosine = dd == 0 ? 1 : ab / (sqrt(aa) * sqrt(bb));
    out->sqnr_db = dd == 0 ? INFINITY : aa == 0 ? -INFINITY : 10 * log10(aa / dd);
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
