/* ort/session.h - a model opened by ORT, its inputs and outputs, where its nodes run, and running it. See
 * ort/ort.h for the rules of threads and of freeing. */
#ifndef WML_ORT_SESSION_H
#define WML_ORT_SESSION_H

#include "base/dtype.h"
#include "base/rd.h"
#include "base/vec.h"
#include "ort/device.h"
#include "ort/observe.h"

struct wml_session;

enum wml_opt_level { WML_LEVEL_DISABLED, WML_LEVEL_BASIC, WML_LEVEL_EXTENDED, WML_LEVEL_ALL };
const char *wml_opt_level_name(enum wml_opt_level l); /* "disabled", "basic", "extended", "all" */

struct wml_session_opts { /* zero: CPU, no optimisation, quiet */
    enum wml_opt_level level;
    const struct wml_ort_device *const *device; /* all of one EP; none: CPU only */
    size_t n_devices;
    const struct wml_pair *ep_option; /* of that EP */
    size_t n_ep_options;
    const struct wml_pair *config; /* session config entries */
    size_t n_config;
    unsigned threads;      /* intra-op; 0: ORT's choice */
    bool look_only;        /* loaded, not prepared: its types can be read, it never runs. No kernels, no EPs */
    bool no_memory_plan;   /* each value gets its memory by itself: a plan made in the first run is a second copy in the next */
    const struct wml_observer *observer; /* of the model's Observe nodes; copied. NULL: there are none */
    bool record_placement; /* for wml_session_placement */
    bool no_cpu_fallback;
    const char *profile_prefix; /* ORT profiling to <prefix>_<time>.json; NULL: off */
    /* Fixes dimensions: symbol names and sizes (ORT's free dimension override). */
    const struct wml_pair *dim_override;
    size_t n_dim_overrides;
};

struct wml_model_source { /* a file, or bytes with the folder where their external data lies */
    const char *path;
    struct wml_span bytes;
    const char *folder;
};

bool wml_session_open(struct wml_ort *o, const struct wml_model_source *m, const struct wml_session_opts *opts,
                      struct wml_session **out, struct wml_err *err);
void wml_session_close(struct wml_session *s);

enum wml_io_kind { WML_IO_TENSOR, WML_IO_SPARSE, WML_IO_SEQUENCE, WML_IO_MAP, WML_IO_OPTIONAL, WML_IO_OTHER };
struct wml_io { /* one input or output */
    const char *name;
    enum wml_io_kind kind;
    enum wml_dtype dtype; /* of a tensor; of a sequence's or optional's element */
    bool has_shape;       /* false: rank not known */
    size_t rank;
    const int64_t *dim;        /* -1: unknown or symbolic */
    const char *const *symbol; /* "" when none */
    bool elem_is_tensor;       /* SEQUENCE, OPTIONAL: the element is a tensor */
};
const struct wml_io *wml_session_inputs(const struct wml_session *s, size_t *n);
const struct wml_io *wml_session_outputs(const struct wml_session *s, size_t *n);
/* Inputs with a default in the model, which are not among the inputs. */
const struct wml_io *wml_session_optional_inputs(const struct wml_session *s, size_t *n);

struct wml_placed { /* a group of nodes that one EP runs */
    const char *ep;
    size_t n_nodes;
    const char *const *node, *const *op_type, *const *domain; /* n_nodes each; names as ORT sees them */
};
/* After opening with record_placement. false when this ORT cannot tell. */
bool wml_session_placement(const struct wml_session *s, const struct wml_placed **out, size_t *n, struct wml_err *err);

/* --- running --- */

struct wml_tensor_view { /* dense tensor; data borrowed (in) or owned by the results (out) */
    enum wml_dtype dtype;
    size_t rank;
    const int64_t *dim;
    const void *data;
    size_t bytes;
    bool is_tensor; /* false: a sequence, map, ... : no data */
};

struct wml_run; /* inputs bound once, outputs pre-allocated where their shape is known */
/* Inputs in the order of wml_session_inputs, after them (if wanted) the optional ones; data must outlive the
 * run. A NULL `data` leaves an optional input out. Strings: data is an array of char pointers. */
bool wml_run_new(struct wml_session *s, const struct wml_tensor_view *input, size_t n, struct wml_run **out,
                 struct wml_err *err);
/* One inference: nothing but the call of ORT. */
bool wml_run_once(struct wml_run *r, struct wml_err *err);
/* The same, ended by ONNX Runtime at the next operator after Ctrl-C (WML_E_CANCELLED) or after so much time
 * (WML_E_TIMEOUT; 0: no limit). For runs that are not measured. */
bool wml_run_watched(struct wml_run *r, uint64_t limit_ms, struct wml_err *err);
/* Output i of the last run; valid until the next run or free. Strings have no data. */
bool wml_run_output(struct wml_run *r, size_t i, struct wml_tensor_view *out, struct wml_err *err);
void wml_run_free(struct wml_run *r);

/* Ends profiling and gives the file's path in buf. */
bool wml_session_end_profile(struct wml_session *s, struct wml_buf *path, struct wml_err *err);

#endif
