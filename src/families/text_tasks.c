/* families/text_tasks.c - see text_tasks.h. */
#include "families/text_tasks.h"

#include <stdio.h>

struct wml_value *wml_text_encode(struct wml_family_job *j, const struct wml_text_model *m, const struct wml_bert *p,
                                  const struct wml_text *t)
{
    wml_nn_enter(j->nn, "*Model", "%s", j->type->base);
    struct wml_value *x = m->body(j, p, t);
    wml_nn_leave(j->nn);
    return x;
}

static struct wml_text inputs(struct wml_family_job *j, const struct wml_text_model *m, const struct wml_bert *p, bool choices)
{
    return m->inputs ? m->inputs(j, p, choices) : wml_bert_inputs(j, p, choices);
}

static struct wml_value *encoded(struct wml_family_job *j, const struct wml_text_model *m, const struct wml_bert *p)
{
    const struct wml_text t = inputs(j, m, p, false);
    return wml_text_encode(j, m, p, &t);
}

void wml_text_features(struct wml_family_job *j)
{
    const struct wml_text_model *m = j->family->own;
    const struct wml_bert p = m->params(j);
    const struct wml_text t = inputs(j, m, &p, false);
    wml_nn_output(j->nn, "last_hidden_state", m->body(j, &p, &t));
}

void wml_text_fill_mask(struct wml_family_job *j)
{
    const struct wml_text_model *m = j->family->own;
    const struct wml_bert p = m->params(j);
    wml_nn_output(j->nn, "logits", m->predict(j, &p, encoded(j, m, &p)));
}

void wml_text_classes(struct wml_family_job *j)
{
    const struct wml_text_model *m = j->family->own;
    const struct wml_bert p = m->params(j);
    struct wml_value *x = encoded(j, m, &p);
    x = m->classify ? m->classify(j, &p, x) : wml_nn_linear(j->nn, m->pooled(j, &p, x), "classifier", wml_cfg_labels(j, j->cfg));
    wml_nn_output(j->nn, "logits", x);
}

/* Does the second text follow the first: BERT's other task of training. */
void wml_text_next_sentence(struct wml_family_job *j)
{
    const struct wml_text_model *m = j->family->own;
    const struct wml_bert p = m->params(j);
    struct wml_value *x = m->pooled(j, &p, encoded(j, m, &p));
    wml_nn_enter(j->nn, "*OnlyNSPHead", "cls");
    x = wml_nn_linear(j->nn, x, "seq_relationship", 2);
    wml_nn_leave(j->nn);
    wml_nn_output(j->nn, "logits", x);
}

void wml_text_token_classes(struct wml_family_job *j)
{
    const struct wml_text_model *m = j->family->own;
    const struct wml_bert p = m->params(j);
    struct wml_value *x = encoded(j, m, &p);
    if (m->tokens) x = m->tokens(j, &p, x);
    wml_nn_output(j->nn, "logits", wml_nn_linear(j->nn, x, "classifier", wml_cfg_labels(j, j->cfg)));
}

void wml_text_answers(struct wml_nn *b, struct wml_value *x)
{
    wml_nn_output(b, "start_logits", wml_nn_pick(b, x, -1, 0));
    wml_nn_output(b, "end_logits", wml_nn_pick(b, x, -1, 1));
}

void wml_text_question(struct wml_family_job *j)
{
    const struct wml_text_model *m = j->family->own;
    const struct wml_bert p = m->params(j);
    wml_text_answers(j->nn, wml_nn_linear(j->nn, encoded(j, m, &p), "qa_outputs", 2));
}

void wml_text_chosen(struct wml_nn *b, const struct wml_text *t, struct wml_value *x)
{
    const struct wml_nn_shape s = {2, {wml_nn_axis(t->choices, 0), wml_nn_axis(t->choices, 1)}};
    if (s.at[1].size >= 0) x = wml_nn_reshape(b, x, WML_DIMS(-1, s.at[1].size));
    else x = wml_nn_reshape_to(b, x, WML_VALUES(wml_nn_extent(b, t->choices, 0), wml_nn_extent(b, t->choices, 1)), &s);
    wml_nn_output(b, "logits", x);
}

void wml_text_choice(struct wml_family_job *j)
{
    const struct wml_text_model *m = j->family->own;
    const struct wml_bert p = m->params(j);
    const struct wml_text t = inputs(j, m, &p, true);
    wml_text_chosen(j->nn, &t, wml_nn_linear(j->nn, m->pooled(j, &p, wml_text_encode(j, m, &p, &t)), "classifier", 1));
}

const struct wml_family_task wml_text_tasks[] = {
    {"feature-extraction", "Model", wml_text_features},
    {"fill-mask", "ForMaskedLM", wml_text_fill_mask},
    {"text-classification", "ForSequenceClassification", wml_text_classes},
    {"token-classification", "ForTokenClassification", wml_text_token_classes},
    {"question-answering", "ForQuestionAnswering", wml_text_question},
    {"multiple-choice", "ForMultipleChoice", wml_text_choice},
    {NULL, NULL, NULL},
};

/* ------------------------------------------------------------------- heads */

/* The table of words in the model with a head; checkpoints of the bare model have it without the base. */
static const struct wml_weight *words_table(struct wml_family_job *j, const char *words, int64_t rows, int64_t width)
{
    char name[200];
    snprintf(name, sizeof name, "/%s%s%s.weight", j->type->base ? j->type->base : "", j->type->base ? "." : "", words);
    return wml_nn_need(j->nn, name, WML_DIMS(rows, width));
}

