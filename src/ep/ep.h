/* ep/ep.h - execution providers: one row per EP (facts), where its library is, and which EP and device a
 * request means. Rows live in one file each, listed in eps.def; their order is the rank for `auto`. */
#ifndef WML_EP_EP_H
#define WML_EP_EP_H

#include "ort/ort.h"

enum wml_trace_kind { WML_TRACE_ORT, WML_TRACE_QNN_CSV, WML_TRACE_OPENVINO };

struct wml_ep_device { /* one kind of device of an EP */
    enum wml_device_type type;
    const struct wml_pair *defaults; /* provider options that are always set; {0} ends */
    const struct wml_pair *compile, *exact; /* further ones for compiling; for float32 as float32; {0} ends; NULL: none */
};

struct wml_ep {
    const char *name;           /* "QNNExecutionProvider" */
    const char *const *alias;   /* "qnn", ...; NULL ends */
    const char *label;          /* "QNN", for people */
    const char *vendor;         /* text that hardware of this EP carries, "Qualcomm"; NULL: any */
    const char *const *library; /* file names of the plugin, this system's first; NULL: built into ORT */
    const char *python_module;  /* folder in site-packages that may hold it; NULL */
    const char *nuget_id;       /* package in the NuGet cache that may hold it; NULL */
    const char *vendor_env;     /* variable that names a folder with it, or with `vendor_below` in it; NULL */
    const char *vendor_below;
    const char *install; /* what brings it, for people: "pip install ..."; NULL */
    const struct wml_ep_device *device;
    size_t n_devices;
    bool compiles; /* can write EPContext */
    const char *no_compile_reason;
    bool quantizes; /* makes integers of float models itself, by default */
    enum wml_trace_kind trace;
    const char *trace_level_key, *trace_file_key; /* provider options; NULL: none */
    const char *provider_token;                   /* in file names: "qnn" */
    bool test_only;                               /* never chosen by auto */
    const char *contrib; /* operators of com.microsoft that it has, a blank between; "*": those of ORT; NULL: none */
    const struct wml_ep_stage *stage; /* ep/stage.h; NULL: no pipelines for generation are made for it */
    const struct wml_ep_want *want;
    size_t n_wants;
    /* Version of the vendor's runtime beside the plugin `library`, "2026.4.1". NULL: nothing depends on it. */
    bool (*runtime_version)(const char *library, char out[64]);
    /* The device of this EP that a request for `want` means, beyond ORT's own type: returns true and adds
     * provider options (such as backend_path of a simulator beside `library`). NULL: type must be equal. */
    bool (*adopt)(const struct wml_ort_device *d, enum wml_device_type want, const char *library,
                  struct wml_arena *arena, struct wml_pair *option, size_t *n_options, bool *simulated);
};

#define EP(name) extern const struct wml_ep wml_ep_##name;
#include "ep/eps.def"
#undef EP
extern const struct wml_ep *const wml_eps[];
extern const size_t wml_n_eps;
/* Whether the row says that it has this operator, "Op" or "domain::Op". Standard ones: always. */
bool wml_ep_has_op(const struct wml_ep *ep, struct wml_str op);
bool wml_ep_is_cpu(const struct wml_ep *ep); /* NULL: false */
const struct wml_ep *wml_ep_find(struct wml_str name); /* by full name or alias, without case. NULL: unknown */
/* The nearest name, for did-you-mean; NULL: none. */
const char *wml_ep_similar(struct wml_str name);

/* --- where libraries are --- */

struct wml_ep_library {      /* strings in the list's arena */
    const struct wml_ep *ep; /* NULL: a plugin without a row */
    const char *name;        /* EP name to register under */
    const char *path;        /* NULL: built into ORT */
    const char *source_kind; /* "PyPISource", "DirectorySource", "BuiltinSource", ... as `sys` prints */
    const char *source_tag;  /* "pypi", "directory", "bundled", ... */
    const char *root, *env_var, *distribution, *version; /* NULL: none */
};
struct wml_ep_libraries {
    struct wml_arena arena;
    WML_VEC(struct wml_ep_library) v; /* per EP in order of precedence */
    WML_VEC(const char *) looked;     /* places that were searched, for messages */
};
/* Looks at files only. Sources in order: WINML_EP_PATH and WINMLCLI_EP_PATH, winml's own EP folders (beside
 * the program, <prefix>/lib/winml/ep, the build cache), Python site-packages of the active environment,
 * vendor variables, (Windows) catalogue folders, built into ORT. */
bool wml_ep_discover(struct wml_ctx *cx, struct wml_ep_libraries *out, struct wml_err *err);
void wml_ep_libraries_release(struct wml_ep_libraries *l);
void wml_ep_each_site(void (*f)(void *arg, struct wml_str dir), void *arg); /* folders of Python packages, the active first */
/* Why an EP of which nothing was found cannot be used, and what to do: for `sys` and for messages. */
void wml_ep_missing_reason(const struct wml_ep *ep, const struct wml_ep_libraries *l, struct wml_buf *out);

/* --- what a request means --- */

struct wml_target_spec {           /* zero: auto */
    const char *ep;                /* name, alias, "auto" or NULL; may carry "@source-tag" or "@PATH" of a library */
    const char *device;            /* "npu", "gpu", "cpu", "auto" or NULL; "gpu:1" picks the second */
    const struct wml_pair *option; /* typed provider options; they win over defaults */
    size_t n_options;
    bool for_compile, exact; /* exact: an EP that may take floats as shorter ones by itself is told not to */
};
/* Checks without loading anything: syntax, known names, the EP offers that kind of device, it can compile
 * when for_compile. *ep is NULL when it is to be chosen automatically. WML_E_USAGE, WML_E_NOT_FOUND. */
bool wml_target_check(const struct wml_target_spec *s, const struct wml_ep **ep, struct wml_err *err);
/* True when running the target needs no vendor code: the CPU EP alone. */
bool wml_target_is_plain_cpu(const struct wml_target_spec *s);

struct wml_target { /* strings live in its arena or in the runtime */
    struct wml_arena arena;
    const struct wml_ep *ep;       /* NULL: a plugin without a row */
    const char *ep_name, *library; /* library NULL: built in */
    const char *source_tag, *ep_version;
    enum wml_device_type type; /* what was asked for, e.g. NPU */
    const char *hardware;      /* name of the hardware, for people */
    bool simulated;            /* no such hardware here: times are not hardware times */
    const struct wml_ort_device **device;
    size_t n_devices;
    struct wml_pair *option; /* defaults, then adopted ones, then typed ones; each key once */
    size_t n_options;
};
/* Registers libraries as needed: loads vendor code, so call it in a child unless the target is plain CPU.
 * Simulated and test-only devices are chosen only when named. */
bool wml_target_resolve(struct wml_ctx *cx, const struct wml_target_spec *s, struct wml_target *out,
                        struct wml_err *err);
void wml_target_release(struct wml_target *t);
/* Session options for the target: fills device, ep_option; other members stay. CPU: no device at all. */
void wml_target_session(const struct wml_target *t, struct wml_session_opts *o);

#endif
