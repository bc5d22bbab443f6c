/* families/genai.h - models for generation: attention is com.microsoft::GroupQueryAttention, which turns queries and keys,
 * appends to a cache of keys and values, and masks what is later.
 *
 * Two forms of one model. Plain: one graph from token ids to logits, any length, operators and names as onnxruntime-genai
 * takes them on every EP. Staged, for NPUs: embeddings, transformer (built twice: for a window of the prompt and for one
 * token, every axis fixed) and lm_head, chained by their names. */
#ifndef WML_FAMILIES_GENAI_H
#define WML_FAMILIES_GENAI_H

#include "families/family.h"

enum wml_genai_part { WML_GENAI_PLAIN, WML_GENAI_TRANSFORMER, WML_GENAI_EMBEDDINGS, WML_GENAI_HEAD, WML_GENAI_PARTS };

struct wml_genai_opts {
    bool turn_tied;      /* a tied table is stored a second time, turned: where the matrix is quantised and the table is not */
    enum wml_dtype cache; /* of a transformer's attention; 0: float32 */
};

struct wml_genai_facts { /* of a model, for the bundle's config */
    int64_t hidden, layers, heads, kv_heads, head, vocab;
    int64_t positions; /* that the model was trained for */
};

struct wml_family_bundle {
    struct wml_family_task part[WML_GENAI_PARTS]; /* build NULL: that part cannot be made */
    struct wml_genai_facts (*facts)(struct wml_family_job *j);
};

/* Slots of the cache: WML_SIZE_CACHE of the job, else all positions; tokens of a transformer's call: WML_SIZE_NEW_TOKENS. */
extern const struct wml_family_bundle wml_llama_bundle;

#endif
