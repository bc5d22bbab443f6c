/* families/megatron_bert.c - Megatron-BERT (Shoeybi et al. 2019): BERT, normalised before attention and feed-forward. */
#include "families/text_tasks.h"

static struct wml_bert params(struct wml_family_job *j)
{
    static const struct wml_bert defaults = {.hidden = 1024, .layers = 24, .heads = 16, .inner = 4096, .vocab = 29056,
                                             .positions = 512, .segments = 2, .pad = -1, .eps = 1e-12};
    return wml_bert_params(j, &defaults);
}

static struct wml_value *body(struct wml_family_job *j, const struct wml_bert *p, const struct wml_text *t)
{
    struct wml_nn *b = j->nn;
    wml_nn_enter(b, "*Embeddings", "embeddings");
    struct wml_value *x = wml_bert_embedded(b, p, t);
    wml_nn_leave(b);
    wml_nn_enter(b, "*Encoder", "encoder");
    for (size_t i = 0; i < (size_t)p->layers && wml_nn_ok(b); i++) x = wml_bert_layer_before(b, p, i, x, t, "ln");
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
