/* families/roberta.c - RoBERTa (Liu et al. 2019) and its kin: BERT's body, positions counted behind padding, no segments. */
#include "families/text_tasks.h"

static struct wml_bert params(struct wml_family_job *j)
{
    static const struct wml_bert defaults = {.hidden = 768, .layers = 12, .heads = 12, .inner = 3072, .vocab = 30522,
                                             .positions = 512, .segments = 2, .pad = 1, .eps = 1e-12};
    struct wml_bert p = defaults;
    if (strcmp(j->type->model_type, "roberta") == 0) p.vocab = 50265;
    if (wml_json_get_bool(j->cfg, "quant_mode", false))
        wml_nn_fail(j->nn, WML_E_UNSUPPORTED, "config.json: quant_mode is on; only I-BERT in floating point is exported");
    return wml_bert_params(j, &p);
}

static const struct wml_text_model model = {
    .params = params, .body = wml_bert_body, .pooled = wml_bert_pooled, .classify = wml_text_classify_first, .predict = wml_text_lm_head,
};

static const struct wml_family_type types[] = {
    {"roberta", "Roberta", "roberta"},
    {"xlm-roberta", "XLMRoberta", "roberta"},
    {"camembert", "Camembert", "roberta"},
    {"data2vec-text", "Data2VecText", "data2vec_text"},
    {"ibert", "IBert", "ibert"},
    {NULL, NULL, NULL},
};
const struct wml_family wml_family_roberta = {.name = "roberta", .type = types, .task = wml_text_tasks, .own = &model};
