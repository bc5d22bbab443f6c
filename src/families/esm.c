/* families/esm.c - ESM-1b, ESM-2 (Rives et al. 2021, Lin et al. 2022): encoders of proteins, normalised before their layers. */
#include "families/text_tasks.h"
#include "nn/rotary.h"

struct own {
    bool rotary, norm_before, drops; /* drops: masked tokens are zeros, the others larger for it */
    int64_t mask_id;
    struct wml_nn_turn turn;
};

static void check(struct wml_family_job *j, const struct wml_bert *p, struct wml_str places)
{
    struct wml_nn *b = j->nn;
    if (!wml_str_is(places, "rotary") && !wml_str_is(places, "absolute"))
        wml_nn_fail(b, WML_E_UNSUPPORTED, "config.json: position_embedding_type '%.*s' is neither rotary nor absolute", WML_ARG(places));
    if (wml_json_get_bool(j->cfg, "is_folding_model", false))
        wml_nn_fail(b, WML_E_UNSUPPORTED, "config.json: is_folding_model is on; ESMFold is not exported");
    if (p->hidden % p->heads)
        wml_nn_fail(b, WML_E_FORMAT, "config.json: a width of %lld does not divide into %lld attention heads", (long long)p->hidden, (long long)p->heads);
}

static struct wml_bert params(struct wml_family_job *j)
{
    const struct wml_json_val *c = j->cfg;
    const struct wml_str places = wml_cfg_str(j, c, "position_embedding_type", "absolute");
    struct own *o = WML_NEW(&j->nn->m->arena, struct own);
    *o = (struct own){.rotary = wml_str_is(places, "rotary"), .norm_before = wml_json_get_bool(c, "emb_layer_norm_before", false),
                      .drops = wml_json_get_bool(c, "token_dropout", false)};
    if (o->drops) o->mask_id = wml_cfg_count(j, c, "mask_token_id", 32);
    struct wml_bert p = {
        .hidden = wml_cfg_size(j, c, "hidden_size", 768),
        .layers = wml_cfg_count(j, c, "num_hidden_layers", 12),
        .heads = wml_cfg_size(j, c, "num_attention_heads", 12),
        .inner = wml_cfg_size(j, c, "intermediate_size", 3072),
        .vocab = wml_cfg_size(j, c, "vocab_size", 33),
        .positions = wml_cfg_size(j, c, "max_position_embeddings", 1026),
        .eps = wml_cfg_num(j, c, "layer_norm_eps", 1e-12),
        .act = WML_STR("gelu"),
        .places = o->rotary ? WML_BERT_NOWHERE : WML_BERT_ABSOLUTE,
        .own = o,
    };
    p.embedding = p.hidden;
    p.pad = o->rotary ? -1 : wml_cfg_count(j, c, "pad_token_id", 1);
    check(j, &p, places);
    return p;
}

/* What a word is multiplied by, [batch, n, 1]: in training 12 % of the tokens were masked. As transformers counts them,
 * padding is a token. */
static struct wml_value *weights(struct wml_nn *b, const struct own *o, const struct wml_text *t)
{
    if (!wml_nn_ok(b) || !t->ids) return NULL;
    struct wml_value *masked = wml_nn_compare(b, "Equal", t->ids, wml_nn_int(b, wml_value_elem(t->ids), o->mask_id));
    masked = wml_nn_unsqueeze(b, wml_nn_cast(b, masked, WML_F32), WML_DIMS(2));
    struct wml_value *one = wml_nn_float(b, 1), *seen = wml_nn_sub(b, one, wml_nn_reduce(b, "ReduceMean", masked, WML_DIMS(1), true));
    return wml_nn_mul(b, wml_nn_sub(b, one, masked), wml_nn_div(b, wml_nn_float(b, 1 - 0.15 * 0.8), seen));
}

static struct wml_value *embeddings(struct wml_nn *b, const struct wml_bert *p, const struct wml_text *t)
{
    const struct own *o = p->own;
    wml_nn_enter(b, "*Embeddings", "embeddings");
    struct wml_value *x = wml_nn_embedding(b, t->ids, "word_embeddings", p->vocab, p->hidden);
    if (o->drops) x = wml_nn_mul(b, x, weights(b, o, t));
    if (!o->rotary) x = wml_nn_add(b, x, wml_text_positions(b, t->ids, "position_embeddings", p->pad, p->positions, p->hidden));
    if (o->norm_before) x = wml_nn_layer_norm(b, x, "layer_norm", p->eps);
    wml_nn_leave(b);
    return x;
}

static struct wml_value *self(struct wml_nn *b, const struct wml_bert *p, struct wml_value *x, const struct wml_text *t)
{
    const struct own *o = p->own;
    if (!o->rotary) return wml_bert_attention(b, p, x, t);
    wml_nn_find(b, "rotary_embeddings.inv_freq"); /* computed */
    const struct wml_nn_attention a = {
        .q = wml_nn_rotate(b, wml_nn_split_heads(b, wml_nn_linear(b, x, "query", p->hidden), p->heads), &o->turn),
        .k = wml_nn_rotate(b, wml_nn_split_heads(b, wml_nn_linear(b, x, "key", p->hidden), p->heads), &o->turn),
        .v = wml_nn_split_heads(b, wml_nn_linear(b, x, "value", p->hidden), p->heads), .heads = p->heads, .mask = t->additive};
    return wml_nn_join_heads(b, wml_nn_attention_heads(b, &a));
}

static struct wml_value *body(struct wml_family_job *j, const struct wml_bert *params_, const struct wml_text *t)
{
    struct wml_nn *b = j->nn;
    struct own o = *(const struct own *)params_->own;
    struct wml_bert p = *params_;
    p.own = &o;
    p.self = self;
    if (o.rotary && p.layers && wml_nn_ok(b)) {
        struct wml_nn_rope r = {0};
        if (p.hidden / p.heads <= WML_ROPE_MAX) wml_nn_rope_init(&r, p.hidden / p.heads, 10000);
        o.turn = wml_nn_turn(b, &r, NULL, t->ids, p.positions);
    }
    struct wml_value *x = embeddings(b, &p, t);
    wml_nn_enter(b, "*Encoder", "encoder");
    for (size_t i = 0; i < (size_t)p.layers && wml_nn_ok(b); i++) x = wml_bert_layer_before(b, &p, i, x, t, "LayerNorm");
    x = wml_nn_layer_norm(b, x, "emb_layer_norm_after", p.eps);
    wml_nn_leave(b);
    return x;
}

static const struct wml_text_model model = {
    .params = params, .body = body, .classify = wml_text_classify_first, .predict = wml_text_lm_head,
};

static const struct wml_family_type types[] = {{"esm", "Esm", "esm"}, {NULL, NULL, NULL}};
static const struct wml_family_task tasks[] = {
    {"feature-extraction", "Model", wml_text_features},
    {"fill-mask", "ForMaskedLM", wml_text_fill_mask},
    {"text-classification", "ForSequenceClassification", wml_text_classes},
    {"token-classification", "ForTokenClassification", wml_text_token_classes},
    {NULL, NULL, NULL},
};
const struct wml_family wml_family_esm = {.name = "esm", .type = types, .task = tasks, .own = &model};
