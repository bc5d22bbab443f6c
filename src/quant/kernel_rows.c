/* Blocks of a matrix that is stored turned, as checkpoints store linear layers: every block lies in one piece, and no panel
 * has to be turned. The bits are those of the same matrix given as [k, n] in the type `from` (kernel_block.h). */
#include "quant/kernel_block.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/cc.h"
#include "quant/kernel.h"
#include "quant/kernel_cpu.h"
#include "quant/kernel_rows.h"

#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF /* a fused x * r + z rounds once: other bits */
#endif

enum { BLOCK = 256 };
static const float ALMOST_HALF = 0.49999997f;

/* Elements [k, k + m) of column c as float32. */
static void load(const struct wml_blocks *b, const unsigned char *x, size_t c, size_t k, size_t m, float *out)
{
    const size_t at = c * b->k + k;
    uint16_t half[BLOCK];
    if (b->stored == WML_F32) memcpy(out, x + at * sizeof *out, m * sizeof *out);
    else if (b->stored == WML_F16) wml_kernel_from_f16(x + at * sizeof *half, m, out);
    else wml_kernel_from_bf16(x + at * sizeof *half, m, out);
    if (b->from != WML_F16 || b->stored == WML_F16) return;
    wml_kernel_f16(out, m, half);
    wml_kernel_from_f16(half, m, out);
}

bool wml_kernel_row_scales(const struct wml_blocks *b, const void *x, float *scale, uint8_t *zero)
{
    const size_t down = wml_blocks_down(b);
    float v[BLOCK];
    uint8_t z;
    for (size_t c = 0; c < b->n; c++)
        for (size_t i = 0; i < down; i++) {
            const size_t m = WML_MIN(b->size, b->k - i * b->size);
            float low = FLT_MAX, high = -FLT_MAX;
            bool finite = true;
            load(b, x, c, i * b->size, m, v);
            for (size_t k = 0; k < m; k++) {
                finite &= v[k] - v[k] == 0;
                low = v[k] < low ? v[k] : low;
                high = v[k] > high ? v[k] : high;
            }
            float s = wml_kernel_block_scale(b, low, high, zero ? &zero[c * down + i] : &z);
            if (b->from == WML_F16) s = wml_half_to_float(wml_float_to_half(s));
            scale[c * down + i] = s;
            if (!finite || !isfinite(s)) return false;
        }
    return true;
}

static WML_INLINE void whole(const float *restrict x, size_t m, float scale, float zero, float top, uint8_t *restrict out)
{
    const float by = scale != 0 ? 1 / scale : 0;
    for (size_t i = 0; i < m; i++) {
        float v = x[i] * by + zero;
        v = v > 0 ? v : 0;
        v = v < top ? v : top;
        out[i] = (uint8_t)(int32_t)(v + ALMOST_HALF);
    }
}

static void whole_c(const float *x, size_t m, float scale, float zero, float top, uint8_t *out)
{
    whole(x, m, scale, zero, top, out);
}

WML_AVX2 static void whole_avx2(const float *x, size_t m, float scale, float zero, float top, uint8_t *out)
{
    whole(x, m, scale, zero, top, out);
}

/* The integer of element k of column c. */
static uint8_t one(const struct wml_blocks *b, const unsigned char *x, const float *scale, const uint8_t *zero, size_t c, size_t k)
{
    const size_t at = c * wml_blocks_down(b) + k / b->size;
    const float top = (float)((1u << b->bits) - 1);
    float v;
    uint8_t q;
    load(b, x, c, k, 1, &v);
    whole_c(&v, 1, scale[at], zero ? (float)zero[at] : (float)(1u << (b->bits - 1)), top, &q);
    return q;
}

void wml_kernel_row_pack(const struct wml_blocks *b, const void *x, const float *scale, const uint8_t *zero, size_t offset, size_t len,
                         unsigned char *out)
{
    const size_t down = wml_blocks_down(b), size = b->size * b->bits / 8, end = (offset + len) / size;
    const float top = (float)((1u << b->bits) - 1);
    const bool avx2 = WML_HAS_AVX2;
    float v[BLOCK];
    uint8_t q[BLOCK + 1];
    for (size_t at = offset / size; at < end; at++, out += size) {
        const size_t c = at / down, i = at % down, m = WML_MIN(b->size, b->k - i * b->size);
        load(b, x, c, i * b->size, m, v);
        (avx2 ? whole_avx2 : whole_c)(v, m, scale[at], zero ? (float)zero[at] : (float)(1u << (b->bits - 1)), top, q);
        memset(q + m, 0, sizeof q - m);
        /* The last of an odd number shares its byte with the element before it, as in ONNX Runtime, unless a pair of blocks begins there. */
        if (m % 2 && b->bits == 4 && (b->k - 1) % (2 * b->size)) q[m] = one(b, x, scale, zero, c, b->k - 2);
        if (b->bits == 8) memcpy(out, q, size);
        else
            for (size_t k = 0; k < size; k++) out[k] = (unsigned char)(q[2 * k] | q[2 * k + 1] << 4);
    }
}
