/* families/modernbert.c - ModernBERT (Warner et al. 2024): rotary positions, gated feed-forward, norms before the layers; most
 * layers see near words only. */
#include "families/rope.h"
#include "families/text_tasks.h"

struct own {
    int64_t every, reach; /* of so many layers the first sees everything, the others words up to `reach` away */
    bool mean;            /* classifies the mean of the words, else the first one */
    struct wml_str head_act;
    /* of the graph: [0] of layers that see everything, [1] of the others */
    struct wml_value *mask[2];
    struct wml_nn_turn turn[2];
};

static struct wml_bert params(struct wml_family_job *j)
{
    const struct wml_json_val *c = j->cfg;
    struct own *o = WML_NEW(&j->nn->m->arena, struct own);
    const struct wml_str pooling = wml_cfg_str(j, c, "classifier_pooling", "cls");
    *o = (struct own){.every = wml_cfg_size(j, c, "global_attn_every_n_layers", 3), .reach = wml_cfg_size(j, c, "local_attention", 128) / 2,
                      .mean = wml_str_is(pooling, "mean"), .head_act = wml_cfg_str(j, c, "classifier_activation", "gelu")};
    if (!o->mean && !wml_str_is(pooling, "cls"))
        wml_nn_fail(j->nn, WML_E_FORMAT, "config.json: classifier_pooling '%.*s' is neither cls nor mean", WML_ARG(pooling));
    return (struct wml_bert){
        .hidden = wml_cfg_size(j, c, "hidden_size", 768),
        .layers = wml_cfg_count(j, c, "num_hidden_layers", 22),
        .heads = wml_cfg_size(j, c, "num_attention_heads", 12),
        .inner = wml_cfg_size(j, c, "intermediate_size", 1152),
        .vocab = wml_cfg_size(j, c, "vocab_size", 50368),
        .positions = wml_cfg_size(j, c, "max_position_embeddings", 8192),
        .pad = -1,
        .eps = wml_cfg_num(j, c, "norm_eps", 1e-5),
        .act = wml_cfg_str(j, c, "hidden_activation", "gelu"),
        .own = o,
    };
}

/* [1, 1, n, n]: 1 where the key is at most `reach` from the query. */
static struct wml_value *window(struct wml_nn *b, struct wml_value *ids, int64_t reach)
{
    const int64_t n = wml_nn_axis(ids, 1).size;
    if (n < 0) {
        struct wml_value *at = wml_nn_positions(b, ids, 1, 0);
        struct wml_value *far = wml_nn_unary(b, "Abs", wml_nn_sub(b, wml_nn_unsqueeze(b, at, WML_DIMS(0)), wml_nn_unsqueeze(b, at, WML_DIMS(1))));
        return wml_nn_cast(b, wml_nn_compare(b, "LessOrEqual", far, wml_nn_int(b, WML_I64, reach)), WML_F32);
    }
    float *m = wml_nn_room(b, "attention window", sizeof *m, WML_DIMS(n, n));
    if (!m) return NULL;
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = WML_MAX(i - reach, 0); k < n && k <= i + reach; k++) m[i * n + k] = 1;
    return wml_nn_const(b, "window", WML_F32, WML_DIMS(1, 1, n, n), m);
}

static void masks(struct wml_nn *b, const struct wml_text *t, int64_t layers, struct own *o)
{
    const int64_t n = wml_nn_axis(t->ids, 1).size;
    o->mask[0] = o->mask[1] = t->additive;
    if (layers < 2 || o->every < 2 || (n >= 0 && n <= o->reach + 1)) return;
    struct wml_value *see = wml_nn_mul(b, window(b, t->ids, o->reach), wml_nn_key_mask(b, t->mask));
    o->mask[1] = wml_nn_scale(b, wml_nn_sub(b, wml_nn_float(b, 1), see), WML_NN_MASKED);
}

