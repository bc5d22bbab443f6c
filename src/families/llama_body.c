/* families/llama_body.c - see llama_body.h. */
#include <math.h>
#include "families/llama_body.h"
#include "families/rope.h"

static bool is(const struct wml_family_job *j, const char *type)
{
    return strcmp(j->type->model_type, type) == 0;
}

static bool is_gemma(const struct wml_family_job *j)
{
    return strncmp(j->type->model_type, "gemma", 5) == 0;
}

/* What is peculiar to single types. */
static void traits(struct wml_family_job *j, struct wml_llama *p)
{
    const struct wml_json_val *c = j->cfg;
    if (is_gemma(j)) {
        p->one_plus = true;
        p->embed_scale = sqrt((double)p->hidden);
        p->act = wml_cfg_str(j, c, "hidden_activation", "gelu_pytorch_tanh"); /* whatever hidden_act says */
        p->tied = wml_json_get_bool(c, "tie_word_embeddings", true);
    }
    if (is(j, "gemma2") || is(j, "gemma3_text")) {
        p->sandwich = true;
        p->scale = 1 / sqrt(wml_cfg_num(j, c, "query_pre_attn_scalar", 256));
        p->score_cap = wml_cfg_num(j, c, "attn_logit_softcapping", 0);
        p->logit_cap = wml_cfg_num(j, c, "final_logit_softcapping", 0);
    }
    if (is(j, "granite")) {
        p->embed_scale = wml_cfg_num(j, c, "embedding_multiplier", 1);
        p->residual_scale = wml_cfg_num(j, c, "residual_multiplier", 1);
        p->scale = wml_cfg_num(j, c, "attention_multiplier", 1);
        p->logit_scale = 1 / wml_cfg_num(j, c, "logits_scaling", 1);
    }
    p->fused = is(j, "phi3");
}

struct wml_llama wml_llama_params(struct wml_family_job *j)
{
    const struct wml_json_val *c = j->cfg;
    struct wml_llama p = {
        .hidden = wml_cfg_size(j, c, "hidden_size", 4096), .layers = wml_cfg_size(j, c, "num_hidden_layers", 32),
        .heads = wml_cfg_size(j, c, "num_attention_heads", 32), .inner = wml_cfg_size(j, c, "intermediate_size", 11008),
        .vocab = wml_cfg_size(j, c, "vocab_size", 32000), .positions = wml_cfg_size(j, c, "max_position_embeddings", 2048),
        .eps = wml_cfg_num(j, c, "rms_norm_eps", 1e-6), .act = wml_cfg_str(j, c, "hidden_act", "silu"),
        .tied = wml_json_get_bool(c, "tie_word_embeddings", false), .linear = wml_nn_linear};
    p.kv_heads = wml_cfg_size(j, c, "num_key_value_heads", p.heads);
    p.head = wml_cfg_size(j, c, "head_dim", p.hidden / p.heads > 0 ? p.hidden / p.heads : 1);
    const bool slides = wml_json_get_bool(c, "use_sliding_window", !is(j, "qwen2") && !is(j, "qwen3"));
    p.window = slides ? wml_cfg_int(j, c, "sliding_window", is(j, "mistral") || is(j, "gemma2") ? 4096 : 0) : 0;
    if (wml_json_is_null(wml_json_get(c, "sliding_window")) && wml_json_get(c, "sliding_window")) p.window = 0;
    traits(j, &p);
    if (p.heads % p.kv_heads)
        wml_nn_fail(j->nn, WML_E_FORMAT, "config.json: %lld attention heads do not divide into %lld of keys", (long long)p.heads, (long long)p.kv_heads);
    return p;
}

/* --------------------------------------------------------------------- layers */

struct layer {
    const struct wml_llama *p;
    struct wml_family_job *j;
    struct wml_decoder *d;
    size_t i;
    bool turns; /* some types have layers without positions */
    struct wml_value *mask;
    const struct wml_nn_turn *turn;
};

void wml_llama_project(struct wml_nn *b, const struct wml_llama *p, struct wml_value *x, struct wml_value *out[3])
{
    const int64_t q = p->heads * p->head, kv = p->kv_heads * p->head;
    if (!p->fused) {
        out[0] = p->linear(b, x, "q_proj", q);
        out[1] = p->linear(b, x, "k_proj", kv);
        out[2] = p->linear(b, x, "v_proj", kv);
        return;
    }
    x = p->linear(b, x, "qkv_proj", q + 2 * kv);
    wml_nn_split_sizes(b, x, -1, 3, (const int64_t[]){q, kv, kv}, out);
}

