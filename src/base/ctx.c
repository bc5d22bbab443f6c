/* base/ctx.c - calls through the sinks of a context; every sink may be absent. */
#include "base/ctx.h"

#include <stdarg.h>

void wml_log(struct wml_ctx *cx, enum wml_log_level level, const char *fmt, ...)
{
    if (!cx || !cx->log || level > cx->level) return;
    char text[2048];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    cx->log(cx->sink, level, text);
}

void wml_note_progress(struct wml_ctx *cx, const char *stage, const char *item, uint64_t done,
                       uint64_t total, const char *unit)
{
    if (!cx || !cx->progress) return;
    cx->progress(cx->sink, &(struct wml_progress){stage, item, done, total, unit});
}

void wml_end_progress(struct wml_ctx *cx)
{
    if (cx && cx->progress) cx->progress(cx->sink, NULL);
}

bool wml_check_cancel(const struct wml_ctx *cx, struct wml_err *err)
{
    if (cx && cx->cancel && atomic_load(cx->cancel))
        return wml_fail(err, WML_E_CANCELLED, "Aborted!");
    return true;
}
