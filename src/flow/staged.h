/* flow/staged.h - a model file that appears whole or not at all: written into a private folder beside its final place,
 * looked at there, then renamed. Files that the source keeps weights in are never replaced, unless the output is the
 * source itself.
 *
 *     wml_staged_prepare -> (source loaded) wml_staged_guard -> wml_staged_write -> (verify s.path) -> wml_staged_publish
 */
#ifndef WML_FLOW_STAGED_H
#define WML_FLOW_STAGED_H

#include "onnx/onnx.h"

struct wml_staged { /* zero it */
    struct wml_arena arena;
    const char *source, *output, *dir, *name; /* set by prepare */
    const char *stage;                        /* the private folder; NULL: not made yet */
    const char *path;                         /* of the model in it */
    bool overwrite;
    uint64_t bytes_before, bytes_after;       /* model and data files */
    struct wml_onnx_saved saved;
    WML_VEC(const char *) source_data;
};

/* Checks the final name (flow/output.h). Before any work. */
bool wml_staged_prepare(struct wml_staged *s, const char *source, const char *output, bool overwrite, struct wml_err *err);
/* Notes the files of the source, once, and refuses an output that is one of its data files. Without an output: notes. */
bool wml_staged_guard(struct wml_staged *s, struct wml_model *source, struct wml_err *err);
/* The same refusal for another file that the command writes. */
bool wml_staged_guard_file(const struct wml_staged *s, const char *path, struct wml_err *err);
/* prefix: of the private folder, ".winml-quantize-". Notes progress. */
bool wml_staged_write(struct wml_staged *s, struct wml_model *m, const char *prefix, struct wml_ctx *cx, struct wml_err *err);
/* Both files or none: on failure what was there is there again. A data file that only the replaced model used goes. */
bool wml_staged_publish(struct wml_staged *s, struct wml_err *err);
/* Errors speak of the user's folder; what is left of the private one goes. */
void wml_staged_release(struct wml_staged *s, struct wml_err *err);

#endif