/* [batch, length, heads, size] normalised over a head where the checkpoint has weights for that, as [batch, heads, length, size]. */
static struct wml_value *heads_of(struct wml_nn *b, const struct wml_llama *p, struct wml_value *x, int64_t heads, const char *norm)
{
    char weight[32];
    x = wml_nn_reshape(b, x, WML_DIMS(0, 0, heads, p->head));
    snprintf(weight, sizeof weight, "%s.weight", norm);
    if (wml_nn_has(b, weight)) x = wml_nn_rms_norm(b, x, norm, p->eps, p->one_plus);
    return wml_nn_transpose(b, x, "0213");
}

static struct wml_value *capped(struct wml_nn *b, struct wml_value *x, double cap)
{
    return cap == 0 ? x : wml_nn_scale(b, wml_nn_unary(b, "Tanh", wml_nn_scale(b, x, 1 / cap)), cap);
}

static struct wml_value *attention(struct wml_nn *b, const struct layer *l, struct wml_value *x)
{
    const struct wml_llama *p = l->p;
    struct wml_value *qkv[3];
    wml_nn_enter(b, "*Attention", "self_attn");
    wml_llama_project(b, p, x, qkv);
    struct wml_nn_attention a = {.heads = p->heads, .kv_heads = p->kv_heads, .scale = p->scale, .mask = l->mask, .cap = p->score_cap};
    a.q = heads_of(b, p, qkv[0], p->heads, "q_norm");
    a.k = heads_of(b, p, qkv[1], p->kv_heads, "k_norm");
    a.v = wml_nn_transpose(b, wml_nn_reshape(b, qkv[2], WML_DIMS(0, 0, p->kv_heads, p->head)), "0213");
    if (l->turns) {
        a.q = wml_nn_rotate(b, a.q, l->turn);
        a.k = wml_nn_rotate(b, a.k, l->turn);
    }
    struct wml_value *fresh_k = a.k, *fresh_v = a.v;
    a.k = wml_decoder_append(l->j, l->d, l->i, false, a.k);
    a.v = wml_decoder_append(l->j, l->d, l->i, true, a.v);
    if (l->d->layers) {
        l->d->key[l->i] = fresh_k; /* what the model gives back */
        l->d->value[l->i] = fresh_v;
    }
    x = wml_nn_linear(b, wml_nn_join_heads(b, wml_nn_attention_heads(b, &a)), "o_proj", p->hidden);
    wml_nn_leave(b);
    return x;
}

struct wml_value *wml_llama_feed_forward(struct wml_nn *b, const struct wml_llama *p, struct wml_value *x)
{
    struct wml_value *half[2];
    wml_nn_enter(b, "*MLP", "mlp");
    if (p->fused) {
        wml_nn_split(b, p->linear(b, x, "gate_up_proj", 2 * p->inner), -1, 2, half);
    } else {
        half[0] = p->linear(b, x, "gate_proj", p->inner);
        half[1] = p->linear(b, x, "up_proj", p->inner);
    }
    x = wml_nn_mul(b, wml_nn_act(b, half[0], p->act, "hidden_act"), half[1]);
    x = p->linear(b, x, "down_proj", p->hidden);
    wml_nn_leave(b);
    return x;
}

static struct wml_value *scaled(struct wml_nn *b, struct wml_value *x, double by)
{
    return by == 0 ? x : wml_nn_scale(b, x, by);
}

static struct wml_value *layer(struct wml_nn *b, const struct layer *l, struct wml_value *x)
{
    const struct wml_llama *p = l->p;
    wml_nn_enter(b, "*DecoderLayer", "layers.%zu", l->i);
    struct wml_value *y = attention(b, l, wml_nn_rms_norm(b, x, "input_layernorm", p->eps, p->one_plus));
    if (p->sandwich) y = wml_nn_rms_norm(b, y, "post_attention_layernorm", p->eps, p->one_plus);
    x = wml_nn_add(b, x, scaled(b, y, p->residual_scale));
    y = wml_nn_rms_norm(b, x, p->sandwich ? "pre_feedforward_layernorm" : "post_attention_layernorm", p->eps, p->one_plus);
    y = wml_llama_feed_forward(b, p, y);
    if (p->sandwich) y = wml_nn_rms_norm(b, y, "post_feedforward_layernorm", p->eps, p->one_plus);
    x = wml_nn_add(b, x, scaled(b, y, p->residual_scale));
    wml_nn_leave(b);
    return x;
}

