/* families/t5.c - T5 (Raffel et al. 2020), mT5, UMT5: an encoder and a decoder of text without positions but those between a
 * query and its keys. A step of the decoder has a cache that slides, so that its token is always in the last slot. */
#include <math.h>
#include "families/seq2seq.h"
#include "nn/relative.h"

struct params {
    int64_t width, size, inner, layers, decoder_layers, heads, vocab, slots;
    double eps;
    struct wml_str act;
    bool gated, tied;
    struct wml_nn_buckets buckets;
};

static struct params params_of(struct wml_family_job *j)
{
    const struct wml_json_val *c = j->cfg;
    const bool t5 = strcmp(j->type->model_type, "t5") == 0, mt5 = strcmp(j->type->model_type, "mt5") == 0;
    struct params p = {
        .width = wml_cfg_size(j, c, "d_model", 512), .size = wml_cfg_size(j, c, "d_kv", 64), .inner = wml_cfg_size(j, c, "d_ff", t5 ? 2048 : 1024),
        .layers = wml_cfg_count(j, c, "num_layers", t5 ? 6 : 8), .heads = wml_cfg_size(j, c, "num_heads", t5 ? 8 : 6),
        .vocab = wml_cfg_size(j, c, "vocab_size", t5 ? 32128 : 250112), .slots = wml_cfg_size(j, c, "n_positions", 512),
        .eps = wml_cfg_num(j, c, "layer_norm_epsilon", 1e-6), .act = wml_cfg_str(j, c, "feed_forward_proj", t5 ? "relu" : "gated-gelu"),
        .tied = wml_json_get_bool(c, "tie_word_embeddings", !mt5)};
    p.decoder_layers = wml_cfg_count(j, c, "num_decoder_layers", p.layers);
    p.buckets = (struct wml_nn_buckets){.buckets = wml_cfg_size(j, c, "relative_attention_num_buckets", 32),
                                        .max_distance = wml_cfg_size(j, c, "relative_attention_max_distance", 128)};
    p.gated = p.act.len > 6 && memcmp(p.act.ptr, "gated-", 6) == 0;
    if (p.gated) p.act = wml_str_sub(p.act, 6, p.act.len);
    if (p.gated && wml_str_is(p.act, "gelu")) p.act = WML_STR("gelu_new");
    return p;
}

/* One of the two stacks of blocks. */
struct stack {
    const struct params *p;
    struct wml_seq2seq *s;   /* NULL: the encoder */
    struct wml_value *ids, *mask;
    struct wml_value *bias;  /* of the nearest block before that has a table, and the mask */
};

static struct wml_value *norm(struct wml_nn *b, const struct params *p, struct wml_value *x, const char *name)
{
    return wml_nn_rms_norm(b, x, name, p->eps, false);
}

/* T5 has one table, in the first block; UMT5 one in each. */
static void read_bias(struct wml_nn *b, struct stack *t)
{
    const struct params *p = t->p;
    struct wml_nn_buckets how = p->buckets;
    how.both_ways = !t->s;
    if (t->bias && !wml_nn_has(b, "relative_attention_bias.weight")) return;
    wml_nn_enter_layer(b, "Embedding", "relative_attention_bias");
    const struct wml_weight *table = wml_nn_need(b, "weight", WML_DIMS(how.buckets, p->heads));
    t->bias = t->s ? wml_nn_bucket_last_row(b, table, &how, t->s->slots) : wml_nn_bucket_bias(b, table, &how, t->ids, 1);
    wml_nn_leave(b);
    t->bias = wml_nn_add(b, t->bias, t->mask);
}

static struct wml_value *self_attention(struct wml_nn *b, struct stack *t, size_t i, struct wml_value *x)
{
    const struct params *p = t->p;
    const int64_t width = p->heads * p->size;
    wml_nn_enter(b, "*Attention", "SelfAttention");
    read_bias(b, t);
    struct wml_nn_attention a = {.q = wml_nn_linear(b, x, "q", width), .k = wml_nn_linear(b, x, "k", width), .v = wml_nn_linear(b, x, "v", width),
                                 .heads = p->heads, .scale = 1, .mask = t->bias};
    if (t->s) {
        a.q = wml_step_split(b, a.q, p->heads);
        a.k = wml_step_append(b, t->s, i, false, a.k, p->heads);
        a.v = wml_step_append(b, t->s, i, true, a.v, p->heads);
        x = wml_step_join(b, wml_nn_attention_heads(b, &a));
    } else {
        x = wml_nn_attention(b, &a);
    }
    x = wml_nn_linear(b, x, "o", p->width);
    wml_nn_leave(b);
    return x;
}

