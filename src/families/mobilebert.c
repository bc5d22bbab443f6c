/* families/mobilebert.c - MobileBERT (Sun et al. 2020): narrow layers inside of bottlenecks, several feed-forward parts each,
 * scales and shifts where BERT normalises. */
#include "families/text_tasks.h"

struct own {
    int64_t narrow, networks; /* width inside of the bottleneck; feed-forward parts of a layer */
    bool trigrams, bottleneck, all_narrow, shared, norms, pools;
};

static struct wml_bert params(struct wml_family_job *j)
{
    static const struct wml_bert defaults = {.hidden = 512, .layers = 24, .heads = 4, .inner = 512, .vocab = 30522, .positions = 512,
                                             .segments = 2, .embedding = 128, .pad = -1, .eps = 1e-12, .act = {"relu", 4}};
    const struct wml_json_val *c = j->cfg;
    struct wml_bert p = wml_bert_params(j, &defaults);
    struct own *o = WML_NEW(&j->nn->m->arena, struct own);
    const struct wml_str norm = wml_cfg_str(j, c, "normalization_type", "no_norm");
    *o = (struct own){
        .networks = wml_cfg_size(j, c, "num_feedforward_networks", 4),
        .trigrams = wml_json_get_bool(c, "trigram_input", true),
        .bottleneck = wml_json_get_bool(c, "use_bottleneck", true),
        .all_narrow = wml_json_get_bool(c, "use_bottleneck_attention", false),
        .shared = wml_json_get_bool(c, "key_query_shared_bottleneck", true),
        .norms = wml_str_is(norm, "layer_norm"),
        .pools = wml_json_get_bool(c, "classifier_activation", true),
    };
    o->narrow = o->bottleneck ? wml_cfg_size(j, c, "intra_bottleneck_size", 128) : p.hidden;
    if (!o->norms && !wml_str_is(norm, "no_norm"))
        wml_nn_fail(j->nn, WML_E_UNSUPPORTED, "config.json: normalization_type '%.*s' is neither no_norm nor layer_norm", WML_ARG(norm));
    p.places = WML_BERT_ABSOLUTE;
    p.own = o;
    return p;
}

/* A norm, or a scale and a shift at its place. */
static struct wml_value *normed(struct wml_nn *b, const struct wml_bert *p, struct wml_value *x, double eps)
{
    if (((const struct own *)p->own)->norms) return wml_nn_layer_norm(b, x, "LayerNorm", eps);
    if (!wml_nn_ok(b) || !x) return NULL;
    const int64_t n = wml_nn_size(b, x, -1, "the width of a layer");
    wml_nn_enter(b, "NoNorm", "LayerNorm");
    x = wml_nn_mul(b, x, wml_nn_param(b, "weight", 1, &n));
    x = wml_nn_add(b, x, wml_nn_param(b, "bias", 1, &n));
    wml_nn_leave(b);
    return x;
}

/* "dense" to a width, added to `rest` where there is one, and the norm. */
static struct wml_value *dense(struct wml_nn *b, const struct wml_bert *p, const char *class_name, const char *name, struct wml_value *x,
                               struct wml_value *rest, int64_t out)
{
    wml_nn_enter(b, class_name, "%s", name);
    x = wml_nn_linear(b, x, "dense", out);
    x = normed(b, p, rest ? wml_nn_add(b, x, rest) : x, p->eps);
    wml_nn_leave(b);
    return x;
}

/* Every word beside its neighbours: [batch, n, 3 * width]. */
static struct wml_value *trigrams(struct wml_nn *b, struct wml_value *x)
{
    if (!wml_nn_ok(b) || !x) return NULL;
    struct wml_value *wide = wml_nn_pad(b, x, (const int64_t[]){0, 1, 0, 0, 1, 0}, 0);
    struct wml_value *next = wml_nn_slice(b, wide, 1, 2, INT64_MAX), *last = wml_nn_slice(b, wide, 1, 0, -2);
    return wml_nn_concat(b, 2, WML_VALUES(next, x, last));
}

static struct wml_value *embeddings(struct wml_nn *b, const struct wml_bert *p, const struct wml_text *t)
{
    const struct own *o = p->own;
    wml_nn_enter(b, "*Embeddings", "embeddings");
    struct wml_value *x = wml_nn_embedding(b, t->ids, "word_embeddings", p->vocab, p->embedding);
    if (o->trigrams) x = trigrams(b, x);
    if (o->trigrams || p->embedding != p->hidden) x = wml_nn_linear(b, x, "embedding_transformation", p->hidden);
    const struct wml_weight *table = wml_nn_need(b, "position_embeddings.weight", WML_DIMS(p->positions, p->hidden));
    x = wml_nn_add(b, x, wml_nn_position_rows(b, table, t->ids, 1, 0));
    x = wml_nn_add(b, x, wml_nn_embedding(b, t->types, "token_type_embeddings", p->segments, p->hidden));
    x = normed(b, p, x, 1e-5);
    wml_nn_leave(b);
    return x;
}

/* What attention gets (queries and keys, values) and what is added to its result. */
struct narrowed {
    struct wml_value *qk, *v, *rest;
};

