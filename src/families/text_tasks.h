/* families/text_tasks.h - the tasks of text encoders. Families differ in their body and in layers of their heads; each
 * names its own in a struct wml_text_model, which its descriptor has as `own`:
 *
 *     static const struct wml_text_model model = {.params = params, .body = wml_bert_body, .pooled = wml_bert_pooled, ...};
 *     const struct wml_family wml_family_electra = {.name = "electra", .type = types, .task = wml_text_tasks, .own = &model};
 */
#ifndef WML_FAMILIES_TEXT_TASKS_H
#define WML_FAMILIES_TEXT_TASKS_H

#include "families/bert_body.h"

struct wml_text_model {
    struct wml_bert (*params)(struct wml_family_job *j);
    struct wml_text (*inputs)(struct wml_family_job *j, const struct wml_bert *p, bool choices); /* NULL: wml_bert_inputs */
    /* [batch, length, hidden], in the scope of the bare model. */
    struct wml_value *(*body)(struct wml_family_job *j, const struct wml_bert *p, const struct wml_text *t);
    /* From the body's result, in the scope of the whole model: one vector per text, for multiple-choice and, without
     * `classify`, for text-classification; its classes; the vocabulary's scores. */
    struct wml_value *(*pooled)(struct wml_family_job *j, const struct wml_bert *p, struct wml_value *x);
    struct wml_value *(*classify)(struct wml_family_job *j, const struct wml_bert *p, struct wml_value *x);
    struct wml_value *(*predict)(struct wml_family_job *j, const struct wml_bert *p, struct wml_value *x);
    /* What the classifier of tokens gets; NULL: the body's result. */
    struct wml_value *(*tokens)(struct wml_family_job *j, const struct wml_bert *p, struct wml_value *x);
};

void wml_text_features(struct wml_family_job *j);
void wml_text_fill_mask(struct wml_family_job *j);
void wml_text_classes(struct wml_family_job *j);
void wml_text_next_sentence(struct wml_family_job *j);
void wml_text_token_classes(struct wml_family_job *j);
void wml_text_question(struct wml_family_job *j);
void wml_text_choice(struct wml_family_job *j);

/* Of the families that have all of these but next-sentence-prediction. */
extern const struct wml_family_task wml_text_tasks[];

/* A text encoder inside of a model with a head. */
struct wml_value *wml_text_encode(struct wml_family_job *j, const struct wml_text_model *m, const struct wml_bert *p,
                                  const struct wml_text *t);
/* Linear to the vocabulary at `name` in the scope: its weight is the table `words` of the bare model where they are tied
 * (tie_word_embeddings), its bias its own, or lies beside it ("bias"). */
struct wml_value *wml_text_decode(struct wml_family_job *j, struct wml_value *x, const char *name, const char *words, int64_t vocab);
/* RoBERTa's "lm_head": dense, gelu, layer_norm, and the words. */
struct wml_value *wml_text_lm_head(struct wml_family_job *j, const struct wml_bert *p, struct wml_value *x);
/* ELECTRA's "generator_predictions" and "generator_lm_head". */
struct wml_value *wml_text_generator(struct wml_family_job *j, const struct wml_bert *p, struct wml_value *x);
/* The head "classifier" over the first token: dense, an activation (tanh: first, hidden_act: act), out_proj. */
struct wml_value *wml_text_class_head(struct wml_family_job *j, const struct wml_bert *p, struct wml_value *x, struct wml_str act);
struct wml_value *wml_text_classify_first(struct wml_family_job *j, const struct wml_bert *p, struct wml_value *x);
struct wml_value *wml_text_classify_act(struct wml_family_job *j, const struct wml_bert *p, struct wml_value *x);
/* "sequence_summary": one vector by summary_type, a linear layer and an activation as the config says. Without a word of it:
 * the first token and both, or (last) the last token alone. */
struct wml_value *wml_text_summary_last(struct wml_family_job *j, const struct wml_bert *p, struct wml_value *x);
struct wml_value *wml_text_summary(struct wml_family_job *j, const struct wml_bert *p, struct wml_value *x);
/* The output of multiple-choice from x [batch * choices, 1]. */
void wml_text_chosen(struct wml_nn *b, const struct wml_text *t, struct wml_value *x);
/* start_logits and end_logits, the columns of x [batch, length, 2]. */
void wml_text_answers(struct wml_nn *b, struct wml_value *x);

#endif
