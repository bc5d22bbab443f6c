/* quant/derive.h - weights in a smaller type, as DERIVED tensors (graph/tensor.h): computed while the file is written. */
#ifndef WML_QUANT_DERIVE_H
#define WML_QUANT_DERIVE_H

#include "graph/tensor.h"

/* source, a tensor of floats, as integers: quant/kernel.h has the formula. axis -1: one scale and zero point (n 1); else
 * n is the size of that axis. scale and zero are copied; scales are rounded to float32. NULL with *err set when the sizes
 * of the source do not hold. */
struct wml_tensor *wml_quant_derive_linear(struct wml_model *m, struct wml_tensor *source, enum wml_dtype type, int64_t axis, size_t n,
                                           const double *scale, const int32_t *zero, struct wml_err *err);
/* Factors of a tensor seen as [first, second, inner] (quant/layer.h): element (a, b, k) times by_first[a] and
 * by_second[a / (first / groups) * second + b]; NULL: 1. */
struct wml_scaling { size_t first, second, inner, groups; const double *by_first, *by_second; };
/* source, float32, times factors, rounded once. They are copied. A source that is DERIVED itself is computed, and kept. */
struct wml_tensor *wml_quant_derive_scaled(struct wml_model *m, struct wml_tensor *source, const struct wml_scaling *s, struct wml_err *err);
/* source, float32, as WML_F16 or WML_BF16. */
struct wml_tensor *wml_quant_derive_half(struct wml_model *m, struct wml_tensor *source, enum wml_dtype type, struct wml_err *err);

#endif
