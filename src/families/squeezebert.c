/* families/squeezebert.c - SqueezeBERT (Iandola et al. 2020): BERT, whose linear layers are convolutions of width 1 in groups. */
#include "families/text_tasks.h"

struct own {
    int64_t q, k, v, behind, inner, out; /* groups */
};

static struct wml_bert params(struct wml_family_job *j)
{
    static const struct wml_bert defaults = {.hidden = 768, .layers = 12, .heads = 12, .inner = 3072, .vocab = 30522,
                                             .positions = 512, .segments = 2, .embedding = 768, .pad = -1, .eps = 1e-12};
    const struct wml_json_val *c = j->cfg;
    struct wml_bert p = wml_bert_params(j, &defaults);
    struct own *o = WML_NEW(&j->nn->m->arena, struct own);
    *o = (struct own){wml_cfg_size(j, c, "q_groups", 4), wml_cfg_size(j, c, "k_groups", 4), wml_cfg_size(j, c, "v_groups", 4),
                      wml_cfg_size(j, c, "post_attention_groups", 1), wml_cfg_size(j, c, "intermediate_groups", 4),
                      wml_cfg_size(j, c, "output_groups", 4)};
    if (p.embedding != p.hidden)
        wml_nn_fail(j->nn, WML_E_FORMAT, "config.json: embedding_size %lld is not hidden_size %lld", (long long)p.embedding, (long long)p.hidden);
    if (p.hidden % p.heads)
        wml_nn_fail(j->nn, WML_E_FORMAT, "config.json: a width of %lld does not divide into %lld attention heads", (long long)p.hidden, (long long)p.heads);
    p.places = WML_BERT_ABSOLUTE;
    p.own = o;
    return p;
}

/* x [batch, features, n] */
static struct wml_value *conv(struct wml_nn *b, struct wml_value *x, const char *name, int64_t out, int64_t groups)
{
    return wml_nn_conv(b, x, name, out, &(struct wml_nn_window){.groups = groups});
}

/* The same for queries of attention whose scale is 1: the weights carry it. */
static struct wml_value *queries(struct wml_nn *b, const struct wml_bert *p, struct wml_value *x, int64_t groups)
{
    const float *scale = wml_nn_query_scales(b, p->hidden, p->heads, p->hidden);
    wml_nn_enter_layer(b, "Conv1d", "query");
    struct wml_value *w = wml_nn_scaled(b, wml_nn_need(b, "weight", WML_DIMS(p->hidden, p->hidden / groups, 1)), 0, scale);
    struct wml_value *bias = wml_nn_has(b, "bias") ? wml_nn_scaled(b, wml_nn_need(b, "bias", WML_DIMS(p->hidden)), 0, scale) : NULL;
    x = wml_nn_conv_node(b, x, w, bias, &(struct wml_nn_window){.groups = groups});
    wml_nn_leave(b);
    return x;
}

static struct wml_value *attention(struct wml_nn *b, const struct wml_bert *p, struct wml_value *x, const struct wml_text *t)
{
    const struct own *o = p->own;
    const int64_t head = p->hidden / p->heads;
    wml_nn_enter(b, "*SelfAttention", "attention");
    const struct wml_axis n = wml_nn_axis(x, 2);
    struct wml_value *q = queries(b, p, x, o->q), *k = conv(b, x, "key", p->hidden, o->k), *v = conv(b, x, "value", p->hidden, o->v);
    const int64_t len = n.size < 0 ? -1 : n.size;
    q = wml_nn_transpose(b, wml_nn_reshape(b, q, WML_DIMS(0, p->heads, head, len)), "0132");
    k = wml_nn_reshape(b, k, WML_DIMS(0, p->heads, head, len));
    v = wml_nn_transpose(b, wml_nn_reshape(b, v, WML_DIMS(0, p->heads, head, len)), "0132");
    struct wml_value *s = wml_nn_add(b, wml_nn_matmul(b, q, k), t->additive);
    x = wml_nn_transpose(b, wml_nn_matmul(b, wml_nn_softmax(b, s, -1), v), "0132");
    x = wml_nn_reshape(b, x, WML_DIMS(0, p->hidden, len));
    wml_nn_leave(b);
    return x;
}

/* last: as [batch, n, features]. */
static struct wml_value *sum(struct wml_nn *b, const struct wml_bert *p, const char *name, struct wml_value *x, struct wml_value *rest, int64_t groups,
                             bool last)
{
    wml_nn_enter(b, "ConvDropoutLayerNorm", "%s", name);
    x = wml_nn_add(b, conv(b, x, "conv1d", p->hidden, groups), rest);
    x = wml_nn_layer_norm(b, wml_nn_transpose(b, x, "021"), "layernorm", 1e-12);
    if (!last) x = wml_nn_transpose(b, x, "021");
    wml_nn_leave(b);
    return x;
}

static struct wml_value *layer(struct wml_nn *b, const struct wml_bert *p, size_t i, struct wml_value *x, const struct wml_text *t)
{
    const struct own *o = p->own;
    wml_nn_enter(b, "*Module", "layers.%zu", i);
    x = sum(b, p, "post_attention", attention(b, p, x, t), x, o->behind, false);
    wml_nn_enter(b, "ConvActivation", "intermediate");
    struct wml_value *y = wml_nn_act(b, conv(b, x, "conv1d", p->inner, o->inner), p->act, "hidden_act");
    wml_nn_leave(b);
    x = sum(b, p, "output", y, x, o->out, i + 1 == (size_t)p->layers);
    wml_nn_leave(b);
    return x;
}

static struct wml_value *body(struct wml_family_job *j, const struct wml_bert *p, const struct wml_text *t)
{
    struct wml_nn *b = j->nn;
    struct wml_value *x = wml_bert_embeddings(b, p, t);
    wml_nn_enter(b, "*Encoder", "encoder");
    if (p->layers) x = wml_nn_transpose(b, x, "021");
    for (size_t i = 0; i < (size_t)p->layers && wml_nn_ok(b); i++) x = layer(b, p, i, x, t);
    wml_nn_leave(b);
    return x;
}

static const struct wml_text_model model = {.params = params, .body = body, .pooled = wml_bert_pooled, .predict = wml_bert_predict};

static const struct wml_family_type types[] = {{"squeezebert", "SqueezeBert", "transformer"}, {NULL, NULL, NULL}};
const struct wml_family wml_family_squeezebert = {.name = "squeezebert", .type = types, .task = wml_text_tasks, .own = &model};