struct wml_value *wml_text_decode(struct wml_family_job *j, struct wml_value *x, const char *name, const char *words, int64_t vocab)
{
    struct wml_nn *b = j->nn;
    if (!wml_nn_ok(b) || !x) return NULL;
    const int64_t width = wml_nn_size(b, x, -1, "the width of a head");
    const struct wml_weight *bias = wml_nn_has(b, "bias") ? wml_nn_need(b, "bias", WML_DIMS(vocab)) : NULL; /* beside it, or its own */
    wml_nn_enter_layer(b, "Linear", "%s", name);
    const bool own = wml_nn_has(b, "weight") && !wml_json_get_bool(j->cfg, "tie_word_embeddings", true);
    const struct wml_weight *w = own ? wml_nn_need(b, "weight", WML_DIMS(vocab, width)) : words_table(j, words, vocab, width);
    if (wml_nn_has(b, "bias")) bias = wml_nn_need(b, "bias", WML_DIMS(vocab));
    x = wml_nn_linear_with(b, x, w, bias);
    wml_nn_leave(b);
    return x;
}

struct wml_value *wml_text_lm_head(struct wml_family_job *j, const struct wml_bert *p, struct wml_value *x)
{
    wml_nn_enter(j->nn, "*LMHead", "lm_head");
    x = wml_nn_gelu(j->nn, wml_nn_linear(j->nn, x, "dense", p->hidden)); /* whatever hidden_act is */
    x = wml_nn_layer_norm(j->nn, x, "layer_norm", p->eps);
    x = wml_text_decode(j, x, "decoder", "embeddings.word_embeddings", p->vocab);
    wml_nn_leave(j->nn);
    return x;
}

struct wml_value *wml_text_class_head(struct wml_family_job *j, const struct wml_bert *p, struct wml_value *x, struct wml_str act)
{
    wml_nn_enter(j->nn, "*ClassificationHead", "classifier");
    x = wml_nn_act(j->nn, wml_nn_linear(j->nn, wml_nn_pick(j->nn, x, 1, 0), "dense", p->hidden), act, "the activation of the head");
    x = wml_nn_linear(j->nn, x, "out_proj", wml_cfg_labels(j, j->cfg));
    wml_nn_leave(j->nn);
    return x;
}

struct wml_value *wml_text_classify_first(struct wml_family_job *j, const struct wml_bert *p, struct wml_value *x)
{
    return wml_text_class_head(j, p, x, WML_STR("tanh"));
}

/* A config without these keys is of a class that has them as defaults, or that has none of them. */
static struct wml_value *summary(struct wml_family_job *j, const struct wml_bert *p, struct wml_value *x, const char *type_, bool proj, const char *act_)
{
    struct wml_nn *b = j->nn;
    const struct wml_json_val *said = wml_json_get(j->cfg, "summary_activation");
    const struct wml_str type = wml_cfg_str(j, j->cfg, "summary_type", type_), act = wml_cfg_str(j, j->cfg, "summary_activation", act_);
    const bool to_labels = wml_json_get_bool(j->cfg, "summary_proj_to_labels", false);
    wml_nn_enter(b, "*SequenceSummary", "sequence_summary");
    if (wml_str_is(type, "first")) x = wml_nn_pick(b, x, 1, 0);
    else if (wml_str_is(type, "last") || wml_str_is(type, "cls_index")) x = wml_nn_pick(b, x, 1, -1);
    else if (wml_str_is(type, "mean")) x = wml_nn_reduce(b, "ReduceMean", x, WML_DIMS(1), false);
    else wml_nn_fail(b, WML_E_UNSUPPORTED, "config.json: summary_type '%.*s' is not known", WML_ARG(type));
    if (wml_json_get_bool(j->cfg, "summary_use_proj", proj)) x = wml_nn_linear(b, x, "summary", to_labels ? wml_cfg_labels(j, j->cfg) : p->hidden);
    if (act.len && !(said && wml_json_is_null(said))) x = wml_nn_act(b, x, act, "summary_activation");
    wml_nn_leave(b);
    return x;
}

struct wml_value *wml_text_summary(struct wml_family_job *j, const struct wml_bert *p, struct wml_value *x)
{
    return summary(j, p, x, "first", true, "gelu");
}

struct wml_value *wml_text_summary_last(struct wml_family_job *j, const struct wml_bert *p, struct wml_value *x)
{
    return summary(j, p, x, "last", false, "");
}

struct wml_value *wml_text_classify_act(struct wml_family_job *j, const struct wml_bert *p, struct wml_value *x)
{
    return wml_text_class_head(j, p, x, p->act);
}

struct wml_value *wml_text_generator(struct wml_family_job *j, const struct wml_bert *p, struct wml_value *x)
{
    wml_nn_enter(j->nn, "*GeneratorPredictions", "generator_predictions");
    x = wml_nn_gelu(j->nn, wml_nn_linear(j->nn, x, "dense", p->embedding));
    x = wml_nn_layer_norm(j->nn, x, "LayerNorm", p->eps);
    wml_nn_leave(j->nn);
    return wml_text_decode(j, x, "generator_lm_head", "embeddings.word_embeddings", p->vocab);
}
