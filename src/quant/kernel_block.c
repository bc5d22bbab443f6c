/* Blocks down the columns of a matrix. The matrix is read by rows, PANEL columns at a time, since a column has its elements
 * in as many lines of the cache: a strip of integers is made row by row, then turned.
 *
 * Halves are rounded away from zero by adding the float before 0.5 to a number that is not negative, and cutting. */
#include "quant/kernel_block.h"

#include <float.h>
#include <string.h>

#include "base/cc.h"
#include "quant/kernel.h"
#include "quant/kernel_cpu.h"
#include "quant/kernel_rows.h"

#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF /* a fused x * r + z rounds once: other bits */
#endif

enum { WIDE = 2048, PANEL = 256, STRIP = 64, TURN = 8, LINE = 64, AHEAD = 4, FINITE = 0x7f800000 };
static const float ALMOST_HALF = 0.49999997f;

static WML_INLINE float load(const unsigned char *x, size_t i)
{
    float v;
    memcpy(&v, x + i * sizeof v, sizeof v); /* weights lie in files at any address */
    return v;
}

/* Elements of row k from column c on, as float32: where they lie, or in room. A later row is asked for, since processors do
 * not foresee what lies a row further. */
static const unsigned char *row(const struct wml_blocks *b, const unsigned char *x, size_t k, size_t c, size_t m, float *room)
{
    const size_t at = k * b->n + c, width = b->from == WML_F32 ? sizeof(float) : sizeof(uint16_t);
    if (k + AHEAD < b->k)
        for (size_t i = 0; i < m * width; i += LINE) WML_PREFETCH(x + (at + AHEAD * b->n) * width + i);
    if (b->from == WML_F32) return x + at * sizeof(float);
    if (b->from == WML_F16) wml_kernel_from_f16(x + at * sizeof(uint16_t), m, room);
    else wml_kernel_from_bf16(x + at * sizeof(uint16_t), m, room);
    return (const unsigned char *)room;
}

/* --- scales --- */

struct range { float low[WIDE], high[WIDE]; };

/* Takes a row in; what is returned is 0 when it is finite. */
static WML_INLINE int32_t widen(const unsigned char *restrict x, size_t m, float *restrict low, float *restrict high)
{
    int32_t odd = 0;
    for (size_t i = 0; i < m; i++) {
        float v = load(x, i);
        int32_t u;
        memcpy(&u, &v, sizeof u);
        odd |= -((u & FINITE) == FINITE);
        low[i] = v < low[i] ? v : low[i];
        high[i] = v > high[i] ? v : high[i];
    }
    return odd;
}

static int32_t widen_c(const unsigned char *x, size_t m, struct range *r)
{
    return widen(x, m, r->low, r->high);
}

WML_AVX2 static int32_t widen_avx2(const unsigned char *x, size_t m, struct range *r)
{
    return widen(x, m, r->low, r->high);
}

float wml_kernel_block_scale(const struct wml_blocks *b, float low, float high, uint8_t *zero)
{
    const float top = (float)((1u << b->bits) - 1);
    if (b->symmetric) {
        float m = (high < 0 ? -high : high) > (low < 0 ? -low : low) ? high : low;
        *zero = (uint8_t)(1u << (b->bits - 1));
        return -m / (float)(1u << (b->bits - 1));
    }
    low = low < 0 ? low : 0;
    high = high > 0 ? high : 0;
    float scale = (high - low) / top, z = scale != 0 ? 0 - low / scale : 0;
    z = z < top ? z : top;
    *zero = (uint8_t)(z + ALMOST_HALF);
    return scale;
}

/* Block i of the columns [c, c + m). */
static bool panel_scales(const struct wml_blocks *b, const unsigned char *x, size_t i, size_t c, size_t m, float *scale, uint8_t *zero)
{
    const size_t down = wml_blocks_down(b), end = WML_MIN((i + 1) * b->size, b->k);
    const bool avx2 = WML_HAS_AVX2;
    struct range r;
    float room[WIDE];
    uint8_t z;
    int32_t odd = 0;
    for (size_t k = 0; k < m; k++) {
        r.low[k] = FLT_MAX;
        r.high[k] = -FLT_MAX;
    }
    for (size_t k = i * b->size; k < end; k++) odd |= (avx2 ? widen_avx2 : widen_c)(row(b, x, k, c, m, room), m, &r);
    for (size_t k = 0; k < m; k++) {
        float s = wml_kernel_block_scale(b, r.low[k], r.high[k], zero ? &zero[(c + k) * down + i] : &z);
        if (b->from == WML_F16) s = wml_half_to_float(wml_float_to_half(s));
        scale[(c + k) * down + i] = s;
        odd |= -!(s >= -FLT_MAX && s <= FLT_MAX);
    }
    return !odd;
}

