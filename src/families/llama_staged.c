/* families/llama_staged.c - decoders in the manner of Llama as a pipeline for NPUs; see genai.h.
 *
 * What NPUs run well: linear layers as convolutions by 1x1 over [1, 1, length, channels], norms as LpNormalization, every axis
 * fixed. Attention and its cache have a type of their own, which stays when the rest becomes integers. */
#include <math.h>
#include "families/llama_genai.h"

/* The checkpoint's [out, in] as a kernel; a bias is added behind it. */
static struct wml_value *conv_linear(struct wml_nn *b, struct wml_value *x, const char *name, int64_t out)
{
    static const struct wml_nn_window window = {.kernel = 1};
    if (b->failed || !x) return NULL;
    wml_nn_enter_layer(b, "Linear", "%s", name);
    const struct wml_weight *w = wml_nn_need(b, "weight", WML_DIMS(out, wml_nn_size(b, x, -1, "the width of a layer's input")));
    const struct wml_weight *bias = w && wml_nn_has(b, "bias") ? wml_nn_need(b, "bias", WML_DIMS(out)) : NULL;
    x = wml_nn_transpose(b, x, "0312");
    if (w) x = wml_nn_conv_node(b, x, wml_nn_reshaped(b, w, WML_DIMS(out, w->dims[1], 1, 1)), NULL, &window);
    x = wml_nn_transpose(b, x, "0231");
    if (bias) x = wml_nn_add(b, x, wml_nn_param_of(b, bias));
    wml_nn_leave(b);
    return x;
}

/* GroupQueryAttention says these by attributes, which NPUs do not read. */
static void refuse_peculiar(struct wml_llama_genai *r)
{
    const struct wml_llama *p = &r->p;
    const char *what = p->score_cap != 0 ? "scores with a soft limit"
                       : p->window && p->window < r->slots ? "a sliding window shorter than the cache" : NULL;
    if (!what) return;
    wml_nn_fail(r->b, WML_E_UNSUPPORTED, "config.json: %s, which a pipeline for NPUs cannot have", what);
    wml_nn_hint(r->b, "--export-type plain makes a bundle of one graph%s", p->window ? "; or give a smaller --max-cache-len" : "");
}

static void inputs(struct wml_llama_genai *r, int64_t step, enum wml_dtype type, struct wml_value **x)
{
    struct wml_nn *b = r->b;
    const struct wml_axis cache[4] = {{.size = 1}, {.size = r->p.kv_heads}, {.size = r->slots}, {.size = r->p.head}};
    for (size_t i = 0; i < (size_t)r->p.layers && wml_nn_ok(b); i++) {
        r->key[i] = wml_nn_input(b, wml_llama_genai_name(r, "past_keys_#", i), type, 4, cache);
        r->value[i] = wml_nn_input(b, wml_llama_genai_name(r, "past_values_#", i), type, 4, cache);
    }
    *x = wml_nn_input(b, "input_hidden_states", WML_F32, 3, (struct wml_axis[]){{.size = 1}, {.size = step}, {.size = r->p.hidden}});
    r->seqlens = wml_nn_input(b, "past_seq_len", WML_I32, 2, (struct wml_axis[]){{.size = 1}, {.size = 1}});
    r->total = wml_nn_input(b, "total_seq_len", WML_I32, 1, (struct wml_axis[]){{.size = 1}});
}

/* [1, 1, length, heads * size] as attention takes it, [1, length, heads * size], normalised head by head where there are weights for that,
 * then scaled. */
static struct wml_value *operand(struct wml_llama_genai *r, struct wml_value *x, int64_t step, int64_t heads, const char *norm,
                                 double by)
{
    struct wml_nn *b = r->b;
    if (!wml_nn_ok(b)) return NULL;
    if (norm && wml_llama_genai_has_norm(r, norm)) {
        x = wml_nn_reshape(b, x, WML_DIMS(1, step, heads, r->p.head));
        x = wml_nn_rms_norm_lp(b, x, norm, r->p.one_plus);
    }
    x = wml_llama_genai_scaled(r, x, by);
    return wml_nn_cast(b, wml_nn_reshape(b, x, WML_DIMS(1, step, heads * r->p.head)), (enum wml_dtype)wml_value_elem(r->key[0]));
}

