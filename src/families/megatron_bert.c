/* families/megatron_bert.c - Megatron-BERT (Shoeybi et al. 2019): BERT, normalised before attention and feed-forward. */
#include "families/text_tasks.h"

static struct wml_bert params(struct wml_family_job *j)
{
    static const struct wml_bert defaults = {.hidden = 1024, .layers = 24, .heads = 16, .inner = 4096, .vocab = 29056,
                                             .positions = 512, .segments = 2, .pad = -1, .eps = 1e-12};
    return wml_bert_params(j, &defaults);
}

/* "dense" and the sum: the next layer normalises it. */
static struct wml_value *sum(struct wml_nn *b, const struct wml_bert *p, const char *class_name, struct wml_value *x, struct wml_value *rest)
{
    wml_nn_enter(b, class_name, "output");
    x = wml_nn_add(b, wml_nn_linear(b, x, "dense", p->hidden), rest);
    wml_nn_leave(b);
    return x;
}

static struct wml_value *layer(struct wml_nn *b, const struct wml_bert *p, size_t i, struct wml_value *x, const struct wml_text *t)
{
    wml_nn_enter(b, "*Layer", "layer.%zu", i);
    wml_nn_enter(b, "*Attention", "attention");
    struct wml_value *y = wml_nn_layer_norm(b, x, "ln", p->eps);
    wml_nn_enter(b, "*SelfAttention", "self");
    y = wml_bert_attention(b, p, y, t);
    wml_nn_leave(b);
    x = sum(b, p, "*SelfOutput", y, x);
    wml_nn_leave(b);
    x = sum(b, p, "*Output", wml_bert_inner(b, p, wml_nn_layer_norm(b, x, "ln", p->eps)), x);
    wml_nn_leave(b);
    return x;
}

static struct wml_value *body(struct wml_family_job *j, const struct wml_bert *p, const struct wml_text *t)
{
    struct wml_nn *b = j->nn;
    wml_nn_enter(b, "*Embeddings", "embeddings");
    struct wml_value *x = wml_bert_embedded(b, p, t);
    wml_nn_leave(b);
    wml_nn_enter(b, "*Encoder", "encoder");
    for (size_t i = 0; i < (size_t)p->layers && wml_nn_ok(b); i++) x = layer(b, p, i, x, t);
    x = wml_nn_layer_norm(b, x, "ln", p->eps);
    wml_nn_leave(b);
    return x;
}

static const struct wml_text_model model = {.params = params, .body = body, .pooled = wml_bert_pooled, .predict = wml_bert_predict};

static const struct wml_family_type types[] = {{"megatron-bert", "MegatronBert", "bert"}, {NULL, NULL, NULL}};
static const struct wml_family_task tasks[] = {
    {"feature-extraction", "Model", wml_text_features},
    {"fill-mask", "ForMaskedLM", wml_text_fill_mask},
    {"text-classification", "ForSequenceClassification", wml_text_classes},
    {"next-sentence-prediction", "ForNextSentencePrediction", wml_text_next_sentence},
    {"token-classification", "ForTokenClassification", wml_text_token_classes},
    {"question-answering", "ForQuestionAnswering", wml_text_question},
    {"multiple-choice", "ForMultipleChoice", wml_text_choice},
    {NULL, NULL, NULL},
};
const struct wml_family wml_family_megatron_bert = {.name = "megatron_bert", .type = types, .task = tasks, .own = &model};