/* Layer i has a window: layer_types says so; without it, all have where there is a window (Gemma 2: every other one). */
bool wml_llama_slides(const struct wml_family_job *j, const struct wml_llama *p, size_t i)
{
    const struct wml_json_val *kinds = wml_json_get(j->cfg, "layer_types");
    if (!p->window) return false;
    if (kinds && !wml_json_is_null(kinds)) return wml_str_is(wml_json_str(wml_json_at(kinds, i)), "sliding_attention");
    if (is(j, "gemma2")) return i % 2 == 0;
    if (is(j, "gemma3_text")) return (i + 1) % (size_t)wml_json_get_int(j->cfg, "sliding_window_pattern", 6) != 0;
    if (is(j, "qwen2") || is(j, "qwen3")) return (int64_t)i >= wml_json_get_int(j->cfg, "max_window_layers", 28);
    return true;
}

bool wml_llama_turns(const struct wml_family_job *j, size_t i)
{
    const struct wml_json_val *list = wml_json_get(j->cfg, "no_rope_layers"); /* SmolLM3: 1 where positions are used */
    return wml_json_len(list) <= i || wml_json_int(wml_json_at(list, i), 1) != 0;
}

struct wml_value *wml_llama_body(struct wml_family_job *j, const struct wml_llama *p, struct wml_decoder *d)
{
    struct wml_nn *b = j->nn;
    struct wml_nn_rope rope = {0}, local = {0}; /* local: of layers with a window, where theirs differs */
    const int64_t length = d->ids ? wml_nn_axis(d->ids, 1).size : 1;
    wml_rope_of(j, j->cfg, p->head, wml_cfg_num(j, j->cfg, "rope_theta", 10000), p->positions, length < 0 ? p->positions : d->rows, &rope);
    struct wml_nn_turn turn[2] = {wml_nn_turn(b, &rope, d->positions, d->ids, d->rows)};
    struct wml_value *x = scaled(b, wml_nn_embedding(b, d->ids, "embed_tokens", p->vocab, p->hidden), p->embed_scale);
    struct wml_value *near = NULL;
    if (p->window && !d->layers) near = wml_nn_sliding_mask(b, d->ids, d->mask, p->window);
    if (p->window && d->layers && d->rows > p->window) wml_nn_fail(b, WML_E_UNSUPPORTED, "a cache of %lld beyond the sliding window of %lld", (long long)d->rows, (long long)p->window);
    turn[1] = turn[0];
    if (is(j, "gemma3_text")) {
        wml_nn_rope_init(&local, p->head, wml_cfg_num(j, j->cfg, "rope_local_base_freq", 10000));
        turn[1] = wml_nn_turn(b, &local, d->positions, d->ids, d->rows);
    }
    for (size_t i = 0; i < (size_t)p->layers && wml_nn_ok(b); i++) {
        const bool window = wml_llama_slides(j, p, i);
        const struct layer l = {.p = p, .j = j, .d = d, .i = i, .turns = wml_llama_turns(j, i), .mask = window && near ? near : d->additive,
                                .turn = &turn[window]};
        x = layer(b, &l, x);
    }
    return wml_nn_rms_norm(b, x, "norm", p->eps, p->one_plus);
}

/* ---------------------------------------------------------------------- tasks */

struct wml_value *wml_llama_logits(struct wml_family_job *j, const struct wml_llama *p, struct wml_decoder *d)
{
    struct wml_nn *b = j->nn;
    wml_nn_enter(b, "*Model", "%s", j->type->base);
    struct wml_value *x = wml_llama_body(j, p, d);
    wml_nn_leave(b);
    x = wml_nn_tied_head(b, x, "lm_head", "/model.embed_tokens.weight", p->vocab, p->tied);
    return capped(b, scaled(b, x, p->logit_scale), p->logit_cap);
}

void wml_llama_features(struct wml_family_job *j)
{
    const struct wml_llama p = wml_llama_params(j);
    struct wml_decoder d = {0};
    wml_decoder_inputs(j, &d, p.vocab, p.positions);
    wml_nn_output(j->nn, "last_hidden_state", wml_llama_body(j, &p, &d));
}

void wml_llama_generation(struct wml_family_job *j)
{
    const struct wml_llama p = wml_llama_params(j);
    struct wml_decoder d = {0};
    wml_decoder_inputs(j, &d, p.vocab, p.positions);
    wml_nn_output(j->nn, "logits", wml_llama_logits(j, &p, &d));
}
