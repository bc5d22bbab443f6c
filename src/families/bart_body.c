/* families/bart_body.c - see bart_body.h. */
#include <math.h>
#include "families/bart_body.h"

enum { EPS_INVERSE = 100000 /* of every norm: configs do not say it */ };

static void stack_params(struct wml_family_job *j, const char *layers, const char *heads, const char *inner, struct wml_bart_stack *s)
{
    s->layers = wml_cfg_count(j, j->cfg, layers, s->layers);
    s->heads = wml_cfg_size(j, j->cfg, heads, s->heads);
    s->inner = wml_cfg_size(j, j->cfg, inner, s->inner);
}

void wml_bart_params(struct wml_family_job *j, struct wml_bart *p)
{
    const struct wml_json_val *c = j->cfg;
    stack_params(j, "encoder_layers", "encoder_attention_heads", "encoder_ffn_dim", &p->encoder);
    stack_params(j, "decoder_layers", "decoder_attention_heads", "decoder_ffn_dim", &p->decoder);
    p->width = p->states = wml_cfg_size(j, c, "d_model", p->width);
    p->encoder.vocab = p->decoder.vocab = wml_cfg_size(j, c, "vocab_size", p->encoder.vocab);
    p->encoder.positions = p->decoder.positions = wml_cfg_size(j, c, "max_position_embeddings", p->encoder.positions);
    p->pad = wml_cfg_count(j, c, "pad_token_id", p->pad);
    p->scale = wml_json_get_bool(c, "scale_embedding", p->scale != 1) ? sqrt((double)p->width) : 1;
    p->act = wml_cfg_str(j, c, "activation_function", p->act.len ? p->act.ptr : "gelu");
    p->tied = wml_json_get_bool(c, "tie_word_embeddings", true);
}

static struct wml_value *norm(struct wml_nn *b, struct wml_value *x, const char *name)
{
    return wml_nn_layer_norm(b, x, name, 1.0 / EPS_INVERSE);
}

/* -------------------------------------------------------------- embeddings */

struct wml_value *wml_bart_embed(struct wml_nn *b, const struct wml_bart *p, struct wml_value *ids)
{
    wml_nn_enter_layer(b, "Embedding", "embed_tokens");
    const bool shared = p->shared && wml_nn_has(b, p->shared);
    const struct wml_weight *table = wml_nn_need(b, shared ? p->shared : "weight", WML_DIMS(-1, p->width));
    struct wml_value *x = wml_nn_gather(b, wml_nn_param_of(b, table), ids, 0);
    wml_nn_leave(b);
    return wml_nn_scale(b, x, p->scale);
}

/* Angle of column c at a place. Both formulas are computed as the libraries do it, in doubles and in floats. */
static double wave(const struct wml_bart *p, int64_t place, int64_t c)
{
    const int64_t half = p->width / 2;
    if (p->places == WML_BART_COUNTED) {
        const float step = (float)(-log(10000) / (double)(half > 1 ? half - 1 : 1));
        return (double)((float)place * expf((float)(c % half) * step));
    }
    const int64_t sines = (p->width + 1) / 2, of = c < sines ? 2 * c : 2 * (c - sines) + 1;
    return (double)place / pow(10000, 2.0 * (double)(of / 2) / (double)p->width);
}

/* Places [from, from + rows). */
static struct wml_value *waves(struct wml_nn *b, const struct wml_bart *p, int64_t from, int64_t rows)
{
    const int64_t width = p->width, sines = p->places == WML_BART_COUNTED ? width / 2 : (width + 1) / 2;
    const bool blank = p->places == WML_BART_COUNTED; /* padding has no place, and an odd column nothing */
    float *t = wml_nn_room(b, "positions", sizeof *t, WML_DIMS(rows, width));
    if (!t) return NULL;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t c = 0; c < width; c++) {
            if (blank && (i + from == p->pad || c >= 2 * sines)) continue;
            const double a = wave(p, i + from, c);
            t[i * width + c] = (float)(c < sines ? sin(a) : cos(a));
        }
    return wml_nn_const(b, "embed_positions", WML_F32, WML_DIMS(rows, width), t);
}

