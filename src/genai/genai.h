/* genai/genai.h - onnxruntime-genai behind a seam: prompt in, tokens and their times out.
 *
 * Only a child process may open it: the library ends the process on some failures, and so do drivers below it.
 * EPs are registered with src/ep before loading: ORT has one environment in a process, so the library finds them there.
 * Handles are freed in the order model, library; everything belongs to one thread. */
#ifndef WML_GENAI_GENAI_H
#define WML_GENAI_GENAI_H

#include "base/ctx.h"
#include "base/vec.h"

struct wml_genai;
struct wml_genai_model;

/* Opens ORT first (ort/ort.h) and hands it to the library. Searched: WINML_GENAI (a file, or a folder that holds it),
 * <program>/../lib/winml, the program's folder, the build cache, Python's packages onnxruntime_genai_core and
 * onnxruntime_genai, the system loader. WML_E_NOT_FOUND lists the places. */
bool wml_genai_open(struct wml_ctx *cx, struct wml_genai **out, struct wml_err *err);
void wml_genai_close(struct wml_genai *g);
/* Where it would be found, without loading anything: any process may ask. false: nowhere but perhaps by the system's loader,
 * or WINML_GENAI is wrong, as err says. version: "" when not known. */
bool wml_genai_find(struct wml_ctx *cx, struct wml_buf *path, struct wml_buf *version, struct wml_err *err);
const char *wml_genai_path(const struct wml_genai *g);
const char *wml_genai_version(const struct wml_genai *g); /* NULL: not known */

struct wml_genai_load { /* milliseconds */
    double config_ms, model_ms, tokenizer_ms;
};
/* dir: a bundle. phase is told "config", "model", "tokenizer" before each may crash. WML_E_LOAD. */
bool wml_genai_load(struct wml_genai *g, const char *dir, void (*phase)(void *arg, const char *name), void *arg,
                    struct wml_genai_model **out, struct wml_genai_load *times, struct wml_err *err);
void wml_genai_unload(struct wml_genai_model *m);

struct wml_genai_request { /* zero is greedy */
    struct wml_str prompt;   /* used as it is when there is no template, or it cannot be applied */
    struct wml_str messages; /* JSON array of {"role","content"}; absent: no template */
    const char *template;    /* text of it; NULL: the tokenizer's own */
    size_t max_new_tokens;
    int64_t context_length;
    bool whole_context;      /* max_length is the context length: pipelines keep caches of that size */
    bool sample;             /* false: the likeliest token; the members below are for true */
    double temperature, top_p;
    int64_t top_k;
    double repetition_penalty; /* 0: 1 */
    int64_t seed;              /* < 0: the library's choice */
    /* After each token, outside of what is timed. text: what became whole; may be empty. false: stop. NULL: none. */
    bool (*on_token)(void *arg, struct wml_str text, double ms);
    void *arg;
};

struct wml_genai_sample { /* of one request; milliseconds */
    size_t prompt_tokens;
    double template_ms, tokenize_ms, create_ms, prefill_ms, first_token_ms;
    WML_VEC(double) decode_ms; /* of the second token and later ones */
    double fetch_ms, detokenize_ms;
    WML_VEC(int32_t) token; /* generated; an end token counts */
    struct wml_buf text;    /* of them */
    bool no_template;       /* it was asked for and could not be applied; why: template_error */
    char template_error[256];
};

/* One request on a generator of its own. WML_E_RUN: also when no token came. The sample is filled as far as it got;
 * release it in both cases. */
bool wml_genai_generate(struct wml_genai_model *m, const struct wml_genai_request *r, struct wml_genai_sample *out,
                        struct wml_err *err);
void wml_genai_sample_release(struct wml_genai_sample *s);

#endif
