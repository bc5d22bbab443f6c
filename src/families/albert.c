/* families/albert.c - ALBERT (Lan et al. 2020): BERT's layers, whose weights several of them share, and narrow tables. */
#include "families/text_tasks.h"

struct groups {
    int64_t groups, inner; /* layers are in groups; each runs the `inner` ones of its group */
};

static struct wml_bert params(struct wml_family_job *j)
{
    static const struct wml_bert defaults = {.hidden = 4096, .layers = 12, .heads = 64, .inner = 16384, .vocab = 30000,
                                             .positions = 512, .segments = 2, .embedding = 128, .pad = -1, .eps = 1e-12,
                                             .act = {"gelu_new", 8}, .bias_unscaled = true};
    struct wml_bert p = wml_bert_params(j, &defaults);
    struct groups *g = WML_NEW(&j->nn->m->arena, struct groups);
    g->groups = wml_cfg_size(j, j->cfg, "num_hidden_groups", 1);
    g->inner = wml_cfg_size(j, j->cfg, "inner_group_num", 1);
    p.own = g;
    return p;
}

static struct wml_value *attention(struct wml_nn *b, const struct wml_bert *p, struct wml_value *x, const struct wml_text *t)
{
    wml_nn_enter(b, "*Attention", "attention");
    struct wml_value *y = wml_nn_linear(b, wml_bert_attention(b, p, x, t), "dense", p->hidden);
    y = wml_nn_layer_norm(b, wml_nn_add(b, x, y), "LayerNorm", p->eps);
    wml_nn_leave(b);
    return y;
}

static struct wml_value *layer(struct wml_nn *b, const struct wml_bert *p, size_t i, struct wml_value *x, const struct wml_text *t)
{
    wml_nn_enter(b, "*Layer", "albert_layers.%zu", i);
    x = attention(b, p, x, t);
    struct wml_value *y = wml_nn_act(b, wml_nn_linear(b, x, "ffn", p->inner), p->act, "hidden_act");
    y = wml_nn_add(b, wml_nn_linear(b, y, "ffn_output", p->hidden), x);
    y = wml_nn_layer_norm(b, y, "full_layer_layer_norm", p->eps);
    wml_nn_leave(b);
    return y;
}

static struct wml_value *body(struct wml_family_job *j, const struct wml_bert *p, const struct wml_text *t)
{
    struct wml_nn *b = j->nn;
    const struct groups *g = p->own;
    struct wml_value *x = wml_bert_embeddings(b, p, t);
    wml_nn_enter(b, "*Transformer", "encoder");
    x = wml_nn_linear(b, x, "embedding_hidden_mapping_in", p->hidden);
    for (int64_t i = 0; i < p->layers && wml_nn_ok(b); i++) {
        wml_nn_enter(b, "*LayerGroup", "albert_layer_groups.%lld", (long long)((double)i / ((double)p->layers / (double)g->groups)));
        for (size_t k = 0; k < (size_t)g->inner && wml_nn_ok(b); k++) x = layer(b, p, k, x, t);
        wml_nn_leave(b);
    }
    wml_nn_leave(b);
    return x;
}

static struct wml_value *pooled(struct wml_family_job *j, const struct wml_bert *p, struct wml_value *x)
{
    wml_nn_enter(j->nn, "*Model", "%s", j->type->base);
    x = wml_nn_unary(j->nn, "Tanh", wml_nn_linear(j->nn, wml_nn_pick(j->nn, x, 1, 0), "pooler", p->hidden));
    wml_nn_leave(j->nn);
    return x;
}

static struct wml_value *predict(struct wml_family_job *j, const struct wml_bert *p, struct wml_value *x)
{
    wml_nn_enter(j->nn, "*MLMHead", "predictions");
    x = wml_nn_act(j->nn, wml_nn_linear(j->nn, x, "dense", p->embedding), p->act, "hidden_act");
    x = wml_nn_layer_norm(j->nn, x, "LayerNorm", p->eps);
    x = wml_text_decode(j, x, "decoder", "embeddings.word_embeddings", p->vocab);
    wml_nn_leave(j->nn);
    return x;
}

static const struct wml_text_model model = {.params = params, .body = body, .pooled = pooled, .predict = predict};

static const struct wml_family_type types[] = {{"albert", "Albert", "albert"}, {NULL, NULL, NULL}};
const struct wml_family wml_family_albert = {.name = "albert", .type = types, .task = wml_text_tasks, .own = &model};
