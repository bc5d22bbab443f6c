/* base/num.h - strings to numbers, and arithmetic that notices overflow. */
#ifndef WML_BASE_NUM_H
#define WML_BASE_NUM_H

#include "base/str.h"

/* The whole of s must be the number; blanks, trailing text and out-of-range values give false. */
bool wml_parse_i64(struct wml_str s, int64_t *out);
bool wml_parse_u64(struct wml_str s, uint64_t *out);
bool wml_parse_f64(struct wml_str s, double *out); /* '.' whatever the locale; inf and nan accepted */

/* false on overflow; *out is then unchanged. */
bool wml_mul_size(size_t a, size_t b, size_t *out);
bool wml_add_size(size_t a, size_t b, size_t *out);
bool wml_mul_i64(int64_t a, int64_t b, int64_t *out);
bool wml_to_size(uint64_t v, size_t *out);
/* Elements of a tensor with these sizes. false, *count 0: one is negative, or the product fits no size_t. */
bool wml_dims_count(const int64_t *dim, size_t rank, uint64_t *count);

#endif
