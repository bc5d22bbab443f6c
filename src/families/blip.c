/* families/blip.c - BLIP (Li et al. 2022): a vision transformer, and BERT's layers which write what they see, token by token. */
#include "families/bert_step.h"
#include "families/clip_body.h"
#include "families/vit_body.h"

static const struct wml_json_val *part(struct wml_family_job *j, const char *key)
{
    const struct wml_json_val *cfg = wml_json_get(j->root, key);
    if (!wml_json_is_object(cfg)) wml_nn_fail(j->nn, WML_E_FORMAT, "config.json has no object '%s', which blip needs", key);
    return cfg;
}

/* ------------------------------------------------------------------ pictures */

static struct wml_vit vision_params(struct wml_family_job *j)
{
    const struct wml_json_val *c = j->cfg = part(j, "vision_config");
    struct wml_vit p = {
        .hidden = wml_cfg_size(j, c, "hidden_size", 768), .layers = wml_cfg_count(j, c, "num_hidden_layers", 12),
        .heads = wml_cfg_size(j, c, "num_attention_heads", 12), .inner = wml_cfg_size(j, c, "intermediate_size", 3072),
        .channels = wml_cfg_size(j, c, "num_channels", 3), .eps = wml_cfg_num(j, c, "layer_norm_eps", 1e-5),
        .act = wml_cfg_str(j, c, "hidden_act", "gelu")};
    wml_cfg_pair(j, c, "patch_size", 16, p.patch);
    wml_cfg_pair(j, c, "image_size", 384, p.image);
    return p;
}

/* Rows and columns of a picture in patches. */
static void grid_of(struct wml_family_job *j, const struct wml_vit *p, const int64_t size[2], int64_t grid[2])
{
    grid[0] = size[0] / p->patch[0];
    grid[1] = size[1] / p->patch[1];
    if (p->patch[0] != p->patch[1] || grid[0] < 1 || grid[1] < 1)
        wml_nn_fail(j->nn, WML_E_UNSUPPORTED, "pictures of %lldx%lld in patches of %lldx%lld", (long long)size[0], (long long)size[1],
                    (long long)p->patch[0], (long long)p->patch[1]);
}

static struct wml_value *vision_embeddings(struct wml_family_job *j, const struct wml_vit *p, struct wml_value *pixels)
{
    struct wml_nn *b = j->nn;
    static const char *const what = "the height and width of pixel_values", *const token = "class_embedding";
    const int64_t size[2] = {wml_nn_size(b, pixels, 2, what), wml_nn_size(b, pixels, 3, what)};
    int64_t grid[2], stored[2];
    grid_of(j, p, size, grid);
    grid_of(j, p, p->image, stored);
    wml_nn_enter(b, "*VisionEmbeddings", "embeddings");
    struct wml_value *x = wml_nn_conv(b, pixels, "patch_embedding", p->hidden, &(struct wml_nn_window){.stride = p->patch[0]});
    x = wml_nn_transpose(b, wml_nn_reshape(b, x, WML_DIMS(0, p->hidden, grid[0] * grid[1])), "021");
    x = wml_vit_add_positions_named(b, wml_vit_prepend(b, &token, 1, x), "position_embedding", 1, 0, stored, grid, p->hidden);
    wml_nn_leave(b);
    return x;
}

static struct wml_value *vision_layer(struct wml_nn *b, const struct wml_vit *p, size_t i, struct wml_value *x)
{
    struct wml_value *qkv[3];
    wml_nn_enter(b, "*EncoderLayer", "layers.%zu", i);
    struct wml_value *y = wml_nn_layer_norm(b, x, "layer_norm1", p->eps);
    wml_nn_enter(b, "*Attention", "self_attn");
    wml_nn_split(b, wml_nn_queries_packed(b, y, "qkv", p->hidden, p->heads), -1, 3, qkv);
    const struct wml_nn_attention a = {.q = qkv[0], .k = qkv[1], .v = qkv[2], .heads = p->heads, .scale = 1};
    y = wml_nn_linear(b, wml_nn_attention(b, &a), "projection", p->hidden);
    wml_nn_leave(b);
    x = wml_nn_add(b, y, x);
    y = wml_nn_layer_norm(b, x, "layer_norm2", p->eps);
    y = wml_clip_mlp(b, y, p->inner, p->hidden, p->act);
    wml_nn_leave(b);
    return wml_nn_add(b, y, x);
}

static void encode(struct wml_family_job *j)
{
    struct wml_nn *b = j->nn;
    const struct wml_vit p = vision_params(j);
    struct wml_value *x = wml_family_pixels(j, 384);
    wml_nn_enter(b, "*VisionModel", "vision_model");
    x = vision_embeddings(j, &p, x);
    wml_nn_enter(b, "*Encoder", "encoder");
    for (size_t i = 0; i < (size_t)p.layers && wml_nn_ok(b); i++) x = vision_layer(b, &p, i, x);
    wml_nn_leave(b);
    x = wml_nn_layer_norm(b, x, "post_layernorm", p.eps);
    wml_nn_leave(b);
    wml_nn_output(b, "encoder_hidden_states", x);
}

/* --------------------------------------------------------------------- texts */

/* How many states the encoder gives for a picture of the default size. */
static int64_t n_states(struct wml_family_job *j, const struct wml_vit *p)
{
    int64_t size[2] = {p->image[0], p->image[1]}, grid[2];
    if (j->size[WML_SIZE_HEIGHT]) size[0] = j->size[WML_SIZE_HEIGHT];
    if (j->size[WML_SIZE_WIDTH]) size[1] = j->size[WML_SIZE_WIDTH];
    grid_of(j, p, size, grid);
    return wml_nn_ok(j->nn) ? grid[0] * grid[1] + 1 : 1;
}

static void step(struct wml_family_job *j)
{
    static const struct wml_bert defaults = {.hidden = 768, .layers = 12, .heads = 8, .inner = 3072, .vocab = 30524, .positions = 512,
                                             .pad = -1, .eps = 1e-12};
    struct wml_nn *b = j->nn;
    struct wml_seq2seq s;
    const struct wml_vit v = vision_params(j);
    const int64_t source = n_states(j, &v);
    j->cfg = part(j, "text_config");
    const struct wml_bert p = wml_bert_params(j, &defaults);
    wml_bert_step_inputs(j, &p, &s, source, v.hidden, true);
    b->klass = "BlipText";
    wml_nn_enter(b, "*LMHeadModel", "text_decoder");
    wml_nn_enter(b, "*Model", "bert");
    struct wml_value *x = wml_bert_step(b, &p, &s);
    wml_nn_leave(b);
    x = wml_bert_step_predict(j, &p, x, "/text_decoder.bert.embeddings.word_embeddings.weight");
    wml_nn_leave(b);
    wml_step_outputs(b, &s, x);
}

static const struct wml_family_type types[] = {{"blip", "Blip", NULL}, {NULL, NULL, NULL}};
static const struct wml_family_task tasks[] = {
    {"text2text-generation", "ForConditionalGeneration", step},
    {"image-feature-extraction", "ForConditionalGeneration", encode},
    {NULL, NULL, NULL},
};
static const struct wml_family_composite composites[] = {
    {"image-to-text", {{"encoder", "image-feature-extraction"}, {"decoder", "text2text-generation"}, {NULL, NULL}}},
    {NULL, {{NULL, NULL}}},
};
const struct wml_family wml_family_blip = {.name = "blip", .type = types, .task = tasks, .composite = composites};