bool wml_kernel_block_scales(const struct wml_blocks *b, const void *x, float *scale, uint8_t *zero)
{
    bool finite = true;
    if (b->stored) return wml_kernel_row_scales(b, x, scale, zero);
    for (size_t i = 0; finite && i < wml_blocks_down(b); i++)
        for (size_t c = 0; finite && c < b->n; c += WIDE) finite = panel_scales(b, x, i, c, WML_MIN(b->n - c, (size_t)WIDE), scale, zero);
    return finite;
}

/* --- integers --- */

/* 1 / scale and zero point of one block of each column. The limits are variables, 0 among them: of a constant, compilers make
 * branches. */
struct columns { float low, top, by[PANEL], zero[PANEL]; };

static WML_INLINE float reciprocal(float scale)
{
    return scale != 0 ? 1 / scale : 0;
}

static WML_INLINE float zero_of(const struct wml_blocks *b, const uint8_t *zero, size_t at)
{
    return zero ? (float)zero[at] : (float)(1u << (b->bits - 1));
}

static WML_INLINE int32_t whole(const unsigned char *x, size_t i, float by, float zero, float low, float top)
{
    float v = load(x, i) * by + zero;
    v = v > low ? v : low; /* a product of 0 and infinity, too */
    v = v < top ? v : top;
    return (int32_t)(v + ALMOST_HALF);
}

/* One row of bytes from two rows of the matrix, or (8 bits) from one. */
static WML_INLINE void bytes(const unsigned char *restrict x, const unsigned char *restrict y, size_t m, const struct columns *restrict q,
                             uint8_t *restrict out)
{
    const float low = q->low, top = q->top;
    if (!y)
        for (size_t i = 0; i < m; i++) out[i] = (uint8_t)whole(x, i, q->by[i], q->zero[i], low, top);
    else
        for (size_t i = 0; i < m; i++)
            out[i] = (uint8_t)(whole(x, i, q->by[i], q->zero[i], low, top) | whole(y, i, q->by[i], q->zero[i], low, top) << 4);
}

static void bytes_c(const unsigned char *x, const unsigned char *y, size_t m, const struct columns *q, uint8_t *out)
{
    bytes(x, y, m, q, out);
}

WML_AVX2 static void bytes_avx2(const unsigned char *x, const unsigned char *y, size_t m, const struct columns *q, uint8_t *out)
{
    bytes(x, y, m, q, out);
}

/* Swaps the blocks of bytes that `mask` keeps in b with those `shift` bits higher in a. */
static WML_INLINE void swap(uint64_t *a, uint64_t *b, unsigned shift, uint64_t mask)
{
    uint64_t t = (*a >> shift ^ *b) & mask;
    *b ^= t;
    *a ^= t << shift;
}

/* 8 x 8 bytes, the rows PANEL apart, become columns `step` apart. */
static void turn8(const uint8_t *in, unsigned char *out, size_t step)
{
    uint64_t a[TURN];
    for (size_t i = 0; i < TURN; i++) memcpy(&a[i], in + i * PANEL, sizeof a[i]);
    for (size_t i = 0; i < 4; i++) swap(&a[i], &a[i + 4], 32, 0x00000000ffffffff);
    for (size_t i = 0; i < TURN; i += i % 2 ? 3 : 1) swap(&a[i], &a[i + 2], 16, 0x0000ffff0000ffff);
    for (size_t i = 0; i < TURN; i += 2) swap(&a[i], &a[i + 1], 8, 0x00ff00ff00ff00ff);
    for (size_t i = 0; i < TURN; i++) memcpy(out + i * step, &a[i], sizeof a[i]);
}

