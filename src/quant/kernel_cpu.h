/* quant/kernel_cpu.h - kernels in a second variant for AVX2 (with F16C: every processor that has the one has the other).
 *
 *     static WML_INLINE void twice(const float *x, size_t n, float *out) { ... }       the body, in C
 *     WML_AVX2 static void twice_avx2(const float *x, size_t n, float *out) { twice(x, n, out); }
 *     ... if (WML_HAS_AVX2) twice_avx2(x, n, out); else twice(x, n, out);
 *
 * Only what is measured to be faster that way has one. Elsewhere than on x86-64 WML_HAS_AVX2 is false. */
#ifndef WML_QUANT_KERNEL_CPU_H
#define WML_QUANT_KERNEL_CPU_H

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define WML_X86 1
#define WML_AVX2 __attribute__((target("avx2,f16c")))
#define WML_HAS_AVX2 (__builtin_cpu_supports("avx2"))
#else
#define WML_X86 0
#define WML_AVX2
#define WML_HAS_AVX2 0
#endif

#if defined(__GNUC__)
#define WML_INLINE inline __attribute__((always_inline))
#else
#define WML_INLINE inline
#endif

#endif
