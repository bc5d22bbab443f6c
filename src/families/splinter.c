/* families/splinter.c - Splinter (Ram et al. 2021): BERT's encoder, and a head that asks what the question token stands for: its
 * state, seen in two ways, is compared with every token as the start and as the end of the answer. */
#include "families/text_tasks.h"

static struct wml_bert params(struct wml_family_job *j)
{
    static const struct wml_bert defaults = {.hidden = 768, .layers = 12, .heads = 12, .inner = 3072, .vocab = 30522,
                                             .positions = 512, .segments = 2, .pad = -1, .eps = 1e-12};
    return wml_bert_params(j, &defaults);
}

static const struct wml_text_model model = {.params = params, .body = wml_bert_body};

static struct wml_value *transform(struct wml_nn *b, const struct wml_bert *p, struct wml_value *x, const char *name)
{
    wml_nn_enter(b, "*FullyConnectedLayer", "%s", name);
    x = wml_nn_layer_norm(b, wml_nn_gelu(b, wml_nn_linear(b, x, "dense", p->hidden)), "LayerNorm", 1e-5); /* whatever the config says */
    wml_nn_leave(b);
    return x;
}

/* tokens [batch, length, hidden], question [batch, hidden] -> [batch, length] */
static struct wml_value *side(struct wml_nn *b, const struct wml_bert *p, struct wml_value *tokens, struct wml_value *question, bool end)
{
    struct wml_value *q = transform(b, p, question, end ? "query_end_transform" : "query_start_transform");
    q = wml_nn_linear(b, q, end ? "end_classifier" : "start_classifier", p->hidden);
    struct wml_value *x = transform(b, p, tokens, end ? "end_transform" : "start_transform");
    return wml_nn_squeeze(b, wml_nn_matmul(b, x, wml_nn_unsqueeze(b, q, WML_DIMS(2))), WML_DIMS(2));
}

/* The first question token of a text asks; its first token where there is none. */
static struct wml_value *asking(struct wml_family_job *j, const struct wml_text *t)
{
    struct wml_nn *b = j->nn;
    const int64_t token = wml_cfg_count(j, j->cfg, "question_token_id", 104);
    if (b->failed || !t->ids) return NULL;
    struct wml_value *is = wml_nn_compare(b, "Equal", t->ids, wml_nn_int(b, wml_value_elem(t->ids), token));
    return wml_nn_argmax(b, wml_nn_cast(b, is, WML_I32), 1, false);
}

static void question(struct wml_family_job *j)
{
    struct wml_nn *b = j->nn;
    const struct wml_bert p = params(j);
    const struct wml_text t = wml_bert_inputs(j, &p, false);
    struct wml_value *at = asking(j, &t), *x = wml_text_encode(j, &model, &p, &t);
    struct wml_value *mask = wml_nn_squeeze(b, t.additive ? t.additive : wml_nn_padding_mask(b, t.mask), WML_DIMS(1, 2));
    wml_nn_enter(b, "QuestionAwareSpanSelectionHead", "splinter_qass");
    struct wml_value *q = wml_nn_pick_each(b, x, at);
    struct wml_value *start = side(b, &p, x, q, false), *end = side(b, &p, x, q, true);
    wml_nn_leave(b);
    wml_nn_output(b, "start_logits", wml_nn_add(b, start, mask));
    wml_nn_output(b, "end_logits", wml_nn_add(b, end, mask));
}

static const struct wml_family_type types[] = {{"splinter", "Splinter", "splinter"}, {NULL, NULL, NULL}};
static const struct wml_family_task tasks[] = {
    {"feature-extraction", "Model", wml_text_features},
    {"question-answering", "ForQuestionAnswering", question},
    {NULL, NULL, NULL},
};
const struct wml_family wml_family_splinter = {.name = "splinter", .type = types, .task = tasks, .own = &model};
