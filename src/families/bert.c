/* families/bert.c - BERT (Devlin et al. 2018): an encoder of text, layers normalised after each sum. */
#include "families/text_inputs.h"

struct params {
    int64_t hidden, layers, heads, inner, vocab, positions, segments;
    double eps;
    struct wml_str act;
};

static struct params params_of(struct wml_family_job *j)
{
    const struct wml_json_val *c = j->cfg;
    return (struct params){
        .hidden = wml_cfg_size(j, c, "hidden_size", 768),
        .layers = wml_cfg_size(j, c, "num_hidden_layers", 12),
        .heads = wml_cfg_size(j, c, "num_attention_heads", 12),
        .inner = wml_cfg_size(j, c, "intermediate_size", 3072),
        .vocab = wml_cfg_size(j, c, "vocab_size", 30522),
        .positions = wml_cfg_size(j, c, "max_position_embeddings", 512),
        .segments = wml_cfg_size(j, c, "type_vocab_size", 2),
        .eps = wml_cfg_num(j, c, "layer_norm_eps", 1e-12),
        .act = wml_cfg_str(j, c, "hidden_act", "gelu"),
    };
}

static struct wml_value *embeddings(struct wml_nn *b, const struct params *p, const struct wml_text *t)
{
    wml_nn_enter(b, "*Embeddings", "embeddings");
    struct wml_value *x = wml_nn_embedding(b, t->ids, "word_embeddings", p->vocab, p->hidden);
    x = wml_nn_add(b, x, wml_nn_embedding(b, t->types, "token_type_embeddings", p->segments, p->hidden));
    const struct wml_weight *table = wml_nn_need(b, "position_embeddings.weight", WML_DIMS(p->positions, p->hidden));
    x = wml_nn_add(b, x, wml_nn_position_rows(b, table, t->ids, 1, 0));
    x = wml_nn_layer_norm(b, x, "LayerNorm", p->eps);
    wml_nn_leave(b);
    return x;
}

static struct wml_value *attention(struct wml_nn *b, const struct params *p, struct wml_value *x, struct wml_value *mask)
{
    wml_nn_enter(b, "*Attention", "attention");
    wml_nn_enter(b, "*SelfAttention", "self");
    const struct wml_nn_attention a = {.q = wml_nn_linear(b, x, "query", p->hidden), .k = wml_nn_linear(b, x, "key", p->hidden),
                                       .v = wml_nn_linear(b, x, "value", p->hidden), .heads = p->heads, .mask = mask};
    struct wml_value *y = wml_nn_attention(b, &a);
    wml_nn_leave(b);
    wml_nn_enter(b, "*SelfOutput", "output");
    y = wml_nn_layer_norm(b, wml_nn_add(b, wml_nn_linear(b, y, "dense", p->hidden), x), "LayerNorm", p->eps);
    wml_nn_leave(b);
    wml_nn_leave(b);
    return y;
}

static struct wml_value *layer(struct wml_nn *b, const struct params *p, size_t i, struct wml_value *x, struct wml_value *mask)
{
    wml_nn_enter(b, "*Layer", "layer.%zu", i);
    x = attention(b, p, x, mask);
    wml_nn_enter(b, "*Intermediate", "intermediate");
    struct wml_value *y = wml_nn_act(b, wml_nn_linear(b, x, "dense", p->inner), p->act, "hidden_act");
    wml_nn_leave(b);
    wml_nn_enter(b, "*Output", "output");
    y = wml_nn_layer_norm(b, wml_nn_add(b, wml_nn_linear(b, y, "dense", p->hidden), x), "LayerNorm", p->eps);
    wml_nn_leave(b);
    wml_nn_leave(b);
    return y;
}

/* The bare model: [batch, length, hidden]. */
static struct wml_value *body(struct wml_nn *b, const struct params *p, const struct wml_text *t)
{
    struct wml_value *x = embeddings(b, p, t);
    wml_nn_enter(b, "*Encoder", "encoder");
    for (size_t i = 0; i < (size_t)p->layers && wml_nn_ok(b); i++) x = layer(b, p, i, x, t->additive);
    wml_nn_leave(b);
    return x;
}

/* The same as part of a model with a head. */
static struct wml_value *encoder(struct wml_family_job *j, const struct params *p, const struct wml_text *t)
{
    wml_nn_enter(j->nn, "*Model", "%s", j->type->base);
    struct wml_value *x = body(j->nn, p, t);
    wml_nn_leave(j->nn);
    return x;
}

/* tanh of a linear layer over the first token. */
static struct wml_value *pooled(struct wml_family_job *j, const struct params *p, struct wml_value *x)
{
    wml_nn_enter(j->nn, "*Model", "%s", j->type->base);
    wml_nn_enter(j->nn, "*Pooler", "pooler");
    x = wml_nn_unary(j->nn, "Tanh", wml_nn_linear(j->nn, wml_nn_pick(j->nn, x, 1, 0), "dense", p->hidden));
    wml_nn_leave(j->nn);
    wml_nn_leave(j->nn);
    return x;
}

