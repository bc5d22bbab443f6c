/* families/bert_body.c - see bert_body.h. */
#include <math.h>
#include "families/text_tasks.h"
#include "nn/relative.h"

static enum wml_bert_places places_of(struct wml_family_job *j)
{
    const struct wml_str s = wml_cfg_str(j, j->cfg, "position_embedding_type", "absolute");
    if (wml_str_is(s, "relative_key")) return WML_BERT_RELATIVE_KEY;
    if (wml_str_is(s, "relative_key_query")) return WML_BERT_RELATIVE_BOTH;
    if (!wml_str_is(s, "absolute")) {
        wml_nn_fail(j->nn, WML_E_UNSUPPORTED, "config.json: position_embedding_type '%.*s' is not known", WML_ARG(s));
        wml_nn_hint(j->nn, "known are absolute, relative_key, relative_key_query");
    }
    return WML_BERT_ABSOLUTE;
}

struct wml_bert wml_bert_params(struct wml_family_job *j, const struct wml_bert *defaults)
{
    const struct wml_json_val *c = j->cfg;
    struct wml_bert p = *defaults;
    p.hidden = wml_cfg_size(j, c, "hidden_size", p.hidden);
    p.layers = wml_cfg_count(j, c, "num_hidden_layers", p.layers);
    p.heads = wml_cfg_size(j, c, "num_attention_heads", p.heads);
    p.inner = wml_cfg_size(j, c, "intermediate_size", p.inner);
    p.vocab = wml_cfg_size(j, c, "vocab_size", p.vocab);
    p.positions = wml_cfg_size(j, c, "max_position_embeddings", p.positions);
    if (p.segments) p.segments = wml_cfg_size(j, c, "type_vocab_size", p.segments);
    p.embedding = p.embedding ? wml_cfg_size(j, c, "embedding_size", p.embedding) : p.hidden;
    if (p.pad >= 0) p.pad = wml_cfg_count(j, c, "pad_token_id", p.pad);
    p.eps = wml_cfg_num(j, c, "layer_norm_eps", p.eps);
    p.act = wml_cfg_str(j, c, "hidden_act", p.act.len ? p.act.ptr : "gelu");
    p.places = places_of(j);
    return p;
}

struct wml_text wml_bert_inputs(struct wml_family_job *j, const struct wml_bert *p, bool choices)
{
    const int64_t usable = p->positions - (p->pad + 1) - p->first;
    if (usable < 1)
        wml_nn_fail(j->nn, WML_E_FORMAT, "config.json: no position is left of max_position_embeddings %lld behind pad_token_id %lld",
                    (long long)p->positions, (long long)p->pad);
    struct wml_text t = wml_text_inputs(j, p->vocab, usable, p->pad < 0 ? p->segments : 0, choices);
    if (p->own_mask || !p->layers) return t;
    t.additive = wml_json_get_bool(j->cfg, "is_decoder", false) ? wml_nn_causal_mask(j->nn, t.ids, t.mask) : wml_nn_padding_mask(j->nn, t.mask);
    return t;
}

/* -------------------------------------------------------------- embeddings */

static struct wml_value *add_segments(struct wml_nn *b, const struct wml_bert *p, const struct wml_text *t, struct wml_value *x)
{
    if (!p->segments) return x;
    if (t->types) return wml_nn_add(b, x, wml_nn_embedding(b, t->types, "token_type_embeddings", p->segments, p->embedding));
    const struct wml_weight *table = wml_nn_need(b, "token_type_embeddings.weight", WML_DIMS(p->segments, p->embedding));
    return wml_nn_add(b, x, wml_nn_rows(b, table, 0, 1));
}

static struct wml_value *add_positions(struct wml_nn *b, const struct wml_bert *p, const struct wml_text *t, struct wml_value *x)
{
    if (p->places != WML_BERT_ABSOLUTE) return x;
    if (p->pad >= 0) return wml_nn_add(b, x, wml_text_positions(b, t->ids, "position_embeddings", p->pad, p->positions, p->embedding));
    const struct wml_weight *table = wml_nn_need(b, "position_embeddings.weight", WML_DIMS(p->positions, p->embedding));
    return wml_nn_add(b, x, wml_nn_position_rows(b, table, t->ids, 1, p->first));
}

struct wml_value *wml_bert_embedded(struct wml_nn *b, const struct wml_bert *p, const struct wml_text *t)
{
    struct wml_value *x = wml_nn_embedding(b, t->ids, "word_embeddings", p->vocab, p->embedding);
    return add_positions(b, p, t, add_segments(b, p, t, x));
}

struct wml_value *wml_bert_embeddings(struct wml_nn *b, const struct wml_bert *p, const struct wml_text *t)
{
    wml_nn_enter(b, "*Embeddings", "embeddings");
    struct wml_value *x = wml_nn_layer_norm(b, wml_bert_embedded(b, p, t), "LayerNorm", p->eps);
    wml_nn_leave(b);
    return x;
}

