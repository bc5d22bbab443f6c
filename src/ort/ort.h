/* ort/ort.h - ONNX Runtime behind a seam: only src/ort sees its headers. The library is loaded when the
 * first function needs it. Everything here belongs to one thread unless said. Handles are freed in the
 * order results, sessions, runtime. */
#ifndef WML_ORT_ORT_H
#define WML_ORT_ORT_H

#include "ort/device.h"
#include "ort/session.h"

struct wml_ort_info {
    const char *version; /* "1.29.0" */
    const char *path;    /* of the library that was loaded */
    unsigned api_version;
    size_t bytes; /* size of that file */
};

/* Loads ORT on the first call and keeps it in cx->ort. Searched: WINML_ORT (a file), ONNXRUNTIME_ROOT/lib,
 * <program>/../lib/winml, <program>'s folder, the build cache, the system loader. WML_E_NOT_FOUND lists
 * the places; a library that is too old is named with its version. Log lines of ORT go to cx->log when
 * cx->show_native, else the newest are kept for wml_ort_last_log. */
bool wml_ort_open(struct wml_ctx *cx, struct wml_ort **out, struct wml_err *err);
void wml_ort_close(struct wml_ctx *cx);
/* The folder that scripts/setup fills with ORT and EPs: WINML_DEPS, or winml-build in the user's cache. */
bool wml_ort_build_cache(struct wml_buf *out);
struct wml_ort_info wml_ort_info(const struct wml_ort *o);
/* Warnings and errors that ORT and EPs logged since the last call to clear, newest last, at most 16 KiB;
 * valid until the next call. cx->log may be called from threads of ORT, one line at a time. */
struct wml_str wml_ort_last_log(struct wml_ort *o);
void wml_ort_clear_log(struct wml_ort *o);

/* The part of a message of ORT, or of a library above it, that people can use: one line, without C++ locations. */
void wml_ort_clean_message(const char *raw, struct wml_buf *out);

/* --- compiling --- */

struct wml_compile_opts {
    struct wml_session_opts session;
    bool embed;         /* the context inside the model */
    const char *output; /* path of the compiled model */
};
/* ORT's compile API. The EP writes the files; fails when no node was compiled. */
bool wml_ort_compile(struct wml_ort *o, const struct wml_model_source *m, const struct wml_compile_opts *opts,
                     struct wml_err *err);

#endif
