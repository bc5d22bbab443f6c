/* families/bert.c - BERT (Devlin et al. 2018): an encoder of text; ERNIE, which is built as it is. */
#include "families/text_tasks.h"

static struct wml_bert params(struct wml_family_job *j)
{
    static const struct wml_bert defaults = {.hidden = 768, .layers = 12, .heads = 12, .inner = 3072, .vocab = 30522,
                                             .positions = 512, .segments = 2, .pad = -1, .eps = 1e-12};
    return wml_bert_params(j, &defaults);
}

/* ERNIE (Sun et al. 2019) may know kinds of tasks, of which texts without a word of it are the first. */
static struct wml_value *body(struct wml_family_job *j, const struct wml_bert *p, const struct wml_text *t)
{
    struct wml_nn *b = j->nn;
    if (strcmp(j->type->model_type, "ernie") != 0 || !wml_json_get_bool(j->cfg, "use_task_id", false)) return wml_bert_body(j, p, t);
    wml_nn_enter(b, "*Embeddings", "embeddings");
    const int64_t kinds = wml_cfg_size(j, j->cfg, "task_type_vocab_size", 3);
    const struct wml_weight *table = wml_nn_need(b, "task_type_embeddings.weight", WML_DIMS(kinds, p->hidden));
    struct wml_value *x = wml_nn_add(b, wml_bert_embedded(b, p, t), wml_nn_rows(b, table, 0, 1));
    x = wml_nn_layer_norm(b, x, "LayerNorm", p->eps);
    wml_nn_leave(b);
    return wml_bert_encoder(b, p, x, t);
}

static const struct wml_text_model model = {
    .params = params, .body = body, .pooled = wml_bert_pooled, .predict = wml_bert_predict,
};

static const struct wml_family_type types[] = {{"bert", "Bert", "bert"}, {"ernie", "Ernie", "ernie"}, {NULL, NULL, NULL}};
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
const struct wml_family wml_family_bert = {.name = "bert", .type = types, .task = tasks, .own = &model};