/* ------------------------------------------------------------------ layers */

/* Rows of the table of distances [2 * positions - 1]; it counts from the key to the query. */
static int64_t row_of(int64_t positions, int64_t distance)
{
    const int64_t row = positions - 1 - distance;
    return row < 0 ? 0 : WML_MIN(row, 2 * positions - 2);
}
static int64_t row_of_query(const void *positions, int64_t distance) { return row_of(*(const int64_t *)positions, distance); }
static int64_t row_of_key(const void *positions, int64_t distance) { return row_of(*(const int64_t *)positions, -distance); }

/* What the vectors of distances, times `by`, say to x [batch, heads, n, size]: [batch, heads, n, n]. */
static struct wml_value *distance_scores(struct wml_nn *b, const struct wml_bert *p, struct wml_value *x, struct wml_value *ids,
                                         int64_t (*row)(const void *positions, int64_t distance), double by)
{
    const struct wml_weight *table = wml_nn_need(b, "distance_embedding.weight", WML_DIMS(2 * p->positions - 1, p->hidden / p->heads));
    return wml_nn_to_keys(b, wml_nn_matmul(b, x, wml_nn_distance_vectors(b, table, ids, p->positions, row, &p->positions, by)), ids);
}

static struct wml_value *distance_bias(struct wml_nn *b, const struct wml_bert *p, const struct wml_nn_attention *a, struct wml_value *ids)
{
    if (wml_nn_axis(ids, 1).size > p->positions)
        return wml_nn_fail(b, WML_E_UNSUPPORTED, "%lld tokens, but the model has %lld positions", (long long)wml_nn_axis(ids, 1).size, (long long)p->positions);
    const double scale = 1 / sqrt((double)p->hidden / (double)p->heads); /* queries have it already */
    struct wml_value *s = distance_scores(b, p, a->q, ids, row_of_query, p->bias_unscaled ? 1 / scale : 1);
    if (p->places != WML_BERT_RELATIVE_BOTH) return s;
    struct wml_value *k = distance_scores(b, p, a->k, ids, row_of_key, p->bias_unscaled ? 1 : scale);
    return wml_nn_add(b, s, wml_nn_transpose(b, k, "0132"));
}

struct wml_value *wml_bert_attention(struct wml_nn *b, const struct wml_bert *p, struct wml_value *x, const struct wml_text *t)
{
    const bool both = p->places == WML_BERT_RELATIVE_BOTH; /* keys have scores with distances, too */
    struct wml_nn_attention a = {.q = wml_nn_queries(b, x, "query", p->hidden, p->heads),
                                 .k = both ? wml_nn_linear(b, x, "key", p->hidden) : wml_nn_keys(b, x, "key", p->hidden),
                                 .v = wml_nn_linear(b, x, "value", p->hidden), .heads = p->heads, .scale = 1, .mask = t->additive};
    if (p->places == WML_BERT_ABSOLUTE) return wml_nn_attention(b, &a);
    a.q = wml_nn_split_heads(b, a.q, p->heads);
    a.k = wml_nn_split_heads(b, a.k, p->heads);
    a.v = wml_nn_split_heads(b, a.v, p->heads);
    a.bias = distance_bias(b, p, &a, t->ids);
    return wml_nn_join_heads(b, wml_nn_attention_heads(b, &a));
}

struct wml_value *wml_bert_sum(struct wml_nn *b, const struct wml_bert *p, const char *class_name, const char *name,
                               struct wml_value *x, struct wml_value *rest)
{
    wml_nn_enter(b, class_name, "%s", name);
    x = wml_nn_layer_norm(b, wml_nn_add(b, wml_nn_linear(b, x, "dense", p->hidden), rest), "LayerNorm", p->eps);
    wml_nn_leave(b);
    return x;
}

/* The module "self" of a layer's attention. */
static struct wml_value *self_attention(struct wml_nn *b, const struct wml_bert *p, struct wml_value *x, const struct wml_text *t)
{
    wml_nn_enter(b, p->self_class ? p->self_class : "*SelfAttention", "self");
    x = p->self ? p->self(b, p, x, t) : wml_bert_attention(b, p, x, t);
    wml_nn_leave(b);
    return x;
}

static struct wml_value *attention(struct wml_nn *b, const struct wml_bert *p, struct wml_value *x, const struct wml_text *t)
{
    wml_nn_enter(b, "*Attention", "attention");
    x = wml_bert_sum(b, p, "*SelfOutput", "output", self_attention(b, p, x, t), x);
    wml_nn_leave(b);
    return x;
}

static struct wml_value *dense(struct wml_nn *b, const struct wml_bert *p, struct wml_value *x, int64_t out)
{
    return p->dense ? p->dense(b, p, x, out) : wml_nn_linear(b, x, "dense", out);
}

