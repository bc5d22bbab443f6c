/* quant/kernel_block.h - float matrices as small integers in blocks, each with its own scale; see quant/kernel.h.
 *
 * The blocks of com.microsoft::MatMulNBits: `size` elements down a column of a matrix [k, n], the last one shorter. Whole
 * numbers q of 4 or 8 bits stand for scale * (q - zero):
 *     symmetric  scale = -m / 2^(bits-1), m the element of largest magnitude with its sign; zero = 2^(bits-1)
 *     else       scale = (high - low) / (2^bits - 1), zero = round(-low / scale), low and high including 0
 *     q          saturate(round(x * (1 / scale) + zero)), where 1 / 0 is 0
 * in float32, halves away from zero. Scales of a float16 matrix are rounded to float16 before they are used. Step by step
 * this is what ONNX Runtime's quantizer does, so the bits are the same. */
#ifndef WML_QUANT_KERNEL_BLOCK_H
#define WML_QUANT_KERNEL_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/dtype.h"

struct wml_blocks {
    enum wml_dtype from; /* float32, float16, bfloat16 */
    enum wml_dtype stored; /* WML_UNDEFINED: x is the matrix. Else x is the matrix turned, [n, k], in this type */
    size_t k, n;         /* rows, columns; rows lie one after another */
    size_t size;         /* 16, 32, 64, 128, 256 */
    unsigned bits;       /* 4, 8 */
    bool symmetric;
};

static inline size_t wml_blocks_down(const struct wml_blocks *b) /* blocks of a column */
{
    return b->k / b->size + (b->k % b->size != 0);
}

/* scale and zero of every block, [n, blocks down]. zero may be NULL when symmetric. false: an element or a scale is not
 * finite. x may lie at any address. */
bool wml_kernel_block_scales(const struct wml_blocks *b, const void *x, float *scale, uint8_t *zero);
/* Bytes [offset, offset + len) of the integers [n, blocks down, size * bits / 8]: two of 4 bits share a byte, the low half
 * first; elements beyond k are 0. Both are multiples of the bytes of a block. */
void wml_kernel_block_pack(const struct wml_blocks *b, const void *x, const float *scale, const uint8_t *zero, size_t offset, size_t len,
                           unsigned char *out);

#endif