static struct wml_value *cross_attention(struct wml_nn *b, const struct stack *t, struct wml_value *x)
{
    const struct params *p = t->p;
    const int64_t width = p->heads * p->size;
    wml_nn_enter(b, "*Attention", "EncDecAttention");
    const struct wml_nn_attention a = {.q = wml_step_split(b, wml_nn_linear(b, x, "q", width), p->heads),
                                       .k = wml_nn_split_turned(b, wml_nn_linear(b, t->s->states, "k", width), p->heads), .turned = true,
                                       .v = wml_nn_split_heads(b, wml_nn_linear(b, t->s->states, "v", width), p->heads),
                                       .heads = p->heads, .scale = 1, .mask = t->s->source_mask};
    x = wml_nn_linear(b, wml_step_join(b, wml_nn_attention_heads(b, &a)), "o", p->width);
    wml_nn_leave(b);
    return x;
}

static struct wml_value *feed_forward(struct wml_nn *b, const struct params *p, struct wml_value *x)
{
    wml_nn_enter(b, p->gated ? "*DenseGatedActDense" : "*DenseActDense", "DenseReluDense");
    struct wml_value *y = wml_nn_act(b, wml_nn_linear(b, x, p->gated ? "wi_0" : "wi", p->inner), p->act, "feed_forward_proj");
    if (p->gated) y = wml_nn_mul(b, y, wml_nn_linear(b, x, "wi_1", p->inner));
    y = wml_nn_linear(b, y, "wo", p->width);
    wml_nn_leave(b);
    return y;
}

static struct wml_value *block(struct wml_nn *b, struct stack *t, size_t i, struct wml_value *x)
{
    const struct params *p = t->p;
    wml_nn_enter(b, "*Block", "block.%zu", i);
    wml_nn_enter(b, "*LayerSelfAttention", "layer.0");
    x = wml_nn_add(b, x, self_attention(b, t, i, norm(b, p, x, "layer_norm")));
    wml_nn_leave(b);
    if (t->s) {
        wml_nn_enter(b, "*LayerCrossAttention", "layer.1");
        x = wml_nn_add(b, x, cross_attention(b, t, norm(b, p, x, "layer_norm")));
        wml_nn_leave(b);
    }
    wml_nn_enter(b, "*LayerFF", "layer.%d", t->s ? 2 : 1);
    x = wml_nn_add(b, x, feed_forward(b, p, norm(b, p, x, "layer_norm")));
    wml_nn_leave(b);
    wml_nn_leave(b);
    return x;
}

static struct wml_value *run(struct wml_nn *b, struct stack *t)
{
    const struct params *p = t->p;
    wml_nn_enter(b, "*Stack", t->s ? "decoder" : "encoder");
    wml_nn_enter_layer(b, "Embedding", "embed_tokens");
    const char *table = wml_nn_has(b, "/shared.weight") ? "/shared.weight" : "weight";
    struct wml_value *x = wml_nn_gather(b, wml_nn_param(b, table, WML_DIMS(p->vocab, p->width)), t->ids, 0);
    wml_nn_leave(b);
    const int64_t layers = t->s ? p->decoder_layers : p->layers;
    for (size_t i = 0; i < (size_t)layers && wml_nn_ok(b); i++) x = block(b, t, i, x);
    x = norm(b, p, x, "final_layer_norm");
    wml_nn_leave(b);
    return x;
}

static void encode(struct wml_family_job *j)
{
    const struct params p = params_of(j);
    struct stack t = {.p = &p};
    t.ids = wml_source_inputs(j, 0, p.vocab, 0, &t.mask);
    wml_nn_output(j->nn, "encoder_hidden_states", run(j->nn, &t));
}

static void step(struct wml_family_job *j)
{
    struct wml_nn *b = j->nn;
    const struct params p = params_of(j);
    struct wml_seq2seq s;
    wml_step_inputs(j, &s, &(struct wml_step_sizes){.vocab = p.vocab, .source = wml_family_length(j, 0), .width = p.width, .slots = p.slots,
                                                    .layers = p.decoder_layers, .heads = p.heads, .size = p.size, .source_mask = true, .slides = true});
    struct stack t = {.p = &p, .s = &s, .ids = s.ids, .mask = s.mask};
    struct wml_value *x = run(b, &t);
    if (p.tied) x = wml_nn_scale(b, x, 1 / sqrt((double)p.width));
    wml_step_outputs(b, &s, wml_nn_tied_head(b, x, "lm_head", "/shared.weight", p.vocab, p.tied));
}

static const struct wml_family_type types[] = {{"t5", "T5", NULL}, {"mt5", "MT5", NULL}, {"umt5", "UMT5", NULL}, {NULL, NULL, NULL}};
static const struct wml_family_task tasks[] = {
    {"text2text-generation", "ForConditionalGeneration", step},
    {"feature-extraction", "ForConditionalGeneration", encode},
    {NULL, NULL, NULL},
};
static const struct wml_family_composite composites[] = {
    {"translation", {{"encoder", "feature-extraction"}, {"decoder", "text2text-generation"}, {NULL, NULL}}},
    {"summarization", {{"encoder", "feature-extraction"}, {"decoder", "text2text-generation"}, {NULL, NULL}}},
    {NULL, {{NULL, NULL}}},
};
const struct wml_family wml_family_t5 = {.name = "t5", .type = types, .task = tasks, .composite = composites};
