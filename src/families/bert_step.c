/* families/bert_step.c - see bert_step.h. */
#include "families/bert_step.h"

void wml_bert_step_inputs(struct wml_family_job *j, const struct wml_bert *p, struct wml_seq2seq *s, int64_t source, int64_t width,
                          bool trust_mask)
{
    const int64_t places = p->positions - (p->pad + 1);
    if (p->hidden % p->heads)
        wml_nn_fail(j->nn, WML_E_FORMAT, "config.json: a width of %lld does not divide into %lld attention heads", (long long)p->hidden, (long long)p->heads);
    if (places < 1) wml_nn_fail(j->nn, WML_E_FORMAT, "config.json: no position is left of %lld behind pad_token_id %lld", (long long)p->positions, (long long)p->pad);
    if (p->places != WML_BERT_ABSOLUTE) wml_nn_fail(j->nn, WML_E_UNSUPPORTED, "config.json: a decoder whose position_embedding_type is not absolute");
    wml_step_inputs(j, s, &(struct wml_step_sizes){.vocab = p->vocab, .source = source, .width = width, .slots = places, .places = places,
                                                   .layers = p->layers, .heads = p->heads, .size = p->hidden / p->heads,
                                                   .trust_mask = trust_mask});
}

static struct wml_value *embeddings(struct wml_nn *b, const struct wml_bert *p, const struct wml_seq2seq *s)
{
    wml_nn_enter(b, "*Embeddings", "embeddings");
    struct wml_value *x = wml_nn_embedding(b, s->ids, "word_embeddings", p->vocab, p->hidden);
    if (p->segments) {
        const struct wml_weight *table = wml_nn_need(b, "token_type_embeddings.weight", WML_DIMS(p->segments, p->hidden));
        x = wml_nn_add(b, x, wml_nn_rows(b, table, 0, 1));
    }
    const struct wml_weight *table = wml_nn_need(b, "position_embeddings.weight", WML_DIMS(p->positions, p->hidden));
    x = wml_nn_add(b, x, wml_nn_gather(b, wml_nn_rows(b, table, p->pad + 1, p->positions), s->place, 0));
    x = wml_nn_layer_norm(b, x, "LayerNorm", p->eps);
    wml_nn_leave(b);
    return x;
}

static struct wml_value *attention(struct wml_nn *b, const struct wml_bert *p, struct wml_seq2seq *s, size_t i, bool cross, struct wml_value *x)
{
    struct wml_nn_attention a = {.heads = p->heads, .scale = 1, .mask = cross ? s->source_mask : s->mask, .turned = cross};
    struct wml_value *from = cross ? s->states : x, *y;
    wml_nn_enter(b, "*Attention", cross ? "crossattention" : "attention");
    wml_nn_enter(b, "*SelfAttention", "self");
    a.q = wml_step_split(b, wml_nn_queries(b, x, "query", p->hidden, p->heads), p->heads);
    a.k = wml_nn_linear(b, from, "key", p->hidden);
    a.v = wml_nn_linear(b, from, "value", p->hidden);
    a.k = cross ? wml_nn_split_turned(b, a.k, p->heads) : wml_step_append(b, s, i, false, a.k, p->heads);
    a.v = cross ? wml_nn_split_heads(b, a.v, p->heads) : wml_step_append(b, s, i, true, a.v, p->heads);
    y = wml_step_join(b, wml_nn_attention_heads(b, &a));
    wml_nn_leave(b);
    y = wml_bert_sum(b, p, "*SelfOutput", "output", y, x);
    wml_nn_leave(b);
    return y;
}

struct wml_value *wml_bert_step(struct wml_nn *b, const struct wml_bert *p, struct wml_seq2seq *s)
{
    struct wml_value *x = embeddings(b, p, s);
    wml_nn_enter(b, "*Encoder", "encoder");
    for (size_t i = 0; i < (size_t)p->layers && wml_nn_ok(b); i++) {
        wml_nn_enter(b, "*Layer", "layer.%zu", i);
        x = attention(b, p, s, i, false, x);
        x = wml_bert_feed_forward(b, p, attention(b, p, s, i, true, x));
        wml_nn_leave(b);
    }
    wml_nn_leave(b);
    return x;
}

/* Linear to the vocabulary, its bias its own or beside it. */
static struct wml_value *decode(struct wml_family_job *j, const struct wml_bert *p, struct wml_value *x, const char *words)
{
    struct wml_nn *b = j->nn;
    const bool tied = wml_json_get_bool(j->cfg, "tie_word_embeddings", true);
    const struct wml_weight *bias = wml_nn_has(b, "bias") ? wml_nn_need(b, "bias", WML_DIMS(p->vocab)) : NULL;
    wml_nn_enter_layer(b, "Linear", "decoder");
    const struct wml_weight *w = wml_nn_need(b, wml_nn_has(b, "weight") && !tied ? "weight" : words, WML_DIMS(p->vocab, p->hidden));
    if (wml_nn_has(b, "bias")) bias = wml_nn_need(b, "bias", WML_DIMS(p->vocab));
    x = wml_nn_linear_with(b, x, w, bias);
    wml_nn_leave(b);
    return x;
}

struct wml_value *wml_bert_step_predict(struct wml_family_job *j, const struct wml_bert *p, struct wml_value *x, const char *words)
{
    struct wml_nn *b = j->nn;
    wml_nn_enter(b, "*OnlyMLMHead", "cls");
    wml_nn_enter(b, "*LMPredictionHead", "predictions");
    x = wml_bert_transform(b, p, x, p->hidden);
    x = decode(j, p, x, words);
    wml_nn_leave(b);
    wml_nn_leave(b);
    return x;
}

struct wml_value *wml_bert_step_lm_head(struct wml_family_job *j, const struct wml_bert *p, struct wml_value *x, const char *words)
{
    struct wml_nn *b = j->nn;
    wml_nn_enter(b, "*LMHead", "lm_head");
    x = wml_nn_layer_norm(b, wml_nn_gelu(b, wml_nn_linear(b, x, "dense", p->hidden)), "layer_norm", p->eps);
    x = decode(j, p, x, words);
    wml_nn_leave(b);
    return x;
}