/* The first rows of the table, behind the offset. */
static struct wml_value *first_places(struct wml_nn *b, const struct wml_bart *p, int64_t all, int64_t rows)
{
    if (p->places == WML_BART_COUNTED || (p->places == WML_BART_WAVES && !wml_nn_has(b, "embed_positions.weight")))
        return waves(b, p, p->offset, rows);
    const struct wml_weight *w = wml_nn_need(b, "embed_positions.weight", WML_DIMS(all + p->offset, p->width));
    return wml_nn_rows(b, w, p->offset, p->offset + rows);
}

static struct wml_value *places(struct wml_nn *b, const struct wml_bart *p, int64_t all, struct wml_value *x)
{
    const struct wml_axis n = wml_nn_axis(x, 1);
    if (n.size > all) {
        wml_nn_fail(b, WML_E_UNSUPPORTED, "%lld places, but the model has %lld", (long long)n.size, (long long)all);
        return wml_nn_hint(b, "give smaller inputs with --shape-config");
    }
    struct wml_value *rows = first_places(b, p, all, n.size >= 0 ? n.size : all);
    return n.size >= 0 ? rows : wml_nn_slice_to(b, rows, 0, wml_nn_extent(b, x, 1), n);
}

/* pad + 1, pad + 2, ... for tokens, pad for padding. */
static struct wml_value *counted(struct wml_nn *b, const struct wml_bart *p, struct wml_value *ids, int64_t all)
{
    const enum wml_dtype dtype = wml_value_elem(ids);
    if (wml_nn_axis(ids, 1).size > all) return wml_nn_fail(b, WML_E_UNSUPPORTED, "%lld tokens, but the model has %lld positions", (long long)wml_nn_axis(ids, 1).size, (long long)all);
    struct wml_value *blank = wml_nn_compare(b, "Equal", ids, wml_nn_int(b, dtype, p->pad));
    struct wml_value *token = wml_nn_cast(b, wml_nn_unary(b, "Not", blank), dtype);
    struct wml_value *at = wml_nn_mul(b, wml_nn_cumsum(b, token, 1), token); /* 0: padding */
    return wml_nn_gather(b, waves(b, p, p->pad, all + 1), at, 0);
}

struct wml_value *wml_bart_add_positions(struct wml_nn *b, const struct wml_bart *p, struct wml_value *x, struct wml_value *ids)
{
    if (b->failed || !x) return NULL;
    if (ids && p->places == WML_BART_COUNTED) return wml_nn_add(b, x, counted(b, p, ids, p->encoder.positions));
    return wml_nn_add(b, x, places(b, p, p->encoder.positions, x));
}

/* ------------------------------------------------------------------ layers */

static struct wml_value *before(struct wml_nn *b, const struct wml_bart *p, struct wml_value *x, const char *name)
{
    return p->pre ? norm(b, x, name) : x;
}

static struct wml_value *after(struct wml_nn *b, const struct wml_bart *p, struct wml_value *x, struct wml_value *y, const char *name)
{
    x = wml_nn_add(b, x, y);
    return p->pre ? x : norm(b, x, name);
}

static struct wml_value *feed_forward(struct wml_nn *b, const struct wml_bart *p, struct wml_value *x, int64_t inner)
{
    struct wml_value *y = wml_nn_linear(b, before(b, p, x, "final_layer_norm"), "fc1", inner);
    y = wml_nn_linear(b, wml_nn_act(b, y, p->act, "activation_function"), "fc2", p->width);
    return after(b, p, x, y, "final_layer_norm");
}

