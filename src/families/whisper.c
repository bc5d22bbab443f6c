/* families/whisper.c - Whisper (Radford et al. 2022): BART's modules over a spectrum of sound. One graph takes a whole text
 * ("automatic-speech-recognition"); its parts are an encoder and a decoder that takes one token with a cache. */
#include "families/audio_tasks.h"
#include "families/bart_body.h"

static struct wml_bart params(struct wml_family_job *j)
{
    struct wml_bart p = {
        .encoder = {.layers = 4, .heads = 6, .inner = 1536, .vocab = 51865, .positions = 1500},
        .decoder = {.layers = 4, .heads = 6, .inner = 1536},
        .width = 384, .pad = 50256, .scale = 1, .pre = true};
    wml_bart_params(j, &p);
    p.encoder.positions = wml_cfg_size(j, j->cfg, "max_source_positions", 1500);
    p.decoder.positions = wml_cfg_size(j, j->cfg, "max_target_positions", 448);
    p.scale = 1; /* whatever scale_embedding says */
    return p;
}

/* Two frames are one place. */
static struct wml_value *frames(struct wml_family_job *j, const struct wml_bart *p)
{
    const int64_t bins = j->size[WML_SIZE_FEATURES] ? j->size[WML_SIZE_FEATURES] : wml_cfg_size(j, j->cfg, "num_mel_bins", 80);
    const int64_t n = j->size[WML_SIZE_FRAMES] ? j->size[WML_SIZE_FRAMES] : 2 * p->encoder.positions;
    return wml_family_input(j, "input_features", WML_F32, WML_DIMS(j->batch, bins, n), -1, 1);
}

/* The module "encoder": [batch, places, width]. keep: also what every layer gets, and the result. */
static struct wml_value *encoder(struct wml_nn *b, const struct wml_bart *p, struct wml_value *x, struct wml_value **keep)
{
    wml_nn_enter(b, "*Encoder", "encoder");
    x = wml_nn_gelu(b, wml_nn_conv(b, x, "conv1", p->width, &(struct wml_nn_window){.pad = 1}));
    x = wml_nn_gelu(b, wml_nn_conv(b, x, "conv2", p->width, &(struct wml_nn_window){.pad = 1, .stride = 2}));
    x = wml_bart_add_positions(b, p, wml_nn_transpose(b, x, "021"), NULL);
    for (size_t i = 0; i < (size_t)p->encoder.layers && wml_nn_ok(b); i++) {
        if (keep) keep[i] = x;
        x = wml_bart_encoder_layer(b, p, i, x, NULL);
    }
    x = wml_bart_encoder_end(b, p, x);
    if (keep) keep[p->encoder.layers] = x;
    wml_nn_leave(b);
    return x;
}

static struct wml_value *words(struct wml_nn *b, const struct wml_bart *p, struct wml_value *x)
{
    return wml_nn_tied_head(b, x, "proj_out", "/model.decoder.embed_tokens.weight", p->decoder.vocab, p->tied);
}

static void recognition(struct wml_family_job *j)
{
    struct wml_nn *b = j->nn;
    const struct wml_bart p = params(j);
    struct wml_value *x = frames(j, &p);
    struct wml_seq2seq s = {.ids = wml_family_input(j, "decoder_input_ids", WML_I32, WML_DIMS(j->batch, wml_family_length(j, 0)), 0, (double)p.decoder.vocab)};
    s.mask = wml_nn_causal_mask(b, s.ids, NULL);
    wml_nn_enter(b, "*Model", "model");
    s.states = encoder(b, &p, x, NULL);
    x = wml_bart_decoder(b, &p, &s);
    wml_nn_leave(b);
    wml_nn_output(b, "logits", words(b, &p, x));
    wml_nn_output(b, "encoder_last_hidden_state", s.states);
}

static void encode(struct wml_family_job *j)
{
    struct wml_nn *b = j->nn;
    const struct wml_bart p = params(j);
    struct wml_value *x = frames(j, &p);
    wml_nn_enter(b, "*Model", "model");
    x = encoder(b, &p, x, NULL);
    wml_nn_leave(b);
    wml_nn_output(b, "encoder_hidden_states", x);
}

static void step(struct wml_family_job *j)
{
    struct wml_nn *b = j->nn;
    const struct wml_bart p = params(j);
    struct wml_seq2seq s;
    wml_bart_step_inputs(j, &p, &s, p.encoder.positions, false);
    wml_nn_enter(b, "*Model", "model");
    struct wml_value *x = wml_bart_decoder(b, &p, &s);
    wml_nn_leave(b);
    wml_step_outputs(b, &s, words(b, &p, x));
}

static void classes(struct wml_family_job *j)
{
    struct wml_nn *b = j->nn;
    const struct wml_bart p = params(j);
    struct wml_value **kept = wml_nn_room(b, "layers", sizeof *kept, WML_DIMS(p.encoder.layers + 1));
    if (!kept) return;
    struct wml_value *x = encoder(b, &p, frames(j, &p), kept);
    if (wml_json_get_bool(j->cfg, "use_weighted_layer_sum", false)) x = wml_audio_weighted(b, kept, (size_t)p.encoder.layers + 1);
    x = wml_nn_linear(b, x, "projector", wml_cfg_size(j, j->cfg, "classifier_proj_size", 256));
    x = wml_nn_linear(b, wml_nn_reduce(b, "ReduceMean", x, WML_DIMS(1), false), "classifier", wml_cfg_labels(j, j->cfg));
    wml_nn_output(b, "logits", x);
}

static const struct wml_family_type types[] = {{"whisper", "Whisper", "model"}, {NULL, NULL, NULL}};
static const struct wml_family_task tasks[] = {
    {"automatic-speech-recognition", "ForConditionalGeneration", recognition},
    {"audio-classification", "ForAudioClassification", classes},
    {"feature-extraction", "ForConditionalGeneration", encode},
    {"text2text-generation", "ForConditionalGeneration", step},
    {NULL, NULL, NULL},
};
static const struct wml_family_composite composites[] = {
    {"", {{"encoder", "feature-extraction"}, {"decoder", "text2text-generation"}, {NULL, NULL}}},
    {NULL, {{NULL, NULL}}},
};
const struct wml_family wml_family_whisper = {.name = "whisper", .type = types, .task = tasks, .composite = composites};
