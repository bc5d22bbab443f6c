/* Nanoseconds per element of the quantizer's kernels, beside a copy of the same floats: bench_kernels [SECONDS EACH]. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/num.h"
#include "base/rng.h"
#include "quant/kernel.h"
#include "quant/kernel_block.h"

enum { K = 3072, N = 6144 }; /* 75 MB of float32: more than caches hold */

struct data {
    float *x, *scale;
    unsigned char *out;
    uint8_t *zero;
    struct wml_blocks b;
};

static double now(void)
{
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void copy(const struct data *d)
{
    memcpy(d->out, d->x, (size_t)K * N * sizeof *d->x);
}

static void half(const struct data *d)
{
    wml_kernel_f16(d->x, (size_t)K * N, (uint16_t *)(void *)d->out);
}

static void int8(const struct data *d)
{
    const float scale = 0.03f;
    const int32_t zero = 128;
    struct wml_linear l = {.type = WML_U8, .n = 1, .inner = 1, .scale = &scale, .zero = &zero};
    wml_kernel_linear(&l, WML_F32, d->x, 0, (size_t)K * N, d->out);
}

static void scales(const struct data *d)
{
    if (!wml_kernel_block_scales(&d->b, d->x, d->scale, d->zero)) exit(1);
}

static void pack(const struct data *d) /* in the pieces in which files are written */
{
    const size_t all = (size_t)K * N * d->b.bits / 8, piece = (size_t)1 << 18;
    for (size_t at = 0; at < all; at += piece)
        wml_kernel_block_pack(&d->b, d->x, d->scale, d->zero, at, at + piece < all ? piece : all - at, d->out + at);
}

static void measure(const char *name, void (*f)(const struct data *d), const struct data *d, double seconds)
{
    double best = 1e9, start = now();
    do {
        double t = now();
        f(d);
        t = now() - t;
        best = t < best ? t : best;
    } while (now() - start < seconds);
    printf("%-28s %6.3f ns/element %6.1f GB/s of float32\n", name, best * 1e9 / ((double)K * N), (double)K * N * 4 / best / 1e9);
}

int main(int argc, char **argv)
{
    double seconds = 0.5;
    struct wml_rng r = {1};
    struct data d = {.x = malloc((size_t)K * N * sizeof(float)), .out = malloc((size_t)K * N * sizeof(float)),
                     .scale = malloc((size_t)K * N / 16 * sizeof(float)), .zero = malloc((size_t)K * N / 16)};
    if (argc > 1 && !wml_parse_f64(wml_str(argv[1]), &seconds)) return 2;
    if (!d.x || !d.out || !d.scale || !d.zero) return 1;
    for (size_t i = 0; i < (size_t)K * N; i++) d.x[i] = (float)((double)(wml_rng_u64(&r) >> 40) / 16777216.0 - 0.5);
    measure("copy", copy, &d, seconds);
    measure("float16", half, &d, seconds);
    measure("uint8", int8, &d, seconds);
    for (unsigned bits = 4; bits <= 8; bits += 4)
        for (size_t size = 16; size <= 256; size *= 4) {
            char name[64];
            d.b = (struct wml_blocks){.from = WML_F32, .k = K, .n = N, .size = size, .bits = bits, .symmetric = true};
            snprintf(name, sizeof name, "%u bits, blocks of %zu: scales", bits, size);
            measure(name, scales, &d, seconds);
            snprintf(name, sizeof name, "%u bits, blocks of %zu: pack", bits, size);
            measure(name, pack, &d, seconds);
        }
    free(d.x);
    free(d.out);
    free(d.scale);
    free(d.zero);
    return 0;
}