/* from: what keys and values are made of. */
static struct wml_value *attention(struct wml_nn *b, const struct wml_bart *p, const char *name, int64_t heads, struct wml_value *x,
                                   struct wml_value *from, struct wml_value *mask)
{
    wml_nn_enter(b, "*Attention", "%s", name);
    const struct wml_nn_attention a = {.q = wml_nn_queries(b, x, "q_proj", p->width, heads), .k = wml_nn_keys(b, from, "k_proj", p->width),
                                       .v = wml_nn_linear(b, from, "v_proj", p->width), .heads = heads, .scale = 1, .mask = mask};
    x = wml_nn_linear(b, wml_nn_attention(b, &a), "out_proj", p->width);
    wml_nn_leave(b);
    return x;
}

/* The same for one token, whose keys and values come from a cache or from the encoder's states. */
static struct wml_value *step_attention(struct wml_nn *b, const struct wml_bart *p, struct wml_seq2seq *s, size_t i, bool cross, struct wml_value *x)
{
    const int64_t heads = p->decoder.heads;
    wml_nn_enter(b, "*Attention", cross ? "encoder_attn" : "self_attn");
    struct wml_value *from = cross ? s->states : x;
    struct wml_nn_attention a = {.heads = heads, .scale = 1, .mask = cross ? s->source_mask : s->mask, .turned = cross};
    a.q = wml_step_split(b, wml_nn_queries(b, x, "q_proj", p->width, heads), heads);
    a.k = wml_nn_linear(b, from, "k_proj", p->width);
    a.v = wml_nn_linear(b, from, "v_proj", p->width);
    a.k = cross ? wml_nn_split_turned(b, a.k, heads) : wml_step_append(b, s, i, false, a.k, heads);
    a.v = cross ? wml_nn_split_heads(b, a.v, heads) : wml_step_append(b, s, i, true, a.v, heads);
    x = wml_nn_linear(b, wml_step_join(b, wml_nn_attention_heads(b, &a)), "out_proj", p->width);
    wml_nn_leave(b);
    return x;
}

struct wml_value *wml_bart_encoder_layer(struct wml_nn *b, const struct wml_bart *p, size_t i, struct wml_value *x, struct wml_value *mask)
{
    wml_nn_enter(b, "*EncoderLayer", "layers.%zu", i);
    struct wml_value *y = before(b, p, x, "self_attn_layer_norm");
    y = attention(b, p, "self_attn", p->encoder.heads, y, y, mask);
    x = feed_forward(b, p, after(b, p, x, y, "self_attn_layer_norm"), p->encoder.inner);
    wml_nn_leave(b);
    return x;
}

static struct wml_value *decoder_layer(struct wml_nn *b, const struct wml_bart *p, size_t i, struct wml_value *x, struct wml_seq2seq *s)
{
    const int64_t heads = p->decoder.heads;
    wml_nn_enter(b, "*DecoderLayer", "layers.%zu", i);
    struct wml_value *y = before(b, p, x, "self_attn_layer_norm");
    y = s->step ? step_attention(b, p, s, i, false, y) : attention(b, p, "self_attn", heads, y, y, s->mask);
    x = after(b, p, x, y, "self_attn_layer_norm");
    y = before(b, p, x, "encoder_attn_layer_norm");
    y = s->step ? step_attention(b, p, s, i, true, y) : attention(b, p, "encoder_attn", heads, y, s->states, s->source_mask);
    x = after(b, p, x, y, "encoder_attn_layer_norm");
    x = feed_forward(b, p, x, p->decoder.inner);
    wml_nn_leave(b);
    return x;
}

struct wml_value *wml_bart_encoder_end(struct wml_nn *b, const struct wml_bart *p, struct wml_value *x)
{
    return p->pre ? norm(b, x, "layer_norm") : x;
}

struct wml_value *wml_bart_encoder(struct wml_nn *b, const struct wml_bart *p, struct wml_value *ids, struct wml_value *mask)
{
    wml_nn_enter(b, "*Encoder", "encoder");
    struct wml_value *x = wml_bart_add_positions(b, p, wml_bart_embed(b, p, ids), ids);
    if (p->first_norm) x = norm(b, x, "layernorm_embedding");
    for (size_t i = 0; i < (size_t)p->encoder.layers && wml_nn_ok(b); i++) x = wml_bart_encoder_layer(b, p, i, x, mask);
    x = wml_bart_encoder_end(b, p, x);
    wml_nn_leave(b);
    return x;
}

