/* families/vision_encoder_decoder.c - an encoder of pictures and a decoder of text, each of a family of its own: TrOCR (Li et
 * al. 2021), Donut (Kim et al. 2021). Any family that gives features of pictures can be the encoder. */
#include "families/bart_body.h"
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

/* A decoder out of BART's modules. */
struct kind {
    const char *type, *klass, *head;
    bool pre;
};
static const struct kind kinds[] = {
    {"trocr", "TrOCR", "output_projection", false}, {"mbart", "MBart", "lm_head", true}, {"bart", "Bart", "lm_head", false},
};

static const struct kind *kind_of(struct wml_family_job *j)
{
    const struct wml_str type = wml_json_get_str(j->cfg, "model_type");
    for (size_t i = 0; i < WML_COUNT(kinds); i++)
        if (wml_str_is(type, kinds[i].type)) return &kinds[i];
    wml_nn_fail(j->nn, WML_E_UNSUPPORTED, "the decoder is of the type '%.*s', which winml cannot export as a part of %s", WML_ARG(type), j->type->model_type);
    return wml_nn_hint(j->nn, "decoders it can: trocr, mbart, bart");
}

static struct wml_bart params(struct wml_family_job *j, const struct kind *k)
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

/* The states as the decoder's attention takes them. */
static struct wml_value *states_of(struct wml_nn *b, struct wml_value *x, int64_t width)
{
    return wml_nn_has(b, "enc_to_dec_proj.weight") ? wml_nn_linear(b, x, "enc_to_dec_proj", width) : x;
}

static void bart_step(struct wml_family_job *j, const struct wml_nn_shape *states)
{
    struct wml_nn *b = j->nn;
    struct wml_seq2seq s;
    const struct kind *k = kind_of(j);
    if (!k) return;
    struct wml_bart p = params(j, k);
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

static void step(struct wml_family_job *j)
{
    const struct wml_nn_shape states = wml_nested_shape(j, part(j, "encoder"), "encoder", features);
    if (!wml_nn_ok(j->nn)) return;
    if (states.rank != 3 || states.at[1].size < 0 || states.at[2].size < 0) {
        wml_nn_fail(j->nn, WML_E_UNSUPPORTED, "the encoder gives no list of states");
        return;
    }
    j->cfg = part(j, "decoder");
    bart_step(j, &states);
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
const struct wml_family wml_family_vision_encoder_decoder = {"vision_encoder_decoder", types, tasks, composites};