struct wml_value *wml_bert_inner(struct wml_nn *b, const struct wml_bert *p, struct wml_value *x)
{
    wml_nn_enter(b, "*Intermediate", "intermediate");
    x = wml_nn_act(b, dense(b, p, x, p->inner), p->act, "hidden_act");
    wml_nn_leave(b);
    return x;
}

struct wml_value *wml_bert_feed_forward(struct wml_nn *b, const struct wml_bert *p, struct wml_value *x)
{
    struct wml_value *y = wml_bert_inner(b, p, x);
    wml_nn_enter(b, "*Output", "output");
    y = wml_nn_layer_norm(b, wml_nn_add(b, dense(b, p, y, p->hidden), x), "LayerNorm", p->eps);
    wml_nn_leave(b);
    return y;
}

struct wml_value *wml_bert_layer(struct wml_nn *b, const struct wml_bert *p, size_t i, struct wml_value *x, const struct wml_text *t)
{
    wml_nn_enter(b, "*Layer", "layer.%zu", i);
    x = wml_bert_feed_forward(b, p, attention(b, p, x, t));
    wml_nn_leave(b);
    return x;
}

struct wml_value *wml_bert_encoder(struct wml_nn *b, const struct wml_bert *p, struct wml_value *x, const struct wml_text *t)
{
    wml_nn_enter(b, "*Encoder", "encoder");
    for (size_t i = 0; i < (size_t)p->layers && wml_nn_ok(b); i++) x = wml_bert_layer(b, p, i, x, t);
    wml_nn_leave(b);
    return x;
}

struct wml_value *wml_bert_body(struct wml_family_job *j, const struct wml_bert *p, const struct wml_text *t)
{
    return wml_bert_encoder(j->nn, p, wml_bert_embeddings(j->nn, p, t), t);
}

struct wml_value *wml_bert_projected_body(struct wml_family_job *j, const struct wml_bert *p, const struct wml_text *t)
{
    struct wml_value *x = wml_bert_embeddings(j->nn, p, t);
    if (p->embedding != p->hidden) x = wml_nn_linear(j->nn, x, "embeddings_project", p->hidden);
    return wml_bert_encoder(j->nn, p, x, t);
}

/* ------------------------------------------------------------------- heads */

struct wml_value *wml_bert_pooled(struct wml_family_job *j, const struct wml_bert *p, struct wml_value *x)
{
    wml_nn_enter(j->nn, "*Model", "%s", j->type->base);
    wml_nn_enter(j->nn, "*Pooler", "pooler");
    x = wml_nn_unary(j->nn, "Tanh", wml_nn_linear(j->nn, wml_nn_pick(j->nn, x, 1, 0), "dense", p->hidden));
    wml_nn_leave(j->nn);
    wml_nn_leave(j->nn);
    return x;
}

/* "dense" and the sum: the next layer normalises it. */
static struct wml_value *sum_alone(struct wml_nn *b, const struct wml_bert *p, const char *class_name, struct wml_value *x, struct wml_value *rest)
{
    wml_nn_enter(b, class_name, "output");
    x = wml_nn_add(b, wml_nn_linear(b, x, "dense", p->hidden), rest);
    wml_nn_leave(b);
    return x;
}

struct wml_value *wml_bert_layer_before(struct wml_nn *b, const struct wml_bert *p, size_t i, struct wml_value *x, const struct wml_text *t, const char *norm)
{
    wml_nn_enter(b, "*Layer", "layer.%zu", i);
    wml_nn_enter(b, "*Attention", "attention");
    x = sum_alone(b, p, "*SelfOutput", self_attention(b, p, wml_nn_layer_norm(b, x, norm, p->eps), t), x);
    wml_nn_leave(b);
    x = sum_alone(b, p, "*Output", wml_bert_inner(b, p, wml_nn_layer_norm(b, x, norm, p->eps)), x);
    wml_nn_leave(b);
    return x;
}

struct wml_value *wml_bert_transform(struct wml_nn *b, const struct wml_bert *p, struct wml_value *x, int64_t width)
{
    wml_nn_enter(b, "*PredictionHeadTransform", "transform");
    x = wml_nn_act(b, wml_nn_linear(b, x, "dense", width), p->act, "hidden_act");
    x = wml_nn_layer_norm(b, x, "LayerNorm", p->eps);
    wml_nn_leave(b);
    return x;
}

struct wml_value *wml_bert_predict(struct wml_family_job *j, const struct wml_bert *p, struct wml_value *x)
{
    struct wml_nn *b = j->nn;
    wml_nn_enter(b, "*OnlyMLMHead", "cls");
    wml_nn_enter(b, "*LMPredictionHead", "predictions");
    x = wml_bert_transform(b, p, x, p->embedding);
    x = wml_text_decode(j, x, "decoder", "embeddings.word_embeddings", p->vocab);
    wml_nn_leave(b);
    wml_nn_leave(b);
    return x;
}
