/* families/llama.c - decoders in the manner of Llama; see llama_body.h. */
#include "families/genai.h"
#include "families/llama_body.h"

static const struct wml_family_type types[] = {
    {"llama", "Llama", "model"}, {"mistral", "Mistral", "model"}, {"qwen2", "Qwen2", "model"}, {"phi3", "Phi3", "model"},
    {"smollm3", "SmolLM3", "model"}, {"granite", "Granite", "model"}, {"gemma", "Gemma", "model"}, {"gemma2", "Gemma2", "model"},
    {"gemma3_text", "Gemma3", "model"}, {NULL, NULL, NULL}};
static const struct wml_family_task tasks[] = {
    {"text-generation", "ForCausalLM", wml_llama_generation},
    {"feature-extraction", "Model", wml_llama_features},
    {NULL, NULL, NULL},
};
const struct wml_family wml_family_llama = {.name = "llama", .type = types, .task = tasks, .bundle = &wml_llama_bundle};
