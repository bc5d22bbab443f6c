/* vnpu.h - the virtual NPU: a plugin execution provider for ONNX Runtime (ORT) in plain C.
 *
 * One factory per loaded library, one EP per session, one kernel per fused node. Every function
 * that can fail returns an OrtStatus: NULL is success, anything else is owned by the caller and
 * usually handed on to ORT. docs/internals/virtual-npu.md says what the options and faults mean. */
#ifndef VNPU_H
#define VNPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "onnxruntime_c_api.h"

#define VNPU_NAME         "VirtualNPUExecutionProvider"
#define VNPU_VENDOR       "winml"
#define VNPU_VENDOR_ID    0xf1f1u /* belongs to no PCI vendor */
#define VNPU_DEVICE_ID    0x0001u
#define VNPU_VERSION      "1.0.0"
#define VNPU_ARCHITECTURE "vnpu-1"

/* Hands a failure on to the caller; for functions that own nothing yet. */
#define VNPU_TRY(expr)                                                                             \
    do {                                                                                           \
        OrtStatus *try_status_ = (expr);                                                           \
        if (try_status_ != NULL) return try_status_;                                               \
    } while (0)
/* The same for functions with a `done:` label and a variable `st`. */
#define VNPU_GOTO(expr)                                                                            \
    do {                                                                                           \
        if ((st = (expr)) != NULL) goto done;                                                      \
    } while (0)

/* --- util.c --- */

#if defined(__GNUC__)
#define VNPU_PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))
#else
#define VNPU_PRINTF(fmt, first)
#endif

OrtStatus *vnpu_fail(const OrtApi *api, const char *fmt, ...) VNPU_PRINTF(2, 3);
/* Writes to ORT's log; failing to log is not a failure. */
void vnpu_log(const OrtApi *api, const OrtLogger *logger, OrtLoggingLevel level, const char *fmt,
              ...) VNPU_PRINTF(4, 5);
/* Zeroed array of n (at least one) elements. Free with free(). */
OrtStatus *vnpu_array(const OrtApi *api, size_t n, size_t size, void **out);
OrtStatus *vnpu_copy_string(const OrtApi *api, const char *s, char **out);
/* True when `list` ("a,b, c") contains `word`. */
bool vnpu_list_has(const char *list, const char *word);

struct vnpu_buf { /* growing bytes; zero: empty; `failed` stays set once memory ran out */
    unsigned char *ptr;
    size_t len, cap;
    bool failed;
};
void vnpu_buf_add(struct vnpu_buf *b, const void *bytes, size_t n);
void vnpu_buf_release(struct vnpu_buf *b);

/* --- fault.c: failures on request --- */

enum vnpu_where {
    VNPU_REGISTER, VNPU_COMPILE, VNPU_SAVE, VNPU_LOAD, VNPU_RUN, VNPU_TEARDOWN, VNPU_UNLOAD
};

struct vnpu_fault { /* zero: none */
    char text[64];  /* as it was given, for messages */
    int what;       /* 0: none */
    enum vnpu_where where;
    unsigned spared; /* how many passes go well first */
};
/* "WHAT@WHERE" or "WHAT@WHERE:N"; empty and NULL mean none. */
OrtStatus *vnpu_fault_parse(const OrtApi *api, const char *text, struct vnpu_fault *out);
/* Call where the fault could strike. `fail` returns a status; the others do not return. */
OrtStatus *vnpu_fault_strike(const OrtApi *api, struct vnpu_fault *f, enum vnpu_where where);

/* --- options.c --- */

enum vnpu_profiling { VNPU_PROFILE_OFF, VNPU_PROFILE_BASIC, VNPU_PROFILE_DETAILED };

struct vnpu_options { /* strings are owned, never NULL */
    char *ops, *refuse_ops;
    size_t min_nodes;
    size_t threads; /* per partition; 0: as many as ORT likes */
    uint64_t latency_us;
    enum vnpu_profiling profiling;
    char *profiling_file;
    bool csv;
    bool shared_context;
    struct vnpu_fault fault;
    /* session configuration, not provider options */
    bool context_enable, context_embed, context_share, context_share_stop;
    char *context_file, *context_prefix;
};
/* Reads them from the session's configuration. An unknown or malformed option is a failure that
 * lists the known ones. On failure nothing has to be released. */
OrtStatus *vnpu_options_read(const OrtApi *api, const OrtSessionOptions *so,
                             struct vnpu_options *out);
void vnpu_options_release(struct vnpu_options *o);

/* --- factory.c, ep.c --- */

struct vnpu_shared { /* what models that share a context have compiled so far */
    struct vnpu_buf entries;
    size_t n;
    char *path; /* of their file */
};

struct vnpu_factory {
    OrtEpFactory base; /* first: ORT sees only this part */
    const OrtApi *api;
    const OrtEpApi *ep_api;
    const OrtModelEditorApi *editor;
    const OrtLogger *logger;
    OrtHardwareDevice *hardware; /* of our own making; NULL: a CPU device stands in */
    struct vnpu_shared shared;   /* sessions that share contexts come one after another */
    struct vnpu_fault fault;     /* from the environment: register and unload have no session */
};

struct vnpu_context; /* context.c */
struct vnpu_profile; /* profile.c */

struct vnpu_ep {
    OrtEp base;
    struct vnpu_factory *factory;
    const OrtApi *api;
    const OrtLogger *logger;
    struct vnpu_options options;
    struct vnpu_profile *profile;  /* NULL: no profiling, or nothing compiled yet */
    struct vnpu_context *contexts; /* loaded from EPContext nodes; a list */
    size_t n_sidecars;             /* written so far */
    bool loaded;                   /* the load fault had its chance */
    bool run_begun;                /* a kernel of the current run was reached */
};

OrtStatus *vnpu_ep_create(struct vnpu_factory *f, const OrtSessionOptions *so,
                          const OrtLogger *logger, struct vnpu_ep **out);
void vnpu_ep_free(struct vnpu_ep *ep);

#endif
