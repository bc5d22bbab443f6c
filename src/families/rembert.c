/* families/rembert.c - RemBERT (Chung et al. 2021): BERT's layers between narrow tables of words and a wide, untied output. */
#include "families/text_tasks.h"

static struct wml_bert params(struct wml_family_job *j)
{
    static const struct wml_bert defaults = {.hidden = 1152, .layers = 32, .heads = 18, .inner = 4608, .vocab = 250300,
                                             .positions = 512, .segments = 2, .pad = -1, .eps = 1e-12};
    struct wml_bert p = wml_bert_params(j, &defaults);
    p.embedding = wml_cfg_size(j, j->cfg, "input_embedding_size", 256);
    p.places = WML_BERT_ABSOLUTE;
    return p;
}

static struct wml_value *body(struct wml_family_job *j, const struct wml_bert *p, const struct wml_text *t)
{
    struct wml_nn *b = j->nn;
    struct wml_value *x = wml_bert_embeddings(b, p, t);
    wml_nn_enter(b, "*Encoder", "encoder");
    x = wml_nn_linear(b, x, "embedding_hidden_mapping_in", p->hidden);
    for (size_t i = 0; i < (size_t)p->layers && wml_nn_ok(b); i++) x = wml_bert_layer(b, p, i, x, t);
    wml_nn_leave(b);
    return x;
}

static struct wml_value *predict(struct wml_family_job *j, const struct wml_bert *p, struct wml_value *x)
{
    struct wml_nn *b = j->nn;
    wml_nn_enter(b, "*OnlyMLMHead", "cls");
    wml_nn_enter(b, "*LMPredictionHead", "predictions");
    x = wml_nn_linear(b, x, "dense", wml_cfg_size(j, j->cfg, "output_embedding_size", 1664));
    x = wml_nn_layer_norm(b, wml_nn_act(b, x, p->act, "hidden_act"), "LayerNorm", p->eps);
    x = wml_nn_linear(b, x, "decoder", p->vocab);
    wml_nn_leave(b);
    wml_nn_leave(b);
    return x;
}

static const struct wml_text_model model = {.params = params, .body = body, .pooled = wml_bert_pooled, .predict = predict};

static const struct wml_family_type types[] = {{"rembert", "RemBert", "rembert"}, {NULL, NULL, NULL}};
const struct wml_family wml_family_rembert = {.name = "rembert", .type = types, .task = wml_text_tasks, .own = &model};
