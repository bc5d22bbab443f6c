/* families/pegasus.c - encoder-decoders of text with BART's modules, normalised before their parts: Pegasus (Zhang et al. 2019),
 * M2M-100 (Fan et al. 2020) and NLLB, Blenderbot (Roller et al. 2020); its small one is normalised behind them. */
#include "families/bart_body.h"

static const struct {
    const char *type;
    struct wml_bart p;
} kinds[] = {
    {"pegasus", {.encoder = {.layers = 12, .heads = 16, .inner = 4096, .vocab = 50265, .positions = 1024},
                 .decoder = {.layers = 12, .heads = 16, .inner = 4096},
                 .width = 1024, .pad = 0, .scale = 1, .places = WML_BART_WAVES, .pre = true}},
    {"m2m_100", {.encoder = {.layers = 12, .heads = 16, .inner = 4096, .vocab = 128112, .positions = 1024},
                 .decoder = {.layers = 12, .heads = 16, .inner = 4096},
                 .width = 1024, .pad = 1, .scale = 2, .places = WML_BART_COUNTED, .pre = true, .act = {"relu", 4}}},
    {"blenderbot", {.encoder = {.layers = 2, .heads = 32, .inner = 10240, .vocab = 8008, .positions = 128},
                    .decoder = {.layers = 24, .heads = 32, .inner = 10240},
                    .width = 2560, .pad = 0, .scale = 1, .pre = true}},
    {"blenderbot-small", {.encoder = {.layers = 8, .heads = 16, .inner = 2048, .vocab = 50265, .positions = 512},
                          .decoder = {.layers = 8, .heads = 16, .inner = 2048},
                          .width = 512, .pad = 0, .scale = 1, .first_norm = true, .norm_words = true}},
};

static struct wml_bart params(struct wml_family_job *j)
{
    struct wml_bart p = {0};
    for (size_t i = 0; i < WML_COUNT(kinds); i++)
        if (strcmp(j->type->model_type, kinds[i].type) == 0) p = kinds[i].p;
    p.shared = "/model.shared.weight";
    wml_bart_params(j, &p);
    if (p.places == WML_BART_COUNTED) p.offset = p.pad + 1;
    return p;
}

static const struct wml_bart_kind kind = {.params = params};
static const struct wml_family_type types[] = {
    {"pegasus", "Pegasus", "model"}, {"m2m_100", "M2M100", "model"}, {"blenderbot", "Blenderbot", "model"},
    {"blenderbot-small", "BlenderbotSmall", "model"}, {NULL, NULL, NULL},
};
static const struct wml_family_task tasks[] = {
    {"text2text-generation", "ForConditionalGeneration", wml_bart_step_task},
    {"feature-extraction", "ForConditionalGeneration", wml_bart_encode_task},
    {NULL, NULL, NULL},
};
static const struct wml_family_composite composites[] = {
    {"summarization", {{"encoder", "feature-extraction"}, {"decoder", "text2text-generation"}, {NULL, NULL}}},
    {"translation", {{"encoder", "feature-extraction"}, {"decoder", "text2text-generation"}, {NULL, NULL}}},
    {NULL, {{NULL, NULL}}},
};
const struct wml_family wml_family_pegasus = {.name = "pegasus", .type = types, .task = tasks, .composite = composites, .own = &kind};