static void turns(struct wml_family_job *j, const struct wml_bert *p, const struct wml_text *t, struct own *o)
{
    const double theta = wml_cfg_num(j, j->cfg, "global_rope_theta", 160000);
    const struct wml_json_val *near = wml_json_get(j->cfg, "local_rope_theta");
    const double local = near && wml_json_is_null(near) ? theta : wml_cfg_num(j, j->cfg, "local_rope_theta", 10000);
    if (p->hidden % p->heads) {
        wml_nn_fail(j->nn, WML_E_FORMAT, "config.json: a width of %lld does not divide into %lld attention heads", (long long)p->hidden, (long long)p->heads);
        return;
    }
    for (size_t i = 0; i < 2; i++) {
        struct wml_nn_rope r = {0};
        if (i && (o->every < 2 || p->layers < 2)) return;
        wml_rope_of(j, j->cfg, p->hidden / p->heads, i ? local : theta, p->positions, p->positions, &r);
        o->turn[i] = wml_nn_turn(j->nn, &r, NULL, t->ids, p->positions);
    }
}

/* Queries and keys turn together, as twice as many heads. */
static struct wml_value *attention(struct wml_nn *b, const struct wml_bert *p, struct wml_value *x, size_t near)
{
    const struct own *o = p->own;
    struct wml_value *part[2], *qk[2];
    wml_nn_enter(b, "*Attention", "attn");
    x = wml_nn_split_heads(b, wml_nn_linear(b, x, "Wqkv", 3 * p->hidden), 3 * p->heads);
    wml_nn_split_sizes(b, x, 1, 2, (const int64_t[]){2 * p->heads, p->heads}, part);
    wml_nn_split(b, wml_nn_rotate(b, part[0], &o->turn[near]), 1, 2, qk);
    const struct wml_nn_attention a = {.q = qk[0], .k = qk[1], .v = part[1], .heads = p->heads, .mask = o->mask[near]};
    x = wml_nn_linear(b, wml_nn_join_heads(b, wml_nn_attention_heads(b, &a)), "Wo", p->hidden);
    wml_nn_leave(b);
    return x;
}

static struct wml_value *feed_forward(struct wml_nn *b, const struct wml_bert *p, struct wml_value *x)
{
    struct wml_value *part[2];
    wml_nn_enter(b, "*MLP", "mlp");
    wml_nn_split(b, wml_nn_linear(b, x, "Wi", 2 * p->inner), -1, 2, part);
    x = wml_nn_linear(b, wml_nn_mul(b, wml_nn_act(b, part[0], p->act, "hidden_activation"), part[1]), "Wo", p->hidden);
    wml_nn_leave(b);
    return x;
}

static struct wml_value *body(struct wml_family_job *j, const struct wml_bert *params_, const struct wml_text *t)
{
    struct wml_nn *b = j->nn;
    struct own o = *(const struct own *)params_->own;
    struct wml_bert p = *params_;
    p.own = &o;
    masks(b, t, p.layers, &o);
    turns(j, &p, t, &o);
    wml_nn_enter(b, "*Embeddings", "embeddings");
    struct wml_value *x = wml_nn_layer_norm(b, wml_nn_embedding(b, t->ids, "tok_embeddings", p.vocab, p.hidden), "norm", p.eps);
    wml_nn_leave(b);
    for (size_t i = 0; i < (size_t)p.layers && wml_nn_ok(b); i++) {
        wml_nn_enter(b, "*EncoderLayer", "layers.%zu", i);
        struct wml_value *y = i ? wml_nn_layer_norm(b, x, "attn_norm", p.eps) : x; /* the embeddings are normed */
        x = wml_nn_add(b, x, attention(b, &p, y, i % (size_t)o.every != 0));
        x = wml_nn_add(b, x, feed_forward(b, &p, wml_nn_layer_norm(b, x, "mlp_norm", p.eps)));
        wml_nn_leave(b);
    }
    return wml_nn_layer_norm(b, x, "final_norm", p.eps);
}

