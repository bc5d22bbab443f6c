/* families/bert.c - BERT (Devlin et al. 2018): an encoder of text. */
#include "families/text_tasks.h"

static struct wml_bert params(struct wml_family_job *j)
{
    static const struct wml_bert defaults = {.hidden = 768, .layers = 12, .heads = 12, .inner = 3072, .vocab = 30522,
                                             .positions = 512, .segments = 2, .pad = -1, .eps = 1e-12};
    return wml_bert_params(j, &defaults);
}

static const struct wml_text_model model = {
    .params = params, .body = wml_bert_body, .pooled = wml_bert_pooled, .predict = wml_bert_predict,
};

static void features(struct wml_family_job *j) { wml_text_features(j, &model); }
static void fill_mask(struct wml_family_job *j) { wml_text_fill_mask(j, &model); }
static void classes(struct wml_family_job *j) { wml_text_classes(j, &model); }
static void next_sentence(struct wml_family_job *j) { wml_text_next_sentence(j, &model); }
static void token_classes(struct wml_family_job *j) { wml_text_token_classes(j, &model); }
static void question(struct wml_family_job *j) { wml_text_question(j, &model); }
static void choice(struct wml_family_job *j) { wml_text_choice(j, &model); }

static const struct wml_family_type types[] = {{"bert", "Bert", "bert"}, {NULL, NULL, NULL}};
static const struct wml_family_task tasks[] = {
    {"feature-extraction", "Model", features},
    {"fill-mask", "ForMaskedLM", fill_mask},
    {"text-classification", "ForSequenceClassification", classes},
    {"next-sentence-prediction", "ForNextSentencePrediction", next_sentence},
    {"token-classification", "ForTokenClassification", token_classes},
    {"question-answering", "ForQuestionAnswering", question},
    {"multiple-choice", "ForMultipleChoice", choice},
    {NULL, NULL, NULL},
};
const struct wml_family wml_family_bert = {"bert", types, tasks, NULL};
