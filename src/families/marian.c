/* families/marian.c - Marian (Junczys-Dowmunt et al. 2018): BART's modules, positions by sines, often without a shared vocabulary. */
#include "families/bart_body.h"

static struct wml_bart params(struct wml_family_job *j)
{
    struct wml_bart p = {
        .encoder = {.layers = 12, .heads = 16, .inner = 4096, .vocab = 58101, .positions = 1024},
        .decoder = {.layers = 12, .heads = 16, .inner = 4096},
        .width = 1024, .places = WML_BART_WAVES, .pad = 58100, .scale = 1, .shared = "/model.shared.weight"};
    wml_bart_params(j, &p);
    p.decoder.vocab = wml_cfg_size(j, j->cfg, "decoder_vocab_size", p.encoder.vocab);
    if (!wml_json_get_bool(j->cfg, "share_encoder_decoder_embeddings", true)) p.shared = NULL;
    return p;
}

static const struct wml_bart_kind kind = {.params = params};
static const struct wml_family_type types[] = {{"marian", "Marian", "model"}, {NULL, NULL, NULL}};
static const struct wml_family_task tasks[] = {
    {"text2text-generation", "MTModel", wml_bart_step_task},
    {"feature-extraction", "MTModel", wml_bart_encode_task},
    {NULL, NULL, NULL},
};
static const struct wml_family_composite composites[] = {
    {"translation", {{"encoder", "feature-extraction"}, {"decoder", "text2text-generation"}, {NULL, NULL}}},
    {NULL, {{NULL, NULL}}},
};
const struct wml_family wml_family_marian = {.name = "marian", .type = types, .task = tasks, .composite = composites, .own = &kind};
