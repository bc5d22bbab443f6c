/* base/err.h - one failure: its kind, what happened, what to try next.
 *
 * Zero it before use; it never allocates. wml_fail, wml_wrap and wml_hint return false, so
 * `return wml_fail(...)` is the whole error path. err may be NULL where the caller does not care. */
#ifndef WML_BASE_ERR_H
#define WML_BASE_ERR_H

#include <stdbool.h>
#include "base/cc.h"

enum wml_code {
    WML_OK = 0,
    WML_E_USAGE,       /* the command line or an option file is wrong (exit 2) */
    WML_E_NOT_FOUND,   /* a file, EP, device or name is not there */
    WML_E_EXISTS,      /* the output is already there */
    WML_E_IO,          /* the system could not read or write */
    WML_E_FORMAT,      /* bytes that do not follow their format */
    WML_E_UNSUPPORTED, /* valid, but winml or the runtime cannot do it */
    WML_E_MEMORY,      /* a size from the input could not be allocated */
    WML_E_RUNTIME,     /* ORT or an EP reported a failure */
    WML_E_LOAD,        /* the model could not be loaded on the EP (exit 3) */
    WML_E_RUN,         /* inference failed (exit 4) */
    WML_E_TRACE,       /* operator tracing was asked for and gave no data (exit 4) */
    WML_E_CHILD,       /* a child process crashed or broke its protocol */
    WML_E_TIMEOUT,     /* a child process or a wait took too long */
    WML_E_VERIFY,      /* results differ more than allowed */
    WML_E_FALLBACK,    /* too few nodes on the wanted EP (exit 5) */
    WML_E_CANCELLED,   /* Ctrl-C */
    WML_E_INTERRUPTED, /* Ctrl-C, and what was done until then is written (exit 130) */
    WML_E_INTERNAL     /* a bug of ours */
};

struct wml_err {
    enum wml_code code;
    char msg[1024];
    char hint[512];
};

/* Sets code and message and clears the hint. */
bool wml_fail(struct wml_err *err, enum wml_code code, const char *fmt, ...) WML_PRINTF(3, 4);
/* Puts "context: " before the message. */
bool wml_wrap(struct wml_err *err, const char *fmt, ...) WML_PRINTF(2, 3);
/* Sets the hint unless a deeper caller already gave one. */
bool wml_hint(struct wml_err *err, const char *fmt, ...) WML_PRINTF(2, 3);
/* Lower-case word for the code, for JSON and logs, e.g. "format". */
const char *wml_code_name(enum wml_code code);

#endif
