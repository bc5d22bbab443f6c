/* quant/kernel_table.h - tables of floats as small integers in blocks along their rows; see quant/kernel.h.
 *
 * The blocks of com.microsoft::GatherBlockQuantized: `size` elements of a row [columns], the last one shorter. Integers of b
 * bits (4 or 8), taken as lying in 0 .. 2^b - 1, stand for scale * (q - zero):
 *     symmetric  scale = m / -2^(b-1), m the element of largest magnitude with its sign; zero = 2^(b-1)
 *                q = saturate(round(x / scale)) + zero
 *     else       scale = (high - low) / (2^b - 1), zero = saturate(round(-low / scale)), low and high including 0
 *                q = saturate(round(x / scale + zero))
 * halves to even, every step rounded to the table's own type; a scale of 0 gives q = zero = 2^(b-1). These are the steps of
 * ONNX Runtime's quantizer, which differ from those for matrices (quant/kernel_block.h). */
#ifndef WML_QUANT_KERNEL_TABLE_H
#define WML_QUANT_KERNEL_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/dtype.h"

struct wml_table {
    enum wml_dtype from; /* float32, float16 */
    size_t rows, columns;
    size_t size;
    unsigned bits;
    bool symmetric;
};

static inline size_t wml_table_blocks(const struct wml_table *t) /* of a row */
{
    return t->columns / t->size + (t->columns % t->size != 0);
}

/* scale and zero of every block, [rows, blocks]. false: an element or a scale is not finite. x may lie at any address. */
bool wml_kernel_table_scales(const struct wml_table *t, const void *x, float *scale, uint8_t *zero);
/* The integers of elements [first, first + count) of the whole table; with 4 bits two share a byte, the low half first, and
 * first is even. is_signed: less 2^(b-1), so that zero is 0 when symmetric. */
void wml_kernel_table_pack(const struct wml_table *t, const void *x, const float *scale, const uint8_t *zero, bool is_signed, size_t first,
                           size_t count, unsigned char *out);

#endif
