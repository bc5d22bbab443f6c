/* families/qwen3.c - Qwen3: a decoder in the manner of Llama, also as two files with a cache: one for the prompt, one for
 * token after token. */
#include "families/genai.h"
#include "families/llama_body.h"

static void cached(struct wml_family_job *j, int64_t new_tokens)
{
    struct wml_nn *b = j->nn;
    const struct wml_llama p = wml_llama_params(j);
    struct wml_decoder d = {0};
    const int64_t slots = j->size[WML_SIZE_CACHE] ? j->size[WML_SIZE_CACHE] : p.positions;
    const int64_t step = j->size[WML_SIZE_NEW_TOKENS] ? j->size[WML_SIZE_NEW_TOKENS] : new_tokens < slots ? new_tokens : slots;
    wml_decoder_cached_inputs(j, &d, p.vocab, step, slots, (size_t)p.layers, p.kv_heads, p.head);
    wml_nn_output(b, "logits", wml_llama_logits(j, &p, &d));
    for (size_t i = 0; i < d.layers && wml_nn_ok(b); i++) {
        wml_nn_output(b, wml_arena_fmt(&b->m->arena, "present_%zu_key", i).ptr, d.key[i]);
        wml_nn_output(b, wml_arena_fmt(&b->m->arena, "present_%zu_value", i).ptr, d.value[i]);
    }
}

static void prefill(struct wml_family_job *j) { cached(j, 64); }
static void step(struct wml_family_job *j) { cached(j, 1); }

static const struct wml_family_type types[] = {{"qwen3", "Qwen3", "model"}, {NULL, NULL, NULL}};
static const struct wml_family_task tasks[] = {
    {"text-generation", "ForCausalLM", wml_llama_generation}, /* without a cache, where --input-specs names its inputs */
    {"feature-extraction", "ForCausalLM", prefill},
    {"text2text-generation", "ForCausalLM", step},
    {NULL, NULL, NULL},
};
static const struct wml_family_composite composites[] = {
    {"text-generation", {{"decoder_prefill", "feature-extraction"}, {"decoder_gen", "text2text-generation"}, {NULL, NULL}}},
    {NULL, {{NULL, NULL}}},
};
const struct wml_family wml_family_qwen3 = {.name = "qwen3", .type = types, .task = tasks, .composite = composites, .bundle = &wml_llama_bundle};
