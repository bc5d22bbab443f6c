/* flow/genai_internal.h - the parts of a run over a GenAI bundle. Internal to src/flow. */
#ifndef WML_FLOW_GENAI_INTERNAL_H
#define WML_FLOW_GENAI_INTERNAL_H

#include "flow/genai.h"
#include "genai/bundle.h"
#include "genai/genai.h"
#include "worker/worker.h"

struct wml_genai_target { /* an EP that stages run on, as a child found it */
    struct wml_target_spec spec;
    const struct wml_ep *ep;  /* NULL: without a row */
    const char *name;         /* in configs */
    struct wml_json_doc *doc; /* reply of job "resolve"; NULL: it could not be had */
};

struct wml_genai_timed {
    bool timed; /* false: warmup */
    struct wml_genai_sample sample;
};

struct wml_genai_run {
    const struct wml_genai_args *args;
    struct wml_ctx *cx;
    struct wml_arena arena;
    struct wml_bundle bundle;
    const char *dir;      /* of the bundle, absolute */
    const char *load_dir; /* what the child loads: the bundle, or a folder made of it */
    const char *temp_dir; /* private, removed at the end; NULL: none */
    const char *output, *ep; /* ep: alias in effect, or "config" */
    WML_VEC(struct wml_genai_target) target;
    WML_VEC(struct wml_genai_timed) request;
    WML_VEC(const char *) warning;
    struct wml_json_doc *load;     /* event "load"; NULL: it did not load */
    struct wml_worker_reply reply; /* of the child that generates */
    bool ran;                      /* there was such a child */
    bool interrupted, partial;
    double prepare_ms, session_ms;
    uint64_t begin_ns;
    char timestamp[40];
};

void wml_genai_warn(struct wml_genai_run *r, const char *fmt, ...) WML_PRINTF(2, 3);
/* Bundle, override, options, and what each EP of the result means here. WML_E_USAGE. */
bool wml_genai_route(struct wml_genai_run *r, struct wml_err *err);
/* The member "target" of what a child said of this EP; NULL: nothing. */
const struct wml_json_val *wml_genai_target_of(const struct wml_genai_run *r, const struct wml_ep *ep);
/* A folder that is the bundle with the changed config: a private one when something changed, else the bundle. */
bool wml_genai_derive(struct wml_genai_run *r, struct wml_err *err);
/* Entries of the bundle in `to`, but the config and what `left_out` names: links where the system has them, else copies. */
bool wml_genai_mirror(const char *bundle, const char *to, bool (*left_out)(void *arg, struct wml_str name), void *arg, struct wml_err *err);
/* The child that generates. false: err says how it ended; what it had told is there. */
bool wml_genai_generate_in_child(struct wml_genai_run *r, struct wml_err *err);
void wml_genai_report(struct wml_genai_run *r, struct wml_report *out, const struct wml_err *failure);

#endif
