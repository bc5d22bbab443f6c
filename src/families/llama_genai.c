/* families/llama_genai.c - decoders in the manner of Llama for generation; see genai.h. */
#include <math.h>
#include "families/llama_genai.h"
#include "families/rope.h"

static struct wml_axis open_axis(const char *name)
{
    return (struct wml_axis){-1, wml_str(name)};
}

/* Positions that are exact for every length: of longrope, whose long prompts turn otherwise than short ones, the short ones. */
static int64_t positions_of(const struct wml_family_job *j, const struct wml_llama *p)
{
    const struct wml_json_val *s = wml_json_get(j->cfg, "rope_scaling");
    const struct wml_str type = wml_json_get(s, "rope_type") ? wml_json_get_str(s, "rope_type") : wml_json_get_str(s, "type");
    const int64_t old = wml_json_get_int(j->cfg, "original_max_position_embeddings", p->positions);
    return wml_str_is(type, "longrope") && old > 0 && old < p->positions ? old : p->positions;
}

bool wml_llama_genai_start(struct wml_llama_genai *r, struct wml_family_job *j)
{
    *r = (struct wml_llama_genai){.j = j, .b = j->nn, .p = wml_llama_params(j)};
    r->slots = j->size[WML_SIZE_CACHE] ? j->size[WML_SIZE_CACHE] : positions_of(j, &r->p);
    if (wml_nn_ok(r->b) && r->p.layers > WML_MAX_CACHED)
        wml_nn_fail(r->b, WML_E_UNSUPPORTED, "%lld layers, at most %d are built", (long long)r->p.layers, WML_MAX_CACHED);
    if (wml_nn_ok(r->b) && r->slots > r->p.positions) {
        wml_nn_fail(r->b, WML_E_USAGE, "a cache of %lld tokens, but the model has %lld positions", (long long)r->slots, (long long)r->p.positions);
        wml_nn_hint(r->b, "give a smaller --max-cache-len");
    }
    if (wml_nn_ok(r->b) && r->p.head % 16)
        wml_nn_fail(r->b, WML_E_UNSUPPORTED, "config.json: heads of %lld elements; GroupQueryAttention takes multiples of 16", (long long)r->p.head);
    return wml_nn_ok(r->b);
}

void wml_llama_genai_tables(struct wml_llama_genai *r, enum wml_dtype type)
{
    struct wml_nn_rope rope = {0};
    wml_rope_of(r->j, r->j->cfg, r->p.head, wml_cfg_num(r->j, r->j->cfg, "rope_theta", 10000), r->p.positions, r->slots, &rope);
    if (wml_nn_ok(r->b) && rope.size % 16) {
        wml_nn_fail(r->b, WML_E_UNSUPPORTED, "config.json: %lld elements of a head turn by their position; GroupQueryAttention takes multiples of 16",
                    (long long)rope.size);
        return;
    }
    r->cos = wml_nn_rope_rows(r->b, &rope, r->slots, false, type);
    r->sin = wml_nn_rope_rows(r->b, &rope, r->slots, true, type);
}

const char *wml_llama_genai_name(struct wml_llama_genai *r, const char *fmt_key, size_t i)
{
    const struct wml_str f = wml_str(fmt_key);
    const size_t at = wml_str_find(f, '#');
    return wml_arena_fmt(&r->b->m->arena, "%.*s%zu%s", (int)at, fmt_key, i, fmt_key + at + 1).ptr;
}

struct wml_value *wml_llama_genai_attend(struct wml_llama_genai *r, size_t i, struct wml_value *const qkv[3], bool bare)
{
    struct wml_nn *b = r->b;
    const struct wml_llama *p = &r->p;
    const bool turns = wml_llama_turns(r->j, i);
    if (!wml_nn_ok(b) || !qkv[0]) return NULL;
    struct wml_value *in[9] = {qkv[0], qkv[1], qkv[2], r->key[i], r->value[i], r->seqlens, r->total, turns ? r->cos : NULL, turns ? r->sin : NULL};
    struct wml_node *n = wml_nn_node(b, "com.microsoft", "GroupQueryAttention", turns ? 9 : 7, in);
    if (!n) return NULL;
    wml_attr_set_int(n, "num_heads", p->heads);
    wml_attr_set_int(n, "kv_num_heads", p->kv_heads);
    wml_attr_set_int(n, "do_rotary", turns);
    if (!bare) { /* some NPUs want no attribute that says what is so anyway */
        wml_attr_set_float(n, "scale", (float)(p->scale != 0 ? p->scale : 1 / sqrt((double)p->head)));
        if (p->score_cap != 0) wml_attr_set_float(n, "softcap", (float)p->score_cap);
        if (wml_llama_slides(r->j, p, i)) wml_attr_set_int(n, "local_window_size", p->window);
    }
    const enum wml_dtype type = (enum wml_dtype)wml_value_elem(qkv[0]);
    struct wml_nn_shape s = wml_nn_shape(qkv[0]), cache = wml_nn_shape(r->key[i]);
    struct wml_value *y = wml_nn_out(b, n, type, &s);
    if (cache.at[2].size < 0) cache.at[2] = open_axis("total_sequence_length");
    r->key[i] = wml_nn_out(b, n, type, &cache);
    r->value[i] = wml_nn_out(b, n, type, &cache);
    return y;
}

