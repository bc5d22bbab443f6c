/* families/vision_encoder_decoder.c - an encoder of pictures and a decoder of text, each of a family of its own: TrOCR (Li et
 * al. 2021), Donut (Kim et al. 2021). Any family that gives features of pictures can be the encoder. */
#include "families/bart_body.h"
#include "families/bert_step.h"
#include "families/gpt2_step.h"
#include "families/nested.h"

static const char *const features = "image-feature-extraction";

static const struct wml_json_val *part(struct wml_family_job *j, const char *key)
{
    const struct wml_json_val *cfg = wml_json_get(j->root, key);
    if (!wml_json_is_object(cfg)) wml_nn_fail(j->nn, WML_E_FORMAT, "config.json has no object '%s', which %s needs", key, j->type->model_type);
    return cfg;
}

static void encode(struct wml_family_job *j)
{
    struct wml_value *x = wml_nested(j, part(j, "encoder"), "encoder", features);
    wml_nn_output(j->nn, "encoder_hidden_states", x);
}

/* Decoders by their model_type: out of BART's modules, or BERT's, or GPT-2. */
struct kind {
    const char *type, *klass, *head;
    bool pre;         /* of BART's modules: normalised before their parts */
    const char *base; /* of BERT's: the attribute of the bare model; NULL: BART's */
};
static const struct kind kinds[] = {
    {"trocr", "TrOCR", "output_projection", false, NULL}, {"mbart", "MBart", "lm_head", true, NULL},
    {"bart", "Bart", "lm_head", false, NULL}, {"bert", "Bert", "cls", false, "bert"}, {"roberta", "Roberta", "lm_head", false, "roberta"},
    {"gpt2", "GPT2", NULL, false, NULL},
};

static const struct kind *kind_of(struct wml_family_job *j)
{
    const struct wml_str type = wml_json_get_str(j->cfg, "model_type");
    for (size_t i = 0; i < WML_COUNT(kinds); i++)
        if (wml_str_is(type, kinds[i].type)) return &kinds[i];
    wml_nn_fail(j->nn, WML_E_UNSUPPORTED, "the decoder is of the type '%.*s', which winml cannot export as a part of %s", WML_ARG(type), j->type->model_type);
    return wml_nn_hint(j->nn, "decoders it can: trocr, mbart, bart, bert, roberta, gpt2");
}

/* The states as the decoder's attention takes them. */
static struct wml_value *states_of(struct wml_nn *b, struct wml_value *x, int64_t width)
{
    return wml_nn_has(b, "enc_to_dec_proj.weight") ? wml_nn_linear(b, x, "enc_to_dec_proj", width) : x;
}

static struct wml_bart bart_params(struct wml_family_job *j, const struct kind *k)
{
    const bool trocr = strcmp(k->type, "trocr") == 0;
    struct wml_bart p = {
        .encoder = {.heads = 1, .inner = 1, .vocab = 50265, .positions = trocr ? 512 : 1024},
        .decoder = {.layers = 12, .heads = 16, .inner = 4096},
        .width = 1024, .offset = 2, .pad = 1, .scale = 1, .first_norm = true, .pre = k->pre};
    wml_bart_params(j, &p);
    if (!trocr) return p;
    p.first_norm = wml_json_get_bool(j->cfg, "layernorm_embedding", true);
    if (!wml_json_get_bool(j->cfg, "use_learned_position_embeddings", true)) {
        p.places = WML_BART_COUNTED;
        p.offset = p.pad + 1;
    }
    return p;
}

static void bart_step(struct wml_family_job *j, const struct kind *k, const struct wml_nn_shape *states)
{
    struct wml_nn *b = j->nn;
    struct wml_seq2seq s;
    struct wml_bart p = bart_params(j, k);
    p.states = states->at[2].size;
    wml_bart_step_inputs(j, &p, &s, states->at[1].size, false);
    s.states = states_of(b, s.states, p.width);
    b->klass = k->klass;
    wml_nn_enter(b, "*ForCausalLM", "decoder");
    wml_nn_enter(b, "*DecoderWrapper", "model");
    struct wml_value *x = wml_bart_decoder(b, &p, &s);
    wml_nn_leave(b);
    x = wml_nn_tied_head(b, x, k->head, "/decoder.model.decoder.embed_tokens.weight", p.decoder.vocab, p.tied);
    wml_nn_leave(b);
    wml_step_outputs(b, &s, x);
}

static void bert_step(struct wml_family_job *j, const struct kind *k, const struct wml_nn_shape *states)
{
    struct wml_nn *b = j->nn;
    struct wml_seq2seq s;
    const bool bert = strcmp(k->type, "bert") == 0;
    const struct wml_bert defaults = {.hidden = 768, .layers = 12, .heads = 12, .inner = 3072, .vocab = bert ? 30522 : 50265,
                                      .positions = 512, .segments = 2, .pad = bert ? -1 : 1, .eps = 1e-12};
    const struct wml_bert p = wml_bert_params(j, &defaults);
    wml_bert_step_inputs(j, &p, &s, states->at[1].size, states->at[2].size, false);
    s.states = states_of(b, s.states, p.hidden);
    b->klass = k->klass;
    wml_nn_enter(b, bert ? "*LMHeadModel" : "*ForCausalLM", "decoder");
    wml_nn_enter(b, "*Model", "%s", k->base);
    struct wml_value *x = wml_bert_step(b, &p, &s);
    wml_nn_leave(b);
    const char *words = wml_arena_fmt(&b->m->arena, "/decoder.%s.embeddings.word_embeddings.weight", k->base).ptr;
    x = bert ? wml_bert_step_predict(j, &p, x, words) : wml_bert_step_lm_head(j, &p, x, words);
    wml_nn_leave(b);
    wml_step_outputs(b, &s, x);
}

static void gpt2_step(struct wml_family_job *j, const struct kind *k, const struct wml_nn_shape *states)
{
    struct wml_seq2seq s;
    const int64_t width = wml_gpt2_step_inputs(j, &s, states->at[1].size, states->at[2].size);
    s.states = states_of(j->nn, s.states, width);
    j->nn->klass = k->klass;
    wml_step_outputs(j->nn, &s, wml_gpt2_step(j, "decoder", &s));
}

static void step(struct wml_family_job *j)
{
    const struct wml_nn_shape states = wml_nested_shape(j, part(j, "encoder"), "encoder", features);
    if (!wml_nn_ok(j->nn)) return;
    if (states.rank != 3 || states.at[1].size < 0 || states.at[2].size < 0) {
        wml_nn_fail(j->nn, WML_E_UNSUPPORTED, "the encoder gives no list of states");
        return;
    }
    j->cfg = part(j, "decoder");
    const struct kind *k = j->cfg ? kind_of(j) : NULL;
    if (k && k->base) bert_step(j, k, &states);
    else if (k && k->head) bart_step(j, k, &states);
    else if (k) gpt2_step(j, k, &states);
}

static const struct wml_family_type types[] = {{"vision-encoder-decoder", "VisionEncoderDecoder", NULL}, {NULL, NULL, NULL}};
static const struct wml_family_task tasks[] = {
    {"text2text-generation", "Model", step},
    {"image-feature-extraction", "Model", encode},
    {NULL, NULL, NULL},
};
static const struct wml_family_composite composites[] = {
    {"image-to-text", {{"encoder", "image-feature-extraction"}, {"decoder", "text2text-generation"}, {NULL, NULL}}},
    {NULL, {{NULL, NULL}}},
};
const struct wml_family wml_family_vision_encoder_decoder = {.name = "vision_encoder_decoder", .type = types, .task = tasks, .composite = composites};
