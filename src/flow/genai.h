/* flow/genai.h - the verbs over GenAI bundles: `perf --runtime winml-genai` and `generate`.
 *
 * This process never loads ORT, the library or an EP: what a target means, each compilation, and all generating are
 * children's work. */
#ifndef WML_FLOW_GENAI_H
#define WML_FLOW_GENAI_H

#include "base/ctx.h"
#include "ep/ep.h"
#include "report/report.h"

struct wml_genai_search { /* zero: the likeliest token */
    bool sample;
    double temperature, top_p, repetition_penalty;
    int64_t top_k, seed; /* seed < 0: the library's choice */
};

struct wml_genai_args {
    const char *bundle;      /* folder */
    const char *model_id;    /* what it was built of, for the report; NULL: the folder's name */
    const char *output;      /* JSON report; NULL: <cache>/perf/<folder>/<time>.json; `generate`: none */
    bool overwrite;
    struct wml_str prompt, system; /* system absent: none */
    bool apply_template;
    size_t max_new_tokens, iterations, warmup;
    struct wml_target_spec target; /* device NULL or "config": EPs as the bundle names them */
    bool compile;
    double compile_timeout_s, generation_timeout_s; /* 0: none */
    bool monitor, memory, live;
    struct wml_genai_search search;
    void (*on_text)(void *arg, struct wml_str text); /* what is generated, as it comes; NULL: nobody listens */
    /* A chat: the next question. false: there is none. NULL: `prompt` is the only one. */
    bool (*ask)(void *arg, struct wml_buf *question);
    /* The answer is complete, or, with trouble (a chat alone), there is none. */
    void (*answered)(void *arg, const char *trouble);
    void *arg;
};

bool wml_flow_is_bundle(const char *folder);
struct wml_genai_source {
    const char *model;     /* as typed */
    const char *precision; /* NULL: the build's choice */
    bool rebuild;          /* also where an earlier run has built it */
};
/* The bundle of a model id: *bundle is <cache>/artifacts/<id>/genai-bundle, a pipeline for QNN's NPU, built unless an earlier run
 * has; *built tells. Of any other text *bundle is NULL: it is a bundle or nothing. */
bool wml_flow_genai_source(const struct wml_genai_source *s, struct wml_ctx *cx, struct wml_arena *arena, const char **bundle, bool *built,
                           struct wml_err *err);
/* The report is written also after a crash or Ctrl-C once something was measured; err says what happened. WML_E_LOAD,
 * WML_E_RUN, WML_E_INTERRUPTED, WML_E_TIMEOUT. */
bool wml_flow_genai_perf(const struct wml_genai_args *a, struct wml_ctx *cx, struct wml_report *r, struct wml_err *err);
/* One answer; or a chat, in one child, which keeps the model. */
bool wml_flow_generate(const struct wml_genai_args *a, struct wml_ctx *cx, struct wml_report *r, struct wml_err *err);

#endif