bool wml_llama_genai_has_norm(struct wml_llama_genai *r, const char *norm)
{
    char weight[32];
    snprintf(weight, sizeof weight, "%s.weight", norm);
    return wml_nn_has(r->b, weight);
}

struct wml_value *wml_llama_genai_scaled(struct wml_llama_genai *r, struct wml_value *x, double by)
{
    return by == 0 ? x : wml_nn_scale(r->b, x, by);
}

struct wml_value *wml_llama_genai_logits(struct wml_llama_genai *r, struct wml_value *x)
{
    const double cap = r->p.logit_cap;
    x = wml_llama_genai_scaled(r, x, r->p.logit_scale);
    return cap == 0 ? x : wml_nn_scale(r->b, wml_nn_unary(r->b, "Tanh", wml_nn_scale(r->b, x, 1 / cap)), cap);
}

/* ---------------------------------------------------------------------- plain */

static void plain_inputs(struct wml_llama_genai *r, struct wml_value **ids, struct wml_value **mask)
{
    struct wml_nn *b = r->b;
    const struct wml_axis batch = open_axis("batch_size"), total = open_axis("total_sequence_length");
    *ids = wml_nn_input(b, "input_ids", WML_I64, 2, (struct wml_axis[]){batch, open_axis("sequence_length")});
    *mask = wml_nn_input(b, "attention_mask", WML_I64, 2, (struct wml_axis[]){batch, total});
    const struct wml_axis cache[4] = {batch, {.size = r->p.kv_heads}, open_axis("past_sequence_length"), {.size = r->p.head}};
    for (size_t i = 0; i < (size_t)r->p.layers && wml_nn_ok(b); i++) {
        r->key[i] = wml_nn_input(b, wml_llama_genai_name(r, "past_key_values.#.key", i), b->real, 4, cache);
        r->value[i] = wml_nn_input(b, wml_llama_genai_name(r, "past_key_values.#.value", i), b->real, 4, cache);
    }
}

/* What the operator wants of the mask: the last valid place of every row, and how many there are at most. */
static void lengths(struct wml_llama_genai *r, struct wml_value *mask)
{
    struct wml_nn *b = r->b;
    struct wml_value *sum = wml_nn_reduce(b, "ReduceSum", mask, WML_DIMS(1), false);
    r->seqlens = wml_nn_cast(b, wml_nn_sub(b, sum, wml_nn_int(b, WML_I64, 1)), WML_I32);
    r->total = wml_nn_cast(b, wml_nn_squeeze(b, wml_nn_extent(b, mask, 1), WML_DIMS(0)), WML_I32);
}

/* Heads normalised one by one, where the checkpoint has weights for that; [batch, length, heads * size] again. */
static struct wml_value *plain_heads(struct wml_llama_genai *r, struct wml_value *x, int64_t heads, const char *norm)
{
    if (!wml_llama_genai_has_norm(r, norm)) return x;
    x = wml_nn_reshape(r->b, x, WML_DIMS(0, 0, heads, r->p.head));
    x = wml_nn_rms_norm_one(r->b, x, NULL, norm, r->p.eps, r->p.one_plus);
    return wml_nn_reshape(r->b, x, WML_DIMS(0, 0, heads * r->p.head));
}

static struct wml_value *plain_attention(struct wml_llama_genai *r, size_t i, struct wml_value *x)
{
    struct wml_value *qkv[3] = {NULL};
    wml_nn_enter(r->b, "*Attention", "self_attn");
    wml_llama_project(r->b, &r->p, x, qkv);
    qkv[0] = plain_heads(r, qkv[0], r->p.heads, "q_norm");
    qkv[1] = plain_heads(r, qkv[1], r->p.kv_heads, "k_norm");
    x = wml_nn_linear(r->b, wml_llama_genai_attend(r, i, qkv, false), "o_proj", r->p.hidden);
    wml_nn_leave(r->b);
    return x;
}

