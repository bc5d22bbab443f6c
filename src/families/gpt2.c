/* families/gpt2.c - GPT-2 (Radford et al. 2019): a decoder whose positions are a table. */
#include <math.h>
#include "families/decoder_inputs.h"
#include "families/gpt2_step.h"

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

static double scale_of(const struct params *p, size_t i)
{
    const double scale = p->scale ? 1 / sqrt((double)(p->hidden / p->heads)) : 1;
    return p->by_layer ? scale / (double)(i + 1) : scale;
}

static struct wml_value *mlp(struct wml_nn *b, const struct params *p, struct wml_value *x)
{
    wml_nn_enter(b, "*MLP", "mlp");
    x = wml_nn_act(b, wml_nn_linear_in_out(b, x, "c_fc", p->inner), p->act, "activation_function");
    x = wml_nn_linear_in_out(b, x, "c_proj", p->hidden);
    wml_nn_leave(b);
    return x;
}

static struct wml_value *block(struct wml_nn *b, const struct params *p, size_t i, struct wml_value *x, struct wml_value *mask)
{
    struct wml_value *qkv[3], *y;
    wml_nn_enter(b, "*Block", "h.%zu", i);
    y = wml_nn_layer_norm(b, x, "ln_1", p->eps);
    wml_nn_enter(b, "*Attention", "attn");
    wml_nn_split(b, wml_nn_linear_in_out(b, y, "c_attn", 3 * p->hidden), -1, 3, qkv);
    const struct wml_nn_attention a = {.q = qkv[0], .k = qkv[1], .v = qkv[2], .heads = p->heads, .mask = mask, .scale = scale_of(p, i)};
    y = wml_nn_linear_in_out(b, wml_nn_attention(b, &a), "c_proj", p->hidden);
    wml_nn_leave(b);
    x = wml_nn_add(b, y, x);
    y = mlp(b, p, wml_nn_layer_norm(b, x, "ln_2", p->eps));
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

/* ------------------------------------- one token, behind another encoder */

static struct wml_value *step_attention(struct wml_nn *b, const struct params *p, size_t i, bool cross, struct wml_value *x, struct wml_seq2seq *s)
{
    struct wml_value *part[3] = {NULL};
    struct wml_nn_attention a = {.heads = p->heads, .scale = scale_of(p, i), .mask = cross ? s->source_mask : s->mask, .turned = cross};
    wml_nn_enter(b, "*Attention", cross ? "crossattention" : "attn");
    if (cross) {
        part[0] = wml_nn_linear_in_out(b, x, "q_attn", p->hidden);
        wml_nn_split(b, wml_nn_linear_in_out(b, s->states, "c_attn", 2 * p->hidden), -1, 2, part + 1);
    } else {
        wml_nn_split(b, wml_nn_linear_in_out(b, x, "c_attn", 3 * p->hidden), -1, 3, part);
    }
    a.q = wml_step_split(b, part[0], p->heads);
    a.k = cross ? wml_nn_split_turned(b, part[1], p->heads) : wml_step_append(b, s, i, false, part[1], p->heads);
    a.v = cross ? wml_nn_split_heads(b, part[2], p->heads) : wml_step_append(b, s, i, true, part[2], p->heads);
    x = wml_nn_linear_in_out(b, wml_step_join(b, wml_nn_attention_heads(b, &a)), "c_proj", p->hidden);
    wml_nn_leave(b);
    return x;
}

static struct wml_value *step_block(struct wml_nn *b, const struct params *p, size_t i, struct wml_value *x, struct wml_seq2seq *s)
{
    wml_nn_enter(b, "*Block", "h.%zu", i);
    x = wml_nn_add(b, step_attention(b, p, i, false, wml_nn_layer_norm(b, x, "ln_1", p->eps), s), x);
    x = wml_nn_add(b, x, step_attention(b, p, i, true, wml_nn_layer_norm(b, x, "ln_cross_attn", p->eps), s));
    x = wml_nn_add(b, x, mlp(b, p, wml_nn_layer_norm(b, x, "ln_2", p->eps)));
    wml_nn_leave(b);
    return x;
}

int64_t wml_gpt2_step_inputs(struct wml_family_job *j, struct wml_seq2seq *s, int64_t source, int64_t width)
{
    const struct params p = params_of(j);
    if (p.hidden % p.heads)
        wml_nn_fail(j->nn, WML_E_FORMAT, "config.json: a width of %lld does not divide into %lld attention heads", (long long)p.hidden, (long long)p.heads);
    wml_step_inputs(j, s, &(struct wml_step_sizes){.vocab = p.vocab, .source = source, .width = width, .slots = p.positions, .places = p.positions,
                                                   .layers = p.layers, .heads = p.heads, .size = p.hidden / p.heads});
    return p.hidden;
}

struct wml_value *wml_gpt2_step(struct wml_family_job *j, const char *at, struct wml_seq2seq *s)
{
    struct wml_nn *b = j->nn;
    const struct params p = params_of(j);
    wml_nn_enter(b, "*LMHeadModel", "%s", at);
    wml_nn_enter(b, "*Model", "transformer");
    struct wml_value *x = wml_nn_embedding(b, s->ids, "wte", p.vocab, p.hidden);
    x = wml_nn_add(b, x, wml_nn_embedding(b, s->place, "wpe", p.positions, p.hidden));
    for (size_t i = 0; i < (size_t)p.layers && wml_nn_ok(b); i++) x = step_block(b, &p, i, x, s);
    x = wml_nn_layer_norm(b, x, "ln_f", p.eps);
    wml_nn_leave(b);
    const char *words = wml_arena_fmt(&b->m->arena, "/%s.transformer.wte.weight", at).ptr;
    x = wml_nn_tied_head(b, x, "lm_head", words, p.vocab, wml_json_get_bool(j->cfg, "tie_word_embeddings", true));
    wml_nn_leave(b);
    return x;
}

static const struct wml_family_type types[] = {{"gpt2", "GPT2", "transformer"}, {NULL, NULL, NULL}};
static const struct wml_family_task tasks[] = {
    {"text-generation", "LMHeadModel", generation},
    {"feature-extraction", "Model", features},
    {NULL, NULL, NULL},
};
const struct wml_family wml_family_gpt2 = {.name = "gpt2", .type = types, .task = tasks};
