/* ort/internal.h - what the files of src/ort share. Nothing outside this folder includes it: ORT's
 * header must not leak. */
#ifndef WML_ORT_INTERNAL_H
#define WML_ORT_INTERNAL_H

#include <onnxruntime_c_api.h>
#include "os/sys.h"
#include "os/thread.h"
#include "ort/ort.h"

enum { WML_ORT_MIN_MINOR = 24, WML_ORT_LOG_MAX = 16384 };

struct wml_ort {
    struct wml_ctx *cx;
    struct wml_dl *dl;
    const OrtApi *api;
    const OrtCompileApi *compile;
    OrtEnv *env;
    OrtAllocator *alloc; /* ORT's default CPU allocator; not ours to free */
    OrtMemoryInfo *cpu;
    struct wml_arena arena; /* path, version, device lists, names: all live until close */
    struct wml_ort_info info;
    unsigned minor; /* 1.<minor>.x */
    struct wml_mutex *log_lock;
    struct wml_buf log, log_view;
    struct wml_buf refusal; /* an EP failed to say what it can run; ORT only logs that */
    const char *const *builtin;
    WML_VEC(struct wml_pair) library;    /* registered: name, file; in the arena */
    const struct wml_ort_device *device; /* NULL: to be listed again */
    size_t n_devices;
    bool devices_listed;
};

struct wml_session {
    struct wml_ort *o;
    OrtSession *session;
    struct wml_arena arena;
    struct wml_io *input, *output;
    size_t n_inputs, n_optional, n_outputs; /* input: the optional ones follow the others */
    const char **output_name;               /* the names again, as Run wants them */
    char *label;                            /* the model in messages */
    struct wml_ort_observe *observe;        /* the session uses it to its end */
    struct wml_placed *placed;
    size_t n_placed;
    bool placement_asked;
};

/* A path as ORT wants it: UTF-8, or UTF-16 on Windows. Zero is empty. */
struct wml_ort_path {
    ORTCHAR_T *ptr;
};
extern const char *const wml_ort_library_names[]; /* NULL ends */
extern const char wml_ort_platform[];             /* "linux-x64" */
bool wml_ort_path_init(struct wml_ort_path *p, const char *utf8, struct wml_err *err);
void wml_ort_path_release(struct wml_ort_path *p);
/* Windows: a library that cannot be loaded must not open a dialog. */
void wml_ort_prepare_process(void);
/* The loaded library stays loaded to the end of the process: threads and handlers of ORT and of EPs may
 * outlive the environment. */
void wml_ort_pin(const char *path);

/* Releases st. NULL: true. Else sets *err from ORT's message, cleaned, with a hint where one is known. */
bool wml_ort_ok(const struct wml_ort *o, OrtStatus *st, enum wml_code code, struct wml_err *err);
/* Code, message and hint for a cleaned message. */
void wml_ort_explain(const struct wml_ort *o, enum wml_code code, struct wml_str msg, struct wml_err *err);

/* Where the library may be; paths in the arena, in order. The last is a bare name for the system loader. */
struct wml_ort_places {
    WML_VEC(const char *) file;
    bool only_first; /* the user named one file */
};
void wml_ort_places(const struct wml_ctx *cx, struct wml_arena *a, struct wml_ort_places *out);

void ORT_API_CALL wml_ort_log_line(void *param, OrtLoggingLevel severity, const char *category, const char *id,
                                   const char *location, const char *message);

/* Fills *out from opts; the caller releases it with api->ReleaseSessionOptions also after a failure. */
bool wml_ort_options(struct wml_ort *o, const struct wml_model_source *m, const struct wml_session_opts *opts,
                     OrtSessionOptions **out, struct wml_err *err);
GraphOptimizationLevel wml_ort_level(enum wml_opt_level l);
bool wml_ort_config(const struct wml_ort *o, OrtSessionOptions *so, const char *key, const char *value,
                    struct wml_err *err);
/* Opens m with finished options; no inputs or outputs are read. */
bool wml_ort_create(struct wml_ort *o, const struct wml_model_source *m, const OrtSessionOptions *so, OrtSession **out,
                    struct wml_err *err);
/* Only loaded and checked, which gives every value its type; it cannot run. Bytes only. */
bool wml_ort_load(struct wml_ort *o, const struct wml_model_source *m, const OrtSessionOptions *so, OrtSession **out,
                  struct wml_err *err);
/* False when an EP of opts failed to start while a session was made. Clear o->refusal before. */
bool wml_ort_check_refusal(struct wml_ort *o, const struct wml_session_opts *opts, struct wml_err *err);
/* "file.onnx", or "the model" for bytes. */
const char *wml_ort_label(const struct wml_model_source *m);

/* Makes the operator Observe known to sessions of `so`; freed after the last of them. NULL with *err. */
struct wml_ort_observe *wml_ort_observe_new(const struct wml_ort *o, const struct wml_observer *observer, OrtSessionOptions *so,
                                            struct wml_err *err);
void wml_ort_observe_free(struct wml_ort_observe *w);

/* Type of one input or output; strings in the arena. */
bool wml_ort_read_io(const struct wml_ort *o, const OrtTypeInfo *info, struct wml_arena *a, struct wml_io *out,
                     struct wml_err *err);
/* A view of a value that ORT owns; dim in the arena. */
bool wml_ort_view(const struct wml_ort *o, OrtValue *value, struct wml_arena *a, struct wml_tensor_view *out,
                  struct wml_err *err);

#endif
