/* quant/kernel.h - arrays of numbers become other types, at the speed of memory.
 *
 * Every kernel is plain C over restrict pointers, which compilers turn into vectors; where it was measured to pay, the
 * same C (or, for half floats, the processor's own conversion) is there a second time for AVX2 and chosen while winml
 * runs. All variants give the same bits. What is read may lie at any address (weights in files do); what is written has the
 * alignment of its type, and does not overlap it. */
#ifndef WML_QUANT_KERNEL_H
#define WML_QUANT_KERNEL_H

#include <stddef.h>
#include <stdint.h>
#include "base/dtype.h"

/* float32 to float16 as model converters do it: nothing but 0 becomes 0 (the smallest subnormal instead), nothing finite
 * becomes infinite (65504 instead), signs stay, NaN stays NaN. Else to nearest even. */
void wml_kernel_f16(const void *x, size_t n, uint16_t *out);
/* float32 to bfloat16, to nearest even; nothing finite becomes infinite. */
void wml_kernel_bf16(const void *x, size_t n, uint16_t *out);
/* float16 and bfloat16 to float32; exact. */
void wml_kernel_from_f16(const void *x, size_t n, float *out);
void wml_kernel_from_bf16(const void *x, size_t n, float *out);

/* Linear quantisation of an array with channels along one axis:
 *     q = saturate(round_half_even(x / scale) + zero)       in float32, as ONNX Runtime's quantizer; NaN gives zero
 * Element i belongs to channel i / inner % n. */
struct wml_linear {
    enum wml_dtype type; /* (u)int4, (u)int8, (u)int16 */
    size_t n, inner;     /* 1, 1: one scale for all */
    const float *scale;  /* n of each; a scale is positive */
    const int32_t *zero; /* of the type */
};
/* Elements [first, first + count) of an array of float32, float16 or bfloat16 that starts at x; out gets them alone.
 * Two 4-bit integers share a byte, the low half first: first must be even then. */
void wml_kernel_linear(const struct wml_linear *l, enum wml_dtype from, const void *x, size_t first, size_t count, void *out);

#endif
