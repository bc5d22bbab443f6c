/* families/llama_genai.h - what both forms for generation (genai.h) of Llama's relatives are made of. */
#ifndef WML_FAMILIES_LLAMA_GENAI_H
#define WML_FAMILIES_LLAMA_GENAI_H

#include "families/genai.h"
#include "families/llama_body.h"

struct wml_llama_genai {
    struct wml_family_job *j;
    struct wml_nn *b;
    struct wml_llama p;
    int64_t slots; /* of the cache */
    struct wml_value *seqlens, *total, *cos, *sin;
    struct wml_value *key[WML_MAX_CACHED], *value[WML_MAX_CACHED]; /* past, then present */
};

/* Reads the config; false: no bundle can be made of it, the failure is kept in j->nn. */
bool wml_llama_genai_start(struct wml_llama_genai *r, struct wml_family_job *j);
/* One pair of tables for all layers: r->cos, r->sin. */
void wml_llama_genai_tables(struct wml_llama_genai *r, enum wml_dtype type);
/* "key.#.x", 3 -> "key.3.x", in the model's arena. */
const char *wml_llama_genai_name(struct wml_llama_genai *r, const char *fmt_key, size_t i);
/* Attention of layer i over q, k, v [batch, length, heads * size]; key[i] and value[i] become what the operator gives back.
 * bare: no attribute but the numbers of heads and whether they turn. */
struct wml_value *wml_llama_genai_attend(struct wml_llama_genai *r, size_t i, struct wml_value *const qkv[3], bool bare);
bool wml_llama_genai_has_norm(struct wml_llama_genai *r, const char *norm);
struct wml_value *wml_llama_genai_scaled(struct wml_llama_genai *r, struct wml_value *x, double by); /* 0: x itself */
/* Scale and soft limit of what the matrix of the head gives. */
struct wml_value *wml_llama_genai_logits(struct wml_llama_genai *r, struct wml_value *x);

/* llama_staged.c: the stages of a pipeline. */
void wml_llama_transformer(struct wml_family_job *j);
void wml_llama_embeddings(struct wml_family_job *j);
void wml_llama_head(struct wml_family_job *j);

#endif