/* The stream, and what the part before added to it, which the next norm adds: one operator does both. */
static struct wml_value *plain_layer(struct wml_llama_genai *r, size_t i, struct wml_value *x, struct wml_value **add)
{
    struct wml_nn *b = r->b;
    const struct wml_llama *p = &r->p;
    const bool had = *add != NULL;
    wml_nn_enter(b, "*DecoderLayer", "layers.%zu", i);
    struct wml_value *y = wml_nn_rms_norm_one(b, x, add, "input_layernorm", p->eps, p->one_plus);
    if (had) x = *add;
    y = plain_attention(r, i, y);
    if (p->sandwich) y = wml_nn_rms_norm_one(b, y, NULL, "post_attention_layernorm", p->eps, p->one_plus);
    *add = wml_llama_genai_scaled(r, y, p->residual_scale);
    y = wml_nn_rms_norm_one(b, x, add, p->sandwich ? "pre_feedforward_layernorm" : "post_attention_layernorm", p->eps, p->one_plus);
    x = *add;
    y = wml_llama_feed_forward(b, p, y);
    if (p->sandwich) y = wml_nn_rms_norm_one(b, y, NULL, "post_feedforward_layernorm", p->eps, p->one_plus);
    *add = wml_llama_genai_scaled(r, y, p->residual_scale);
    wml_nn_leave(b);
    return x;
}

/* The logits: a tied table is turned in the graph, so that the file has it once. */
static struct wml_value *plain_head(struct wml_llama_genai *r, struct wml_value *x)
{
    struct wml_nn *b = r->b;
    const struct wml_llama *p = &r->p;
    const bool own = wml_nn_has(b, "lm_head.weight") && !p->tied;
    if (own || r->j->genai->turn_tied) x = wml_nn_tied_head(b, x, "lm_head", "/model.embed_tokens.weight", p->vocab, p->tied);
    else x = wml_nn_matmul(b, x, wml_nn_transpose(b, wml_nn_param(b, "/model.embed_tokens.weight", WML_DIMS(p->vocab, p->hidden)), "10"));
    return wml_llama_genai_logits(r, x);
}

static void present(struct wml_llama_genai *r, const char *key, const char *value)
{
    for (size_t i = 0; i < (size_t)r->p.layers && wml_nn_ok(r->b); i++) {
        wml_nn_output(r->b, wml_llama_genai_name(r, key, i), r->key[i]);
        wml_nn_output(r->b, wml_llama_genai_name(r, value, i), r->value[i]);
    }
}

static void plain(struct wml_family_job *j)
{
    struct wml_llama_genai r;
    struct wml_value *ids = NULL, *mask = NULL, *add = NULL;
    struct wml_nn *b = j->nn;
    if (!wml_llama_genai_start(&r, j)) return;
    if (strcmp(j->type->model_type, "gemma3_text") == 0) {
        wml_nn_fail(b, WML_E_UNSUPPORTED, "gemma3_text has two kinds of rotary positions, which no bundle is made of yet");
        return;
    }
    plain_inputs(&r, &ids, &mask);
    lengths(&r, mask);
    wml_llama_genai_tables(&r, b->real);
    wml_nn_enter(b, "*Model", "%s", j->type->base);
    struct wml_value *x = wml_llama_genai_scaled(&r, wml_nn_embedding(b, ids, "embed_tokens", r.p.vocab, r.p.hidden), r.p.embed_scale);
    for (size_t i = 0; i < (size_t)r.p.layers && wml_nn_ok(b); i++) x = plain_layer(&r, i, x, &add);
    x = wml_nn_rms_norm_one(b, x, &add, "norm", r.p.eps, r.p.one_plus);
    wml_nn_leave(b);
    wml_nn_output(b, "logits", plain_head(&r, x));
    present(&r, "present.#.key", "present.#.value");
}

static struct wml_genai_facts facts(struct wml_family_job *j)
{
    const struct wml_llama p = wml_llama_params(j);
    return (struct wml_genai_facts){p.hidden, p.layers, p.heads, p.kv_heads, p.head, p.vocab, positions_of(j, &p)};
}

const struct wml_family_bundle wml_llama_bundle = {
    .part = {[WML_GENAI_PLAIN] = {"plain", "ForCausalLM", plain},
             [WML_GENAI_TRANSFORMER] = {"transformer", "ForCausalLM", wml_llama_transformer},
             [WML_GENAI_EMBEDDINGS] = {"embeddings", "ForCausalLM", wml_llama_embeddings},
             [WML_GENAI_HEAD] = {"lm_head", "ForCausalLM", wml_llama_head}},
    .facts = facts,
};
