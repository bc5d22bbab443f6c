/* families/llama_body.h - decoders in the manner of Llama (Touvron et al. 2023): rotary positions, RMS norms before every part,
 * gated feed-forward layers, fewer heads of keys than of queries. Types differ by what their configs and checkpoints say. */
#ifndef WML_FAMILIES_LLAMA_BODY_H
#define WML_FAMILIES_LLAMA_BODY_H

#include "families/decoder_inputs.h"
#include "nn/rotary.h"

struct wml_llama {
    int64_t hidden, layers, heads, kv_heads, head, inner, vocab, positions, window; /* window 0: none */
    double eps, scale; /* of scores; 0: 1 / sqrt(head) */
    double embed_scale, residual_scale, logit_scale; /* 0: 1 */
    double score_cap, logit_cap; /* soft limits, cap tanh(x / cap); 0: none */
    bool one_plus;  /* norms scale by 1 + weight */
    bool sandwich;  /* norms behind the parts, too */
    bool fused;     /* one weight for q, k, v, and one for gate and up */
    bool tied;
    struct wml_str act;
    struct wml_value *(*linear)(struct wml_nn *b, struct wml_value *x, const char *name, int64_t out); /* how linear layers are built */
};

struct wml_llama wml_llama_params(struct wml_family_job *j);
/* The bare model: [batch, length, hidden]. */
struct wml_value *wml_llama_body(struct wml_family_job *j, const struct wml_llama *p, struct wml_decoder *d);
/* Inputs, the model below its head, the head: logits [batch, length, vocab]. */
struct wml_value *wml_llama_logits(struct wml_family_job *j, const struct wml_llama *p, struct wml_decoder *d);
/* The parts of a layer, in its scope: q, k, v of "self_attn"; all of "mlp"; whether layer i has a window, and whether its
 * queries and keys turn. */
void wml_llama_project(struct wml_nn *b, const struct wml_llama *p, struct wml_value *x, struct wml_value *out[3]);
struct wml_value *wml_llama_feed_forward(struct wml_nn *b, const struct wml_llama *p, struct wml_value *x);
bool wml_llama_slides(const struct wml_family_job *j, const struct wml_llama *p, size_t i);
bool wml_llama_turns(const struct wml_family_job *j, size_t i);
void wml_llama_features(struct wml_family_job *j);
void wml_llama_generation(struct wml_family_job *j);

#endif