/* A step's position is looked up, those of a text are the first rows. */
static struct wml_value *decoder_places(struct wml_nn *b, const struct wml_bart *p, const struct wml_seq2seq *s)
{
    const int64_t all = p->decoder.positions;
    if (!s->step) return p->places == WML_BART_COUNTED ? counted(b, p, s->ids, all) : places(b, p, all, s->ids);
    return wml_nn_gather(b, first_places(b, p, all, all), s->place, 0);
}

struct wml_value *wml_bart_decoder(struct wml_nn *b, const struct wml_bart *p, struct wml_seq2seq *s)
{
    wml_nn_enter(b, "*Decoder", "decoder");
    struct wml_value *x = wml_bart_embed(b, p, s->ids);
    if (p->first_norm && p->norm_words) x = norm(b, x, "layernorm_embedding");
    x = wml_nn_add(b, x, decoder_places(b, p, s));
    if (p->first_norm && !p->norm_words) x = norm(b, x, "layernorm_embedding");
    for (size_t i = 0; i < (size_t)p->decoder.layers && wml_nn_ok(b); i++) x = decoder_layer(b, p, i, x, s);
    if (p->pre) x = norm(b, x, "layer_norm");
    wml_nn_leave(b);
    return x;
}

/* ------------------------------------------------------------------- tasks */

void wml_bart_step_inputs(struct wml_family_job *j, const struct wml_bart *p, struct wml_seq2seq *s, int64_t source, bool source_mask)
{
    const struct wml_bart_stack *d = &p->decoder;
    if (p->width % d->heads)
        wml_nn_fail(j->nn, WML_E_FORMAT, "config.json: a width of %lld does not divide into %lld attention heads", (long long)p->width, (long long)d->heads);
    wml_step_inputs(j, s, &(struct wml_step_sizes){.vocab = d->vocab, .source = source, .width = p->states, .slots = d->positions,
                                                   .places = d->positions, .layers = d->layers, .heads = d->heads, .size = p->width / d->heads,
                                                   .source_mask = source_mask, .trust_mask = p->trust_mask});
}

void wml_bart_encode(struct wml_family_job *j, const struct wml_bart *p)
{
    struct wml_nn *b = j->nn;
    struct wml_value *mask = NULL, *ids = wml_source_inputs(j, 0, p->encoder.vocab, p->encoder.positions, &mask);
    wml_nn_enter(b, "*Model", "model");
    struct wml_value *x = wml_bart_encoder(b, p, ids, mask);
    wml_nn_leave(b);
    wml_nn_output(b, "encoder_hidden_states", x);
}

void wml_bart_step(struct wml_family_job *j, const struct wml_bart *p)
{
    struct wml_nn *b = j->nn;
    struct wml_seq2seq s;
    wml_bart_step_inputs(j, p, &s, wml_family_length(j, p->encoder.positions), true);
    wml_nn_enter(b, "*Model", "model");
    struct wml_value *x = wml_bart_decoder(b, p, &s);
    const bool shared = p->shared && wml_nn_has(b, p->shared);
    wml_nn_leave(b);
    x = wml_nn_tied_head(b, x, "lm_head", shared ? p->shared : "/model.decoder.embed_tokens.weight", p->decoder.vocab, p->tied);
    if (wml_nn_has(b, "final_logits_bias")) x = wml_nn_add(b, x, wml_nn_param(b, "final_logits_bias", WML_DIMS(1, p->decoder.vocab)));
    wml_step_outputs(b, &s, x);
}

void wml_bart_encode_task(struct wml_family_job *j)
{
    const struct wml_bart p = ((const struct wml_bart_kind *)j->family->own)->params(j);
    wml_bart_encode(j, &p);
}

void wml_bart_step_task(struct wml_family_job *j)
{
    const struct wml_bart p = ((const struct wml_bart_kind *)j->family->own)->params(j);
    wml_bart_step(j, &p);
}