static struct wml_value *head(struct wml_family_job *j, const struct wml_bert *p, struct wml_value *x)
{
    const struct own *o = p->own;
    wml_nn_enter(j->nn, "*PredictionHead", "head");
    x = wml_nn_act(j->nn, wml_nn_linear(j->nn, x, "dense", p->hidden), o->head_act, "classifier_activation");
    x = wml_nn_layer_norm(j->nn, x, "norm", p->eps);
    wml_nn_leave(j->nn);
    return x;
}

static struct wml_value *predict(struct wml_family_job *j, const struct wml_bert *p, struct wml_value *x)
{
    return wml_text_decode(j, head(j, p, x), "decoder", "embeddings.tok_embeddings", p->vocab);
}

static const struct wml_text_model model = {.params = params, .body = body, .predict = predict, .tokens = head};

/* The mean of the words that are on: [batch, hidden]. */
static struct wml_value *mean_of(struct wml_nn *b, const struct wml_text *t, struct wml_value *x)
{
    struct wml_value *on = wml_nn_cast(b, wml_nn_unsqueeze(b, t->mask, WML_DIMS(-1)), WML_F32);
    return wml_nn_div(b, wml_nn_reduce(b, "ReduceSum", wml_nn_mul(b, x, on), WML_DIMS(1), false), wml_nn_reduce(b, "ReduceSum", on, WML_DIMS(1), false));
}

/* The first word that is on, wherever the padding is: [batch, hidden]. */
static struct wml_value *first_on(struct wml_nn *b, const struct wml_text *t, struct wml_value *x)
{
    struct wml_value *at = wml_nn_argmax(b, t->mask, 1, true);
    if (!at || !x) return NULL;
    struct wml_node *n = wml_nn_node(b, "", "GatherND", WML_VALUES(x, at));
    if (n) wml_attr_set_int(n, "batch_dims", 1);
    const struct wml_nn_shape s = {2, {wml_nn_axis(x, 0), wml_nn_axis(x, 2)}};
    return wml_nn_out(b, n, WML_F32, &s);
}

static void classes(struct wml_family_job *j)
{
    const struct wml_bert p = params(j);
    const struct wml_text t = wml_bert_inputs(j, &p, false);
    struct wml_value *x = wml_text_encode(j, &model, &p, &t);
    x = ((const struct own *)p.own)->mean ? mean_of(j->nn, &t, x) : wml_nn_pick(j->nn, x, 1, 0);
    wml_nn_output(j->nn, "logits", wml_nn_linear(j->nn, head(j, &p, x), "classifier", wml_cfg_labels(j, j->cfg)));
}

static void question(struct wml_family_job *j)
{
    const struct wml_bert p = params(j);
    const struct wml_text t = wml_bert_inputs(j, &p, false);
    wml_text_answers(j->nn, wml_nn_linear(j->nn, head(j, &p, wml_text_encode(j, &model, &p, &t)), "classifier", 2));
}

static void choice(struct wml_family_job *j)
{
    const struct wml_bert p = params(j);
    const struct wml_text t = wml_bert_inputs(j, &p, true);
    struct wml_value *x = wml_text_encode(j, &model, &p, &t);
    x = ((const struct own *)p.own)->mean ? mean_of(j->nn, &t, x) : first_on(j->nn, &t, x);
    wml_text_chosen(j->nn, &t, wml_nn_linear(j->nn, head(j, &p, x), "classifier", 1));
}

static const struct wml_family_type types[] = {{"modernbert", "ModernBert", "model"}, {NULL, NULL, NULL}};
static const struct wml_family_task tasks[] = {
    {"feature-extraction", "Model", wml_text_features},
    {"fill-mask", "ForMaskedLM", wml_text_fill_mask},
    {"text-classification", "ForSequenceClassification", classes},
    {"token-classification", "ForTokenClassification", wml_text_token_classes},
    {"question-answering", "ForQuestionAnswering", question},
    {"multiple-choice", "ForMultipleChoice", choice},
    {NULL, NULL, NULL},
};
const struct wml_family wml_family_modernbert = {.name = "modernbert", .type = types, .task = tasks, .own = &model};
