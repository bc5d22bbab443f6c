/* flow/genai/internal.h - the parts of a run over a GenAI bundle. Internal to this folder. */
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

struct wml_genai_stage { /* what became of one stage with --compile */
    size_t index;             /* in the bundle */
    const char *ep;           /* alias */
    const char *status;       /* "compiled", "salvaged", "cached", "precompiled", "failed", "timeout", "skipped" */
    bool shared;              /* one context with others */
    const char *artifact;     /* file name in the folder; NULL: none */
    double ms;
    const char *exit, *note;  /* how the compiler's process ended; why. NULL */
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
    WML_VEC(struct wml_genai_stage) stage; /* with --compile: those that run on an accelerator */
    const char *compiled_dir;      /* of compiled stages; NULL: none */
    bool reused;                   /* it holds what an earlier run made */
    bool apart;                    /* no two stages share a context */
    double compile_ms;
    struct wml_json_doc *load;     /* event "load"; NULL: it did not load */
    struct wml_worker_reply reply; /* of the child that generates */
    struct wml_buf told;           /* text of the running request that was handed on */
    struct wml_buf question;       /* a line for the child */
    bool no_more;                  /* questions */
    bool ran;                      /* there was such a child */
    bool interrupted, partial;
    double prepare_ms, session_ms;
    uint64_t begin_ns;
    char timestamp[40];
};

void wml_genai_warn(struct wml_genai_run *r, const char *fmt, ...) WML_PRINTF(2, 3);
/* What the report calls the model. */
struct wml_str wml_genai_model_id(const struct wml_genai_run *r);
/* Override, options, and what each EP of the result means here. WML_E_USAGE. */
bool wml_genai_route(struct wml_genai_run *r, struct wml_err *err);
/* The member "target" of what a child said of this EP; NULL: nothing. */
const struct wml_json_val *wml_genai_target_of(const struct wml_genai_run *r, const struct wml_ep *ep);
/* A folder that is the bundle with the changed config: a private one when something changed, else the bundle. */
bool wml_genai_derive(struct wml_genai_run *r, struct wml_err *err);
/* Entries of the bundle in `to`, but the config and what `left_out` names: links where the system has them, else copies.
 * hard: second names of the files rather than symbolic links, for a folder that does not outlive the run. */
bool wml_genai_mirror(const char *bundle, const char *to, bool (*left_out)(void *arg, struct wml_str name), void *arg, bool hard,
                      struct wml_err *err);
/* Compiles stages, each group in a child of its own, into <bundle>/_compiled, or into the cache where the bundle cannot be
 * written. What cannot be compiled keeps its source: false only for Ctrl-C and what the system cannot do. anew: nothing of
 * an earlier run is used. Sets load_dir when the folder is what is to be loaded. */
bool wml_genai_compile(struct wml_genai_run *r, bool anew, struct wml_err *err);
/* The stage among those compiled that cannot be loaded, asked one by one in children; err gets its name. */
void wml_genai_blame(struct wml_genai_run *r, struct wml_err *err);
/* The child that generates. false: err says how it ended; what it had told is there. */
bool wml_genai_generate_in_child(struct wml_genai_run *r, struct wml_err *err);
void wml_genai_put_request(struct wml_item *in, const char *key, const struct wml_genai_timed *t, size_t index);
/* "warnings", and under `key` the tokens of an answer. */
void wml_genai_put_warnings(struct wml_item *root, const struct wml_genai_run *r);
void wml_genai_put_tokens(struct wml_item *root, const char *key, const struct wml_genai_sample *s);
void wml_genai_report(struct wml_genai_run *r, struct wml_report *out, const struct wml_err *failure);

#endif
