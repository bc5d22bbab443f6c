/* families/gpt2.c - GPT-2 (Radford et al. 2019): a decoder whose positions are a table. */
#include <math.h>
#include "families/decoder_inputs.h"

struct params {
    int64_t hidden, layers, heads, inner, vocab, positions;
    double eps;
    bool scale, by_layer; /* scores by 1 / sqrt(size), and by 1 / (layer + 1) */
    struct wml_str act;
};

static struct params params_of(struct wml_family_job *j)
{
    const struct wml_json_val *c = j->cfg;
    struct params p = {
        .hidden = wml_cfg_size(j, c, "n_embd", 768), .layers = wml_cfg_size(j, c, "n_layer", 12), .heads = wml_cfg_size(j, c, "n_head", 12),
        .vocab = wml_cfg_size(j, c, "vocab_size", 50257), .positions = wml_cfg_size(j, c, "n_positions", 1024),
        .eps = wml_cfg_num(j, c, "layer_norm_epsilon", 1e-5), .act = wml_cfg_str(j, c, "activation_function", "gelu_new"),
        .scale = wml_json_get_bool(c, "scale_attn_weights", true), .by_layer = wml_json_get_bool(c, "scale_attn_by_inverse_layer_idx", false)};
    p.inner = wml_cfg_size(j, c, "n_inner", 4 * p.hidden);
    return p;
}

static struct wml_value *block(struct wml_nn *b, const struct params *p, size_t i, struct wml_value *x, struct wml_value *mask)
{
    struct wml_value *qkv[3], *y;
    wml_nn_enter(b, "*Block", "h.%zu", i);
    y = wml_nn_layer_norm(b, x, "ln_1", p->eps);
    wml_nn_enter(b, "*Attention", "attn");
    wml_nn_split(b, wml_nn_linear_in_out(b, y, "c_attn", 3 * p->hidden), -1, 3, qkv);
    struct wml_nn_attention a = {.q = qkv[0], .k = qkv[1], .v = qkv[2], .heads = p->heads, .mask = mask};
    a.scale = p->scale ? 1 / sqrt((double)(p->hidden / p->heads)) : 1;
    if (p->by_layer) a.scale /= (double)(i + 1);
    y = wml_nn_linear_in_out(b, wml_nn_attention(b, &a), "c_proj", p->hidden);
    wml_nn_leave(b);
    x = wml_nn_add(b, y, x);
    y = wml_nn_layer_norm(b, x, "ln_2", p->eps);
    wml_nn_enter(b, "*MLP", "mlp");
    y = wml_nn_act(b, wml_nn_linear_in_out(b, y, "c_fc", p->inner), p->act, "activation_function");
    y = wml_nn_linear_in_out(b, y, "c_proj", p->hidden);
    wml_nn_leave(b);
    wml_nn_leave(b);
    return wml_nn_add(b, x, y);
}

static struct wml_value *body(struct wml_family_job *j, const struct params *p, const struct wml_decoder *d)
{
    struct wml_nn *b = j->nn;
    struct wml_value *x = wml_nn_embedding(b, d->ids, "wte", p->vocab, p->hidden);
    if (d->positions) {
        x = wml_nn_add(b, x, wml_nn_embedding(b, d->positions, "wpe", p->positions, p->hidden));
    } else {
        const struct wml_weight *table = wml_nn_need(b, "wpe.weight", WML_DIMS(p->positions, p->hidden));
        x = wml_nn_add(b, x, wml_nn_position_rows(b, table, d->ids, 1, 0));
    }
    for (size_t i = 0; i < (size_t)p->layers && wml_nn_ok(b); i++) x = block(b, p, i, x, d->additive);
    return wml_nn_layer_norm(b, x, "ln_f", p->eps);
}

static void features(struct wml_family_job *j)
{
    const struct params p = params_of(j);
    struct wml_decoder d = {0};
    wml_decoder_inputs(j, &d, p.vocab, p.positions);
    wml_nn_output(j->nn, "last_hidden_state", body(j, &p, &d));
}

static void generation(struct wml_family_job *j)
{
    struct wml_nn *b = j->nn;
    const struct params p = params_of(j);
    struct wml_decoder d = {0};
    wml_decoder_inputs(j, &d, p.vocab, p.positions);
    wml_nn_enter(b, "*Model", "%s", j->type->base);
    struct wml_value *x = body(j, &p, &d);
    wml_nn_leave(b);
    wml_nn_output(b, "logits", wml_nn_tied_head(b, x, "lm_head", "/transformer.wte.weight", p.vocab,
                                                 wml_json_get_bool(j->cfg, "tie_word_embeddings", true)));
}

static const struct wml_family_type types[] = {{"gpt2", "GPT2", "transformer"}, {NULL, NULL, NULL}};
static const struct wml_family_task tasks[] = {
    {"text-generation", "LMHeadModel", generation},
    {"feature-extraction", "Model", features},
    {NULL, NULL, NULL},
};
const struct wml_family wml_family_gpt2 = {"gpt2", types, tasks, NULL};
