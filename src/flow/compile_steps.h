/* flow/compile_steps.h - the steps of `compile`, which `perf --compile` and bundles take as well: one run of the compiler,
 * what came out of it, the cache. Internal to src/flow. */
#ifndef WML_FLOW_COMPILE_STEPS_H
#define WML_FLOW_COMPILE_STEPS_H

#include "base/hash.h"
#include "flow/flow.h"
#include "worker/feed.h"
#include "worker/worker.h"

struct wml_compile_unit { /* one model on its way; texts live in the run's arena */
    const char *model, *output;   /* as the user wrote them */
    const char *name;             /* file name of the output */
    const char *staged;           /* the compiled model in the private folder */
    char source_sha[WML_SHA256_HEX];
    double compile_ms;
    bool validated, compared;
    double worst_cosine;
    double cpu_cosine;            /* of two ways to compute the source on the CPU, where that was asked; 0: it was not */
    const char *validation_note;  /* why it was not compared, or why a low cosine is the model's own; NULL */
    struct wml_json_doc *validation; /* array of {"name","cosine",...}; NULL: none */
    const char *sidecar;          /* first context binary beside the output, or NULL */
    uint64_t bytes;               /* model and sidecars */
};

struct wml_compile_run {
    const struct wml_compile_args *args;
    struct wml_ctx *cx;
    struct wml_arena arena;
    struct wml_compile_unit *unit;
    size_t n;
    const struct wml_ep *ep;      /* NULL: a plugin without a row */
    struct wml_json_doc *target;  /* reply of job "resolve" */
    struct wml_feed_spec ranges;  /* only its ranges: of the first source's metadata */
    const char *dir;              /* folder of the outputs */
    const char *stage;            /* private folder inside it; NULL: not made */
    char identity[WML_SHA256_HEX];
    bool cached;                  /* taken from the cache */
    const char *salvaged;         /* how the child ended although the result is whole, or NULL */
    bool of_bundle;               /* what a child left that took too long is not looked at; the caller says how it went */
    char ended[64];               /* of the compiler's process: "SIGSEGV", "exit status 0"; "": there was none */
    WML_VEC(const char *) warning;
};

/* Runs the compiler (or the cache) so that every unit is staged and complete. */
bool wml_compile_stage(struct wml_compile_run *r, struct wml_err *err);
/* Every staged model is whole; writes where its source lies into its metadata. */
bool wml_compile_finish(struct wml_compile_run *r, struct wml_err *err);
/* One inference on the target against the CPU's answer for the source. */
bool wml_compile_validate(struct wml_compile_run *r, struct wml_compile_unit *u, struct wml_err *err);
/* Renames sidecars, then models, into place. */
bool wml_compile_publish(struct wml_compile_run *r, struct wml_err *err);

/* Over a model and every file it refers to: what `winml.source_sha256` of a compiled model holds. */
bool wml_compile_source_sha(const char *model, char hex[WML_SHA256_HEX], struct wml_err *err);
/* The cache: <cache>/compiled/<first 16 of the identity>/. */
bool wml_compile_identify(struct wml_compile_run *r, struct wml_err *err);
bool wml_compile_cache_get(struct wml_compile_run *r, struct wml_err *err); /* false: not there */
void wml_compile_cache_put(struct wml_compile_run *r);                       /* failure is a debug line */

#endif
