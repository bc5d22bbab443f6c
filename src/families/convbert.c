/* families/convbert.c - ConvBERT (Jiang et al. 2020): half of the heads are convolutions whose kernels the words make. */
#include "families/text_tasks.h"

struct own {
    int64_t heads, head, kernel, groups; /* of attention; groups of the feed-forward part */
};

static struct wml_bert params(struct wml_family_job *j)
{
    static const struct wml_bert defaults = {.hidden = 768, .layers = 12, .heads = 12, .inner = 3072, .vocab = 30522,
                                             .positions = 512, .segments = 2, .embedding = 768, .pad = -1, .eps = 1e-12};
    struct wml_bert p = wml_bert_params(j, &defaults);
    struct own *o = WML_NEW(&j->nn->m->arena, struct own);
    const int64_t fewer = p.heads / wml_cfg_size(j, j->cfg, "head_ratio", 2);
    *o = (struct own){.heads = WML_MAX(fewer, 1), .kernel = wml_cfg_size(j, j->cfg, "conv_kernel_size", 9),
                      .groups = wml_cfg_size(j, j->cfg, "num_groups", 1)};
    o->head = p.hidden / o->heads / 2;
    if (p.hidden % (2 * o->heads))
        wml_nn_fail(j->nn, WML_E_FORMAT, "config.json: a width of %lld does not divide into %lld attention heads and as many convolutions",
                    (long long)p.hidden, (long long)o->heads);
    if (o->kernel % 2 == 0) wml_nn_fail(j->nn, WML_E_UNSUPPORTED, "config.json: conv_kernel_size %lld is even", (long long)o->kernel);
    if (p.hidden % o->groups || p.inner % o->groups)
        wml_nn_fail(j->nn, WML_E_FORMAT, "config.json: num_groups %lld does not divide hidden_size and intermediate_size", (long long)o->groups);
    p.places = WML_BERT_ABSOLUTE;
    p.own = o;
    return p;
}

/* Depthwise, then pointwise, over the words: [batch, n, hidden] -> [batch, n, heads * head]. */
static struct wml_value *separable(struct wml_nn *b, const struct wml_bert *p, struct wml_value *x)
{
    const struct own *o = p->own;
    const int64_t all = o->heads * o->head;
    wml_nn_enter(b, "SeparableConv1D", "key_conv_attn_layer");
    x = wml_nn_conv(b, wml_nn_transpose(b, x, "021"), "depthwise", p->hidden, &(struct wml_nn_window){.pad = o->kernel / 2, .groups = p->hidden});
    struct wml_value *bias = wml_nn_reshaped(b, wml_nn_need(b, "bias", WML_DIMS(all, 1)), WML_DIMS(all));
    struct wml_value *w = wml_nn_param(b, "pointwise.weight", WML_DIMS(all, p->hidden, 1));
    x = wml_nn_transpose(b, wml_nn_conv_node(b, x, w, bias, &(struct wml_nn_window){0}), "021");
    wml_nn_leave(b);
    return x;
}

/* The `kernel` words around every word, by a convolution that picks them: [batch, n * heads, head, kernel]. */
static struct wml_value *around(struct wml_nn *b, const struct wml_bert *p, struct wml_value *x)
{
    const struct own *o = p->own;
    const int64_t all = o->heads * o->head, k = o->kernel;
    float *pick = wml_nn_room(b, "kernels", sizeof *pick, WML_DIMS(all, k, k));
    if (!pick) return NULL;
    for (int64_t i = 0; i < all * k; i++) pick[i * k + i % k] = 1;
    struct wml_value *w = wml_nn_const(b, "unfold", WML_F32, WML_DIMS(all * k, 1, k), pick);
    x = wml_nn_conv_node(b, wml_nn_transpose(b, x, "021"), w, NULL, &(struct wml_nn_window){.pad = k / 2, .groups = all});
    return wml_nn_reshape(b, wml_nn_transpose(b, x, "021"), WML_DIMS(0, -1, o->head, k));
}

static struct wml_value *self(struct wml_nn *b, const struct wml_bert *p, struct wml_value *x, const struct wml_text *t)
{
    const struct own *o = p->own;
    const int64_t all = o->heads * o->head;
    struct wml_value *q = wml_nn_linear(b, x, "query", all);
    const struct wml_nn_attention a = {.q = q, .k = wml_nn_linear(b, x, "key", all), .v = wml_nn_linear(b, x, "value", all),
                                       .heads = o->heads, .mask = t->additive};
    struct wml_value *seen = wml_nn_attention(b, &a);
    struct wml_value *kernel = wml_nn_linear(b, wml_nn_mul(b, separable(b, p, x), q), "conv_kernel_layer", o->heads * o->kernel);
    kernel = wml_nn_softmax(b, wml_nn_reshape(b, kernel, WML_DIMS(0, -1, o->kernel, 1)), 2);
    struct wml_value *near = wml_nn_matmul(b, around(b, p, wml_nn_linear(b, x, "conv_out_layer", all)), kernel);
    near = wml_nn_reshape(b, near, WML_DIMS(0, wml_nn_is_fixed(x, 1) ? wml_nn_axis(x, 1).size : -1, all));
    return wml_nn_concat(b, -1, WML_VALUES(seen, near));
}

/* Every group of features has a linear layer of its own, weight [groups, in / groups, out / groups]. */
static struct wml_value *grouped(struct wml_nn *b, const struct wml_bert *p, struct wml_value *x, int64_t out)
{
    const int64_t g = ((const struct own *)p->own)->groups;
    if (!wml_nn_ok(b) || !x) return NULL;
    const int64_t in = wml_nn_size(b, x, -1, "the width of a layer");
    wml_nn_enter(b, "GroupedLinearLayer", "dense");
    struct wml_value *w = wml_nn_param(b, "weight", WML_DIMS(g, in / g, out / g));
    x = wml_nn_join_heads(b, wml_nn_matmul(b, wml_nn_split_heads(b, x, g), w));
    x = wml_nn_add(b, x, wml_nn_param(b, "bias", WML_DIMS(out)));
    wml_nn_leave(b);
    return x;
}

static struct wml_value *body(struct wml_family_job *j, const struct wml_bert *p, const struct wml_text *t)
{
    struct wml_bert q = *p;
    q.self = self;
    if (((const struct own *)p->own)->groups > 1) q.dense = grouped;
    return wml_bert_projected_body(j, &q, t);
}

static const struct wml_text_model model = {
    .params = params, .body = body, .pooled = wml_text_summary_last, .classify = wml_text_classify_act, .predict = wml_text_generator,
};

static const struct wml_family_type types[] = {{"convbert", "ConvBert", "convbert"}, {NULL, NULL, NULL}};
const struct wml_family wml_family_convbert = {.name = "convbert", .type = types, .task = wml_text_tasks, .own = &model};
