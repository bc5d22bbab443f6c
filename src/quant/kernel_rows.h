/* quant/kernel_rows.h - what kernel_block.h does for matrices that are stored turned. Internal to the kernels. */
#ifndef WML_QUANT_KERNEL_ROWS_H
#define WML_QUANT_KERNEL_ROWS_H

#include "quant/kernel_block.h"

/* The scale of a block whose elements are low .. high, and its zero point. */
float wml_kernel_block_scale(const struct wml_blocks *b, float low, float high, uint8_t *zero);
bool wml_kernel_row_scales(const struct wml_blocks *b, const void *x, float *scale, uint8_t *zero);
void wml_kernel_row_pack(const struct wml_blocks *b, const void *x, const float *scale, const uint8_t *zero, size_t offset, size_t len,
                         unsigned char *out);

#endif