static struct wml_text inputs(struct wml_family_job *j, const struct params *p, bool choices)
{
    return wml_text_inputs(j, p->vocab, p->positions, p->segments, choices);
}

static void feature_extraction(struct wml_family_job *j)
{
    const struct params p = params_of(j);
    const struct wml_text t = inputs(j, &p, false);
    wml_nn_output(j->nn, "last_hidden_state", body(j->nn, &p, &t));
}

static void fill_mask(struct wml_family_job *j)
{
    struct wml_nn *b = j->nn;
    const struct params p = params_of(j);
    const struct wml_text t = inputs(j, &p, false);
    struct wml_value *x = encoder(j, &p, &t);
    wml_nn_enter(b, "*OnlyMLMHead", "cls");
    wml_nn_enter(b, "*LMPredictionHead", "predictions");
    wml_nn_enter(b, "*PredictionHeadTransform", "transform");
    x = wml_nn_act(b, wml_nn_linear(b, x, "dense", p.hidden), p.act, "hidden_act");
    x = wml_nn_layer_norm(b, x, "LayerNorm", p.eps);
    wml_nn_leave(b);
    const struct wml_weight *w = wml_nn_find(b, "decoder.weight");
    if (!w) w = wml_nn_need(b, "/bert.embeddings.word_embeddings.weight", WML_DIMS(p.vocab, p.hidden));
    const struct wml_weight *bias = wml_nn_has(b, "decoder.bias") ? wml_nn_find(b, "decoder.bias") : wml_nn_need(b, "bias", WML_DIMS(p.vocab));
    wml_nn_enter_layer(b, "Linear", "decoder");
    x = wml_nn_linear_with(b, x, w, bias);
    wml_nn_leave(b);
    wml_nn_leave(b);
    wml_nn_leave(b);
    wml_nn_output(b, "logits", x);
}

static void text_classification(struct wml_family_job *j)
{
    const struct params p = params_of(j);
    const struct wml_text t = inputs(j, &p, false);
    struct wml_value *x = pooled(j, &p, encoder(j, &p, &t));
    wml_nn_output(j->nn, "logits", wml_nn_linear(j->nn, x, "classifier", wml_cfg_labels(j, j->cfg)));
}

static void next_sentence(struct wml_family_job *j)
{
    const struct params p = params_of(j);
    const struct wml_text t = inputs(j, &p, false);
    struct wml_value *x = pooled(j, &p, encoder(j, &p, &t));
    wml_nn_enter(j->nn, "*OnlyNSPHead", "cls");
    x = wml_nn_linear(j->nn, x, "seq_relationship", 2);
    wml_nn_leave(j->nn);
    wml_nn_output(j->nn, "logits", x);
}

static void token_classification(struct wml_family_job *j)
{
    const struct params p = params_of(j);
    const struct wml_text t = inputs(j, &p, false);
    wml_nn_output(j->nn, "logits", wml_nn_linear(j->nn, encoder(j, &p, &t), "classifier", wml_cfg_labels(j, j->cfg)));
}

static void question_answering(struct wml_family_job *j)
{
    struct wml_nn *b = j->nn;
    const struct params p = params_of(j);
    const struct wml_text t = inputs(j, &p, false);
    struct wml_value *x = wml_nn_linear(b, encoder(j, &p, &t), "qa_outputs", 2), *part[2];
    wml_nn_split(b, x, -1, 2, part);
    wml_nn_output(b, "start_logits", wml_nn_squeeze(b, part[0], WML_DIMS(-1)));
    wml_nn_output(b, "end_logits", wml_nn_squeeze(b, part[1], WML_DIMS(-1)));
}

static void multiple_choice(struct wml_family_job *j)
{
    struct wml_nn *b = j->nn;
    const struct params p = params_of(j);
    const struct wml_text t = inputs(j, &p, true);
    struct wml_value *x = wml_nn_linear(b, pooled(j, &p, encoder(j, &p, &t)), "classifier", 1);
    const int64_t n = wml_nn_axis(t.choices, 1).size;
    wml_nn_output(b, "logits", wml_nn_reshape(b, x, WML_DIMS(-1, n < 0 ? wml_nn_size(b, t.choices, 1, "the number of choices") : n)));
}

static const struct wml_family_type types[] = {{"bert", "Bert", "bert"}, {NULL, NULL, NULL}};
static const struct wml_family_task tasks[] = {
    {"feature-extraction", "Model", feature_extraction},
    {"fill-mask", "ForMaskedLM", fill_mask},
    {"text-classification", "ForSequenceClassification", text_classification},
    {"next-sentence-prediction", "ForNextSentencePrediction", next_sentence},
    {"token-classification", "ForTokenClassification", token_classification},
    {"question-answering", "ForQuestionAnswering", question_answering},
    {"multiple-choice", "ForMultipleChoice", multiple_choice},
    {NULL, NULL, NULL},
};
const struct wml_family wml_family_bert = {"bert", types, tasks, NULL};