/* `rows` (a multiple of TURN) rows of m bytes become m columns. */
static void turn(const uint8_t *in, size_t rows, size_t m, unsigned char *out, size_t step)
{
    size_t c = 0;
    for (; c + TURN <= m; c += TURN)
        for (size_t r = 0; r < rows; r += TURN) turn8(in + r * PANEL + c, out + c * step + r, step);
    for (; c < m; c++)
        for (size_t r = 0; r < rows; r++) out[c * step + r] = in[r * PANEL + c];
}

/* The last of an odd number of 4-bit elements shares its byte with none. ONNX Runtime leaves the element before it there,
 * unless a pair of blocks begins with it. */
static void lonely(const struct wml_blocks *b, const unsigned char *x, const float *scale, const uint8_t *zero, size_t c, size_t m, uint8_t *out)
{
    const size_t down = wml_blocks_down(b), k = b->k - 2;
    float room[PANEL];
    for (size_t i = 0; i < m; i++) out[i] &= 15;
    if (k + 1 == 0 || (k + 1) % (2 * b->size) == 0) return;
    const unsigned char *before = row(b, x, k, c, m, room);
    for (size_t i = 0; i < m; i++) {
        size_t at = (c + i) * down + k / b->size;
        out[i] |= (uint8_t)(whole(before, i, reciprocal(scale[at]), zero_of(b, zero, at), 0, 15) << 4);
    }
}

struct job { const struct wml_blocks *b; const unsigned char *x; const float *scale; const uint8_t *zero; };

/* Rows of bytes [from, to) of block i, columns [c, c + m). */
static void strip(const struct job *w, size_t i, size_t from, size_t to, size_t c, size_t m, const struct columns *q, uint8_t *out)
{
    const struct wml_blocks *b = w->b;
    const size_t per = 8 / b->bits;
    const bool avx2 = WML_HAS_AVX2;
    float room[2][PANEL];
    for (size_t j = from; j < to; j++, out += PANEL) {
        size_t k = i * b->size + j * per;
        if (k >= b->k) {
            memset(out, 0, m);
            continue;
        }
        const unsigned char *first = row(b, w->x, k, c, m, room[0]), *second = NULL;
        if (per == 2) second = k + 1 < b->k ? row(b, w->x, k + 1, c, m, room[1]) : first;
        (avx2 ? bytes_avx2 : bytes_c)(first, second, m, q, out);
        if (per == 2 && k + 1 == b->k) lonely(b, w->x, w->scale, w->zero, c, m, out);
    }
}

/* Blocks [i, to) of columns [c, c + m), m <= PANEL; block i of column c goes to out. */
static void panel(const struct job *w, size_t i, size_t to, size_t c, size_t m, unsigned char *out)
{
    const size_t down = wml_blocks_down(w->b), size = w->b->size * w->b->bits / 8;
    struct columns q = {.low = 0, .top = (float)((1u << w->b->bits) - 1)};
    uint8_t tile[STRIP * PANEL];
    for (; i < to; i++, out += size) {
        for (size_t k = 0; k < m; k++) {
            q.by[k] = reciprocal(w->scale[(c + k) * down + i]);
            q.zero[k] = zero_of(w->b, w->zero, (c + k) * down + i);
        }
        for (size_t at = 0; at < size; at += STRIP) {
            size_t end = WML_MIN(at + STRIP, size);
            strip(w, i, at, end, c, m, &q, tile);
            turn(tile, end - at, m, out + at, down * size);
        }
    }
}

void wml_kernel_block_pack(const struct wml_blocks *b, const void *x, const float *scale, const uint8_t *zero, size_t offset, size_t len,
                           unsigned char *out)
{
    const size_t down = wml_blocks_down(b), size = b->size * b->bits / 8, end = (offset + len) / size;
    const struct job w = {b, x, scale, zero};
    if (b->stored) {
        wml_kernel_row_pack(b, x, scale, zero, offset, len, out);
        return;
    }
    for (size_t at = offset / size, next; at < end; out += (next - at) * size, at = next) {
        size_t c = at / down, i = at % down, columns = (end - at) / down;
        if (i || !columns) { /* a column that an earlier or later piece has the rest of */
            next = WML_MIN(end, (c + 1) * down);
            panel(&w, i, i + next - at, c, 1, out);
        } else {
            columns = WML_MIN(columns, (size_t)PANEL);
            next = at + columns * down;
            panel(&w, 0, down, c, columns, out);
        }
    }
}
