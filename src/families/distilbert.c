/* families/distilbert.c - DistilBERT (Sanh et al. 2019): BERT's layers under names of its own, no segments. */
#include "families/text_tasks.h"

static struct wml_bert params(struct wml_family_job *j)
{
    const struct wml_json_val *c = j->cfg;
    const int64_t dim = wml_cfg_size(j, c, "dim", 768);
    return (struct wml_bert){
        .hidden = dim,
        .embedding = dim,
        .layers = wml_cfg_count(j, c, "n_layers", 6),
        .heads = wml_cfg_size(j, c, "n_heads", 12),
        .inner = wml_cfg_size(j, c, "hidden_dim", 4 * 768),
        .vocab = wml_cfg_size(j, c, "vocab_size", 30522),
        .positions = wml_cfg_size(j, c, "max_position_embeddings", 512),
        .pad = -1,
        .eps = 1e-12,
        .act = wml_cfg_str(j, c, "activation", "gelu"),
    };
}

static struct wml_value *attention(struct wml_nn *b, const struct wml_bert *p, struct wml_value *x, const struct wml_text *t)
{
    wml_nn_enter(b, "MultiHeadSelfAttention", "attention");
    const struct wml_nn_attention a = {.q = wml_nn_queries(b, x, "q_lin", p->hidden, p->heads), .k = wml_nn_keys(b, x, "k_lin", p->hidden),
                                       .v = wml_nn_linear(b, x, "v_lin", p->hidden), .heads = p->heads, .scale = 1,
                                       .mask = t->additive};
    struct wml_value *y = wml_nn_linear(b, wml_nn_attention(b, &a), "out_lin", p->hidden);
    wml_nn_leave(b);
    return wml_nn_layer_norm(b, wml_nn_add(b, y, x), "sa_layer_norm", p->eps);
}

static struct wml_value *feed_forward(struct wml_nn *b, const struct wml_bert *p, struct wml_value *x)
{
    wml_nn_enter(b, "FFN", "ffn");
    struct wml_value *y = wml_nn_act(b, wml_nn_linear(b, x, "lin1", p->inner), p->act, "activation");
    y = wml_nn_linear(b, y, "lin2", p->hidden);
    wml_nn_leave(b);
    return wml_nn_layer_norm(b, wml_nn_add(b, y, x), "output_layer_norm", p->eps);
}

static struct wml_value *body(struct wml_family_job *j, const struct wml_bert *p, const struct wml_text *t)
{
    struct wml_nn *b = j->nn;
    wml_nn_enter(b, "Embeddings", "embeddings");
    struct wml_value *x = wml_nn_layer_norm(b, wml_bert_embedded(b, p, t), "LayerNorm", p->eps);
    wml_nn_leave(b);
    wml_nn_enter(b, "Transformer", "transformer");
    for (size_t i = 0; i < (size_t)p->layers && wml_nn_ok(b); i++) {
        wml_nn_enter(b, "TransformerBlock", "layer.%zu", i);
        x = feed_forward(b, p, attention(b, p, x, t));
        wml_nn_leave(b);
    }
    wml_nn_leave(b);
    return x;
}

static struct wml_value *pooled(struct wml_family_job *j, const struct wml_bert *p, struct wml_value *x)
{
    return wml_nn_unary(j->nn, "Relu", wml_nn_linear(j->nn, wml_nn_pick(j->nn, x, 1, 0), "pre_classifier", p->hidden));
}

static struct wml_value *predict(struct wml_family_job *j, const struct wml_bert *p, struct wml_value *x)
{
    x = wml_nn_act(j->nn, wml_nn_linear(j->nn, x, "vocab_transform", p->hidden), p->act, "activation");
    x = wml_nn_layer_norm(j->nn, x, "vocab_layer_norm", p->eps);
    return wml_text_decode(j, x, "vocab_projector", "embeddings.word_embeddings", p->vocab);
}

static const struct wml_text_model model = {.params = params, .body = body, .pooled = pooled, .predict = predict};

static const struct wml_family_type types[] = {{"distilbert", "DistilBert", "distilbert"}, {NULL, NULL, NULL}};
const struct wml_family wml_family_distilbert = {.name = "distilbert", .type = types, .task = wml_text_tasks, .own = &model};