static struct wml_value *attention(struct wml_llama_genai *r, size_t i, int64_t step, struct wml_value *x)
{
    struct wml_nn *b = r->b;
    const struct wml_llama *p = &r->p;
    struct wml_value *qkv[3] = {NULL};
    wml_nn_enter(b, "*Attention", "self_attn");
    wml_llama_project(b, p, x, qkv);
    qkv[0] = operand(r, qkv[0], step, p->heads, "q_norm", p->scale * sqrt((double)p->head)); /* the operator divides by the root */
    qkv[1] = operand(r, qkv[1], step, p->kv_heads, "k_norm", 0);
    qkv[2] = operand(r, qkv[2], step, p->kv_heads, NULL, 0);
    x = wml_nn_cast(b, wml_llama_genai_attend(r, i, qkv, true), WML_F32);
    x = conv_linear(b, wml_nn_reshape(b, x, WML_DIMS(1, 1, step, p->heads * p->head)), "o_proj", p->hidden);
    wml_nn_leave(b);
    return x;
}

static struct wml_value *layer(struct wml_llama_genai *r, size_t i, int64_t step, struct wml_value *x)
{
    struct wml_nn *b = r->b;
    const struct wml_llama *p = &r->p;
    wml_nn_enter(b, "*DecoderLayer", "layers.%zu", i);
    struct wml_value *y = attention(r, i, step, wml_nn_rms_norm_lp(b, x, "input_layernorm", p->one_plus));
    x = wml_nn_add(b, x, wml_llama_genai_scaled(r, y, p->residual_scale));
    y = wml_llama_feed_forward(b, p, wml_nn_rms_norm_lp(b, x, "post_attention_layernorm", p->one_plus));
    x = wml_nn_add(b, x, wml_llama_genai_scaled(r, y, p->residual_scale));
    wml_nn_leave(b);
    return x;
}

void wml_llama_transformer(struct wml_family_job *j)
{
    struct wml_llama_genai r;
    struct wml_value *x = NULL;
    struct wml_nn *b = j->nn;
    const enum wml_dtype type = j->genai->cache ? j->genai->cache : WML_F32;
    const int64_t step = j->size[WML_SIZE_NEW_TOKENS] ? j->size[WML_SIZE_NEW_TOKENS] : 1;
    if (!wml_llama_genai_start(&r, j)) return;
    r.p.linear = conv_linear;
    refuse_peculiar(&r);
    inputs(&r, step, type, &x);
    wml_llama_genai_tables(&r, type);
    wml_nn_enter(b, "*Model", "%s", j->type->base);
    x = wml_nn_reshape(b, x, WML_DIMS(1, 1, step, r.p.hidden));
    for (size_t i = 0; i < (size_t)r.p.layers && wml_nn_ok(b); i++) x = layer(&r, i, step, x);
    x = wml_nn_reshape(b, wml_nn_rms_norm_lp(b, x, "norm", r.p.one_plus), WML_DIMS(1, step, r.p.hidden));
    wml_nn_leave(b);
    wml_nn_output(b, "output_hidden_states", x);
    for (size_t i = 0; i < (size_t)r.p.layers && wml_nn_ok(b); i++) {
        wml_nn_output(b, wml_llama_genai_name(&r, "present_keys_#", i), r.key[i]);
        wml_nn_output(b, wml_llama_genai_name(&r, "present_values_#", i), r.value[i]);
    }
}

/* ------------------------------------------------------- the stages on the CPU */

static struct wml_axis length_axis(void)
{
    return (struct wml_axis){-1, WML_STR("seq_len")};
}

void wml_llama_embeddings(struct wml_family_job *j)
{
    struct wml_llama_genai r;
    struct wml_nn *b = j->nn;
    if (!wml_llama_genai_start(&r, j)) return;
    struct wml_value *ids = wml_nn_input(b, "input_ids", WML_I64, 2, (struct wml_axis[]){{.size = 1}, length_axis()});
    wml_nn_enter(b, "*Model", "%s", j->type->base);
    struct wml_value *x = wml_nn_embedding(b, ids, "embed_tokens", r.p.vocab, r.p.hidden);
    wml_nn_leave(b);
    wml_nn_output(b, "input_hidden_states", wml_llama_genai_scaled(&r, x, r.p.embed_scale));
}

void wml_llama_head(struct wml_family_job *j)
{
    struct wml_llama_genai r;
    struct wml_nn *b = j->nn;
    if (!wml_llama_genai_start(&r, j)) return;
    struct wml_value *x = wml_nn_input(b, "output_hidden_states", WML_F32, 3, (struct wml_axis[]){{.size = 1}, length_axis(), {.size = r.p.hidden}});
    x = wml_nn_tied_head(b, x, "lm_head", "/model.embed_tokens.weight", r.p.vocab, r.p.tied);
    wml_nn_output(b, "logits", wml_llama_genai_logits(&r, x));
}
