/* families/mpnet.c - MPNet (Song et al. 2020): BERT's layers, T5's buckets of distances in every attention. */
#include "families/text_tasks.h"
#include "nn/relative.h"

static struct wml_bert params(struct wml_family_job *j)
{
    static const struct wml_bert defaults = {.hidden = 768, .layers = 12, .heads = 12, .inner = 3072, .vocab = 30527,
                                             .positions = 512, .pad = 1, .eps = 1e-12};
    struct wml_bert p = wml_bert_params(j, &defaults);
    p.pad = 1; /* of positions, whatever pad_token_id is */
    return p;
}

static struct wml_value *attention(struct wml_nn *b, const struct wml_bert *p, struct wml_value *x, const struct wml_text *t,
                                   struct wml_value *bias)
{
    wml_nn_enter(b, "*Attention", "attention");
    wml_nn_enter(b, "*SelfAttention", "attn");
    const struct wml_nn_attention a = {.q = wml_nn_queries(b, x, "q", p->hidden, p->heads), .k = wml_nn_keys(b, x, "k", p->hidden),
                                       .v = wml_nn_linear(b, x, "v", p->hidden), .heads = p->heads, .scale = 1, .bias = bias, .mask = t->additive};
    struct wml_value *y = wml_nn_linear(b, wml_nn_attention(b, &a), "o", p->hidden);
    wml_nn_leave(b);
    y = wml_nn_layer_norm(b, wml_nn_add(b, y, x), "LayerNorm", p->eps);
    wml_nn_leave(b);
    return y;
}

static struct wml_value *body(struct wml_family_job *j, const struct wml_bert *p, const struct wml_text *t)
{
    struct wml_nn *b = j->nn;
    static const struct wml_nn_buckets buckets = {.buckets = 32, .max_distance = 128, .both_ways = true};
    struct wml_value *x = wml_bert_embeddings(b, p, t);
    wml_nn_enter(b, "*Encoder", "encoder");
    const int64_t rows = wml_cfg_size(j, j->cfg, "relative_attention_num_buckets", 32);
    const struct wml_weight *table = wml_nn_need(b, "relative_attention_bias.weight", WML_DIMS(rows, p->heads));
    struct wml_value *bias = wml_nn_bucket_bias(b, table, &buckets, t->ids, 1);
    for (size_t i = 0; i < (size_t)p->layers && wml_nn_ok(b); i++) {
        wml_nn_enter(b, "*Layer", "layer.%zu", i);
        x = wml_bert_feed_forward(b, p, attention(b, p, x, t, bias));
        wml_nn_leave(b);
    }
    wml_nn_leave(b);
    return x;
}

static const struct wml_text_model model = {
    .params = params, .body = body, .pooled = wml_bert_pooled, .classify = wml_text_classify_first, .predict = wml_text_lm_head,
};

static const struct wml_family_type types[] = {{"mpnet", "MPNet", "mpnet"}, {NULL, NULL, NULL}};
const struct wml_family wml_family_mpnet = {.name = "mpnet", .type = types, .task = wml_text_tasks, .own = &model};
