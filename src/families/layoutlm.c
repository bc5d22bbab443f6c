/* families/layoutlm.c - LayoutLM (Xu et al. 2020): BERT, whose embeddings know where on the page a word's box is. */
#include "families/text_tasks.h"

static struct wml_bert params(struct wml_family_job *j)
{
    static const struct wml_bert defaults = {.hidden = 768, .layers = 12, .heads = 12, .inner = 3072, .vocab = 30522,
                                             .positions = 512, .segments = 2, .pad = -1, .eps = 1e-12};
    return wml_bert_params(j, &defaults);
}

static int64_t page(struct wml_family_job *j)
{
    return wml_cfg_size(j, j->cfg, "max_2d_position_embeddings", 1024);
}

static struct wml_text inputs(struct wml_family_job *j, const struct wml_bert *p, bool choices)
{
    (void)choices;
    const int64_t n = wml_family_length(j, p->positions);
    struct wml_text t = {.ids = wml_family_input(j, "input_ids", WML_I32, WML_DIMS(j->batch, n), 0, (double)p->vocab)};
    t.boxes = wml_family_input(j, "bbox", WML_I32, WML_DIMS(j->batch, n, 4), 0, (double)WML_MIN(page(j), 1001));
    t.mask = wml_family_input(j, "attention_mask", WML_I32, WML_DIMS(j->batch, n), 0, 2);
    t.types = wml_family_input(j, "token_type_ids", WML_I32, WML_DIMS(j->batch, n), 0, 1); /* pages have one segment */
    t.additive = wml_nn_padding_mask(j->nn, t.mask);
    return t;
}

/* Left, top, right, bottom, height and width of the boxes, each from a table. */
static struct wml_value *add_boxes(struct wml_family_job *j, const struct wml_bert *p, const struct wml_text *t, struct wml_value *x)
{
    struct wml_nn *b = j->nn;
    const int64_t rows = page(j);
    struct wml_value *side[4];
    for (size_t i = 0; i < 4; i++) side[i] = wml_nn_pick(b, t->boxes, 2, (int64_t)i);
    for (size_t i = 0; i < 4; i++)
        x = wml_nn_add(b, x, wml_nn_embedding(b, side[i], i % 2 ? "y_position_embeddings" : "x_position_embeddings", rows, p->embedding));
    x = wml_nn_add(b, x, wml_nn_embedding(b, wml_nn_sub(b, side[3], side[1]), "h_position_embeddings", rows, p->embedding));
    return wml_nn_add(b, x, wml_nn_embedding(b, wml_nn_sub(b, side[2], side[0]), "w_position_embeddings", rows, p->embedding));
}

static struct wml_value *body(struct wml_family_job *j, const struct wml_bert *p, const struct wml_text *t)
{
    struct wml_nn *b = j->nn;
    wml_nn_enter(b, "*Embeddings", "embeddings");
    struct wml_value *x = add_boxes(j, p, t, wml_bert_embedded(b, p, t));
    x = wml_nn_layer_norm(b, x, "LayerNorm", p->eps);
    wml_nn_leave(b);
    return wml_bert_encoder(b, p, x, t);
}

static const struct wml_text_model model = {
    .params = params, .inputs = inputs, .body = body, .pooled = wml_bert_pooled, .predict = wml_bert_predict,
};

static const struct wml_family_type types[] = {{"layoutlm", "LayoutLM", "layoutlm"}, {NULL, NULL, NULL}};
static const struct wml_family_task tasks[] = {
    {"feature-extraction", "Model", wml_text_features},
    {"fill-mask", "ForMaskedLM", wml_text_fill_mask},
    {"text-classification", "ForSequenceClassification", wml_text_classes},
    {"token-classification", "ForTokenClassification", wml_text_token_classes},
    {"question-answering", "ForQuestionAnswering", wml_text_question},
    {"document-question-answering", "ForQuestionAnswering", wml_text_question},
    {NULL, NULL, NULL},
};
const struct wml_family wml_family_layoutlm = {.name = "layoutlm", .type = types, .task = tasks, .own = &model};
