/* base/err.c - formatting of failures into their fixed buffers; long text is cut, never lost whole. */
#include "base/err.h"

#include <stdarg.h>

bool wml_fail(struct wml_err *err, enum wml_code code, const char *fmt, ...)
{
    if (!err) return false;
    va_list ap;
    va_start(ap, fmt);
    char text[sizeof err->msg];
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    err->code = code;
    memcpy(err->msg, text, sizeof text); /* through a buffer: an argument may be err->msg itself */
    err->hint[0] = '\0';
    return false;
}

bool wml_wrap(struct wml_err *err, const char *fmt, ...)
{
    if (!err) return false;
    va_list ap;
    va_start(ap, fmt);
    char text[sizeof err->msg];
    int used = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (used < 0) return false;
    size_t at = WML_MIN((size_t)used, sizeof text - 1);
    int room = (int)(sizeof text - at);
    snprintf(text + at, (size_t)room, ": %.*s", WML_MAX(room - 3, 0), err->msg);
    memcpy(err->msg, text, sizeof text);
    return false;
}

bool wml_hint(struct wml_err *err, const char *fmt, ...)
{
    if (!err || err->hint[0]) return false;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(err->hint, sizeof err->hint, fmt, ap);
    va_end(ap);
    return false;
}

const char *wml_code_name(enum wml_code code)
{
    static const char *const names[] = {
        [WML_OK] = "ok",
        [WML_E_USAGE] = "usage",
        [WML_E_NOT_FOUND] = "not_found",
        [WML_E_EXISTS] = "exists",
        [WML_E_IO] = "io",
        [WML_E_FORMAT] = "format",
        [WML_E_UNSUPPORTED] = "unsupported",
        [WML_E_MEMORY] = "memory",
        [WML_E_RUNTIME] = "runtime",
        [WML_E_LOAD] = "model_load",
        [WML_E_RUN] = "inference",
        [WML_E_TRACE] = "op_trace",
        [WML_E_CHILD] = "child",
        [WML_E_TIMEOUT] = "timeout",
        [WML_E_VERIFY] = "verify",
        [WML_E_FALLBACK] = "fallback",
        [WML_E_CANCELLED] = "cancelled", [WML_E_INTERRUPTED] = "interrupted",
        [WML_E_INTERNAL] = "internal",
    };
    return (size_t)code < WML_COUNT(names) ? names[code] : "unknown";
}