static struct narrowed narrow(struct wml_nn *b, const struct wml_bert *p, struct wml_value *x)
{
    const struct own *o = p->own;
    if (!o->bottleneck) return (struct narrowed){x, x, x};
    wml_nn_enter(b, "Bottleneck", "bottleneck");
    struct narrowed n = {x, x, dense(b, p, "BottleneckLayer", "input", x, NULL, o->narrow)};
    if (o->all_narrow) n.qk = n.v = n.rest;
    else if (o->shared) n.qk = dense(b, p, "BottleneckLayer", "attention", x, NULL, o->narrow);
    wml_nn_leave(b);
    return n;
}

static struct wml_value *attention(struct wml_nn *b, const struct wml_bert *p, const struct narrowed *n, const struct wml_text *t)
{
    const struct own *o = p->own;
    wml_nn_enter(b, "*Attention", "attention");
    wml_nn_enter(b, "*SelfAttention", "self");
    const struct wml_nn_attention a = {.q = wml_nn_queries(b, n->qk, "query", o->narrow, p->heads), .k = wml_nn_keys(b, n->qk, "key", o->narrow),
                                       .v = wml_nn_linear(b, n->v, "value", o->narrow), .heads = p->heads, .scale = 1, .mask = t->additive};
    struct wml_value *x = wml_nn_attention(b, &a);
    wml_nn_leave(b);
    x = dense(b, p, "*SelfOutput", "output", x, n->rest, o->narrow);
    wml_nn_leave(b);
    return x;
}

static struct wml_value *output(struct wml_nn *b, const struct wml_bert *p, struct wml_value *y, struct wml_value *x, struct wml_value *in)
{
    const struct own *o = p->own;
    wml_nn_enter(b, "*Output", "output");
    y = normed(b, p, wml_nn_add(b, wml_nn_linear(b, y, "dense", o->narrow), x), 1e-5);
    if (o->bottleneck) y = dense(b, p, "OutputBottleneck", "bottleneck", y, in, p->hidden);
    wml_nn_leave(b);
    return y;
}

static struct wml_value *layer(struct wml_nn *b, const struct wml_bert *p, size_t i, struct wml_value *in, const struct wml_text *t)
{
    const struct own *o = p->own;
    wml_nn_enter(b, "*Layer", "layer.%zu", i);
    const struct narrowed n = narrow(b, p, in);
    struct wml_value *x = attention(b, p, &n, t);
    for (size_t k = 0; k + 1 < (size_t)o->networks && wml_nn_ok(b); k++) {
        wml_nn_enter(b, "FFNLayer", "ffn.%zu", k);
        x = dense(b, p, "FFNOutput", "output", wml_bert_inner(b, p, x), x, o->narrow);
        wml_nn_leave(b);
    }
    x = output(b, p, wml_bert_inner(b, p, x), x, in);
    wml_nn_leave(b);
    return x;
}

static struct wml_value *body(struct wml_family_job *j, const struct wml_bert *p, const struct wml_text *t)
{
    struct wml_nn *b = j->nn;
    struct wml_value *x = embeddings(b, p, t);
    wml_nn_enter(b, "*Encoder", "encoder");
    for (size_t i = 0; i < (size_t)p->layers && wml_nn_ok(b); i++) x = layer(b, p, i, x, t);
    wml_nn_leave(b);
    return x;
}

static struct wml_value *pooled(struct wml_family_job *j, const struct wml_bert *p, struct wml_value *x)
{
    return ((const struct own *)p->own)->pools ? wml_bert_pooled(j, p, x) : wml_nn_pick(j->nn, x, 1, 0);
}

/* The table of words is narrower than the layers: the rest of the output's weights, "dense", is [hidden - embedding, vocab]. */
static struct wml_value *words(struct wml_family_job *j, const struct wml_bert *p, struct wml_value *x)
{
    struct wml_nn *b = j->nn;
    const int64_t more = p->hidden - p->embedding;
    if (more < 0)
        return wml_nn_fail(b, WML_E_FORMAT, "config.json: embedding_size %lld is above hidden_size %lld", (long long)p->embedding, (long long)p->hidden);
    struct wml_value *part[2] = {x, NULL};
    if (more) wml_nn_split_sizes(b, x, -1, 2, (const int64_t[]){p->embedding, more}, part);
    struct wml_value *y = wml_text_decode(j, part[0], "decoder", "embeddings.word_embeddings", p->vocab);
    return more ? wml_nn_add(b, y, wml_nn_matmul(b, part[1], wml_nn_param(b, "dense.weight", WML_DIMS(more, p->vocab)))) : y;
}

static struct wml_value *predict(struct wml_family_job *j, const struct wml_bert *p, struct wml_value *x)
{
    struct wml_nn *b = j->nn;
    wml_nn_enter(b, "*OnlyMLMHead", "cls");
    wml_nn_enter(b, "*LMPredictionHead", "predictions");
    x = wml_bert_transform(b, p, x, p->hidden);
    x = words(j, p, x);
    wml_nn_leave(b);
    wml_nn_leave(b);
    return x;
}

static const struct wml_text_model model = {.params = params, .body = body, .pooled = pooled, .predict = predict};

static const struct wml_family_type types[] = {{"mobilebert", "MobileBert", "mobilebert"}, {NULL, NULL, NULL}};
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
const struct wml_family wml_family_mobilebert = {.name = "mobilebert", .type = types, .task = tasks, .own = &model};
