/* flow/compare.h - how far two tensors lie apart. Sums are taken in double over all elements. */
#ifndef WML_FLOW_COMPARE_H
#define WML_FLOW_COMPARE_H

#include "base/dtype.h"

struct wml_compare {
    double cosine;   /* 1: same direction; two zero tensors: 1; one zero tensor: 0 */
    double max_abs;  /* largest |a - b| over elements where both are finite */
    double sqnr_db;  /* 10 log10(sum a^2 / sum (a-b)^2), a the reference; INFINITY when equal */
    uint64_t n;
    uint64_t mismatched; /* elements where only one is NaN, or infinities differ */
    uint64_t not_finite; /* NaN or infinite in b where a is finite */
    bool equal;          /* every element equal; NaN equals NaN */
    double aa, bb, ab, dd; /* sums over finite pairs: a^2, b^2, a b, (a - b)^2 */
};

/* a: the reference. Types may differ; both have n elements. */
void wml_compare(int dtype_a, const void *a, int dtype_b, const void *b, uint64_t n, struct wml_compare *out);
/* The same over what *all has seen before as well; it starts as a comparison of no elements. */
void wml_compare_more(int dtype_a, const void *a, int dtype_b, const void *b, uint64_t n, struct wml_compare *all);
/* What was seen apart, put together. */
void wml_compare_add(struct wml_compare *all, const struct wml_compare *more);
/* The largest magnitude among the finite elements; 0: there is none. */
double wml_largest(int dtype, const void *data, uint64_t n);

#endif
