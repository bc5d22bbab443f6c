/* base/cc.h - the few compiler features beyond C17 that winml uses, under names of its own. */
#ifndef WML_BASE_CC_H
#define WML_BASE_CC_H

#if defined(__MINGW32__)
#define WML_PRINTF(fmt, args) __attribute__((format(gnu_printf, fmt, args)))
#elif defined(__GNUC__)
#define WML_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define WML_PRINTF(fmt, args)
#endif

#if defined(__GNUC__)
#define WML_MUST_USE __attribute__((warn_unused_result))
#define WML_NORETURN __attribute__((noreturn))
#define WML_LIKELY(x) __builtin_expect(!!(x), 1)
#define WML_PREFETCH(p) __builtin_prefetch(p) /* will be read soon */
#else
#define WML_MUST_USE
#define WML_NORETURN
#define WML_LIKELY(x) (x)
#define WML_PREFETCH(p) ((void)(p))
#endif

#define WML_COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define WML_MIN(a, b) ((a) < (b) ? (a) : (b))
#define WML_MAX(a, b) ((a) > (b) ? (a) : (b))

#include "base/ban.h"

#endif
