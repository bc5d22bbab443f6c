/* base/ctx.h - what a long operation needs from its surroundings: where log lines and progress go,
 * whether the user asked to stop, where caches are. Passed down, never global. Zero is valid: silent. */
#ifndef WML_BASE_CTX_H
#define WML_BASE_CTX_H

#include <stdatomic.h>
#include "base/str.h"

enum wml_log_level { WML_LOG_ERROR, WML_LOG_WARN, WML_LOG_INFO, WML_LOG_DEBUG };

struct wml_progress {
    const char *stage; /* "Loading", "Running", ... */
    const char *item;  /* what it works on now, or NULL */
    uint64_t done, total; /* total 0: unknown */
    const char *unit;  /* "runs", "nodes", "MB"; NULL: none */
};

struct wml_ort; /* ort/ort.h: opened on first use, see wml_ort_open */

struct wml_ctx {
    enum wml_log_level level;
    void *sink; /* handed to the two functions below */
    void (*log)(void *sink, enum wml_log_level level, const char *msg);
    /* Called often; the sink decides what it draws. A NULL progress ends the display. */
    void (*progress)(void *sink, const struct wml_progress *p);
    const atomic_bool *cancel; /* set by Ctrl-C */
    const char *cache_dir;     /* root of winml's cache; not created until needed */
    const char *program;       /* path of this executable, for child processes and files beside it */
    struct wml_ort *ort;
    bool show_native; /* -v: let ORT and EP log lines through */
};

void wml_log(struct wml_ctx *cx, enum wml_log_level level, const char *fmt, ...) WML_PRINTF(3, 4);
void wml_note_progress(struct wml_ctx *cx, const char *stage, const char *item, uint64_t done,
                       uint64_t total, const char *unit);
void wml_end_progress(struct wml_ctx *cx);
/* false with WML_E_CANCELLED once Ctrl-C was pressed. */
bool wml_check_cancel(const struct wml_ctx *cx, struct wml_err *err);

#endif
