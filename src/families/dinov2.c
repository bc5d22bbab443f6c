/* families/dinov2.c - DINOv2 (Oquab et al. 2023): a ViT with scaled residuals, whose positions are resized to any picture; and the
 * same with registers (Darcet et al. 2023), tokens without a place behind the first. */
#include "families/backbone.h"
#include "families/dinov2_body.h"
#include "families/vit_body.h"
#include "nn/grid.h"

struct dinov2 {
    struct wml_vit vit;
    bool swiglu;
    int64_t registers;
};

static struct dinov2 params_of(struct wml_family_job *j)
{
    struct dinov2 p = {.vit = wml_vit_params(j), .swiglu = wml_json_get_bool(j->cfg, "use_swiglu_ffn", false)};
    p.vit.eps = wml_cfg_num(j, j->cfg, "layer_norm_eps", 1e-6);
    p.vit.inner = wml_cfg_whole((double)p.vit.hidden * wml_cfg_num(j, j->cfg, "mlp_ratio", 4));
    if (!wml_json_get(j->cfg, "patch_size")) p.vit.patch[0] = p.vit.patch[1] = 14;
    if (strcmp(j->type->model_type, "dinov2-with-registers") == 0) p.registers = wml_cfg_count(j, j->cfg, "num_register_tokens", 4);
    return p;
}

/* Pictures of other sizes: with registers, the table of places is resized smoothly. */
static struct wml_value *add_positions(struct wml_nn *b, const struct dinov2 *p, struct wml_value *x, const int64_t grid[2])
{
    const struct wml_vit *v = &p->vit;
    const int64_t stored[2] = {v->image[0] / v->patch[0], v->image[1] / v->patch[1]}, tokens = 1 + grid[0] * grid[1];
    if (!p->registers) return wml_vit_add_positions(b, x, 1, 0, stored, grid, v->hidden);
    const struct wml_weight *w = wml_nn_need(b, "position_embeddings", WML_DIMS(1, 1 + stored[0] * stored[1], v->hidden));
    if (stored[0] == grid[0] && stored[1] == grid[1]) {
        x = wml_nn_add(b, x, wml_nn_param_of(b, w));
    } else {
        const float *all = wml_nn_resize_places(b, wml_nn_read(b, w), 1, 0, stored, grid, v->hidden, WML_NN_BICUBIC_SMOOTH);
        if (!all) return NULL;
        x = wml_nn_add(b, x, wml_nn_const(b, "position_embeddings.resized", WML_F32, WML_DIMS(1, tokens, v->hidden), all));
    }
    struct wml_value *rest = wml_nn_slice(b, x, 1, 1, INT64_MAX);
    struct wml_value *more = wml_nn_repeat(b, wml_nn_param(b, "register_tokens", WML_DIMS(1, p->registers, v->hidden)), 0, x, 0);
    return wml_nn_concat(b, 1, WML_VALUES(wml_nn_slice(b, x, 1, 0, 1), more, rest));
}

static struct wml_value *scaled(struct wml_nn *b, const char *name, struct wml_value *x, int64_t hidden)
{
    wml_nn_enter(b, "*LayerScale", "%s", name);
    x = wml_nn_mul(b, x, wml_nn_param(b, "lambda1", WML_DIMS(hidden)));
    wml_nn_leave(b);
    return x;
}

/* Two linear layers; or SwiGLU: silu of one half times the other. */
static struct wml_value *feed_forward(struct wml_nn *b, const struct dinov2 *p, struct wml_value *x)
{
    const struct wml_vit *v = &p->vit;
    if (!p->swiglu) {
        wml_nn_enter(b, "*MLP", "mlp");
        x = wml_nn_linear(b, wml_nn_act(b, wml_nn_linear(b, x, "fc1", v->inner), v->act, "hidden_act"), "fc2", v->hidden);
        wml_nn_leave(b);
        return x;
    }
    const int64_t inner = (v->inner * 2 / 3 + 7) / 8 * 8;
    struct wml_value *half[2];
    wml_nn_enter(b, "*SwiGLUFFN", "mlp");
    wml_nn_split(b, wml_nn_linear(b, x, "weights_in", 2 * inner), -1, 2, half);
    x = wml_nn_mul(b, wml_nn_act(b, half[0], WML_STR("silu"), "hidden_act"), half[1]);
    x = wml_nn_linear(b, x, "weights_out", v->hidden);
    wml_nn_leave(b);
    return x;
}

static struct wml_value *layer(struct wml_nn *b, const struct dinov2 *p, size_t i, struct wml_value *x)
{
    const struct wml_vit *v = &p->vit;
    wml_nn_enter(b, "*Layer", "layer.%zu", i);
    struct wml_value *y = wml_vit_attention(b, v, wml_nn_layer_norm(b, x, "norm1", v->eps));
    x = wml_nn_add(b, scaled(b, "layer_scale1", y, v->hidden), x);
    y = feed_forward(b, p, wml_nn_layer_norm(b, x, "norm2", v->eps));
    x = wml_nn_add(b, scaled(b, "layer_scale2", y, v->hidden), x);
    wml_nn_leave(b);
    return x;
}

/* The bare model before its last norm; states (may be NULL): what came of the embeddings and of every layer. */
static struct wml_value *layers(struct wml_nn *b, const struct dinov2 *p, struct wml_value *pixels, int64_t grid[2], struct wml_value **states)
{
    const struct wml_vit *v = &p->vit;
    wml_nn_enter(b, "*Embeddings", "embeddings");
    struct wml_value *x = wml_vit_prepend(b, (const char *const[]){"cls_token"}, 1, wml_vit_patches(b, v, pixels, grid));
    x = add_positions(b, p, x, grid);
    wml_nn_find(b, "mask_token"); /* of training */
    wml_nn_leave(b);
    wml_nn_enter(b, "*Encoder", "encoder");
    if (states) states[0] = x;
    for (size_t i = 0; i < (size_t)v->layers && wml_nn_ok(b); i++) {
        x = layer(b, p, i, x);
        if (states) states[i + 1] = x;
    }
    wml_nn_leave(b);
    return x;
}

static struct wml_value *body(struct wml_nn *b, const struct dinov2 *p, struct wml_value *pixels)
{
    int64_t grid[2];
    return wml_nn_layer_norm(b, layers(b, p, pixels, grid, NULL), "layernorm", p->vit.eps);
}

bool wml_dinov2_backbone(struct wml_family_job *j, const struct wml_json_val *cfg, struct wml_value *pixels, struct wml_dinov2_states *out)
{
    struct wml_nn *b = j->nn;
    const struct wml_json_val *whole = j->cfg;
    const char *klass = b->klass;
    struct wml_value *states[513] = {NULL};
    j->cfg = cfg;
    b->klass = "Dinov2";
    const struct dinov2 p = params_of(j);
    if (p.vit.layers > 512) wml_nn_fail(b, WML_E_UNSUPPORTED, "config.json: %lld layers", (long long)p.vit.layers);
    if (wml_nn_ok(b)) layers(b, &p, pixels, out->grid, states);
    out->hidden = p.vit.hidden;
    out->patch = p.vit.patch[0];
    int64_t at[WML_DINOV2_STATES];
    const size_t n = wml_nn_ok(b) ? wml_backbone_states(j, cfg, p.vit.layers, at, WML_DINOV2_STATES) : 0;
    if (n != out->n) wml_nn_fail(b, WML_E_FORMAT, "config.json: the backbone gives %zu states, not %zu", n, out->n);
    for (size_t i = 0; i < n && wml_nn_ok(b); i++)
        out->state[i] = wml_json_get_bool(cfg, "apply_layernorm", true) ? wml_nn_layer_norm(b, states[at[i]], "layernorm", p.vit.eps) : states[at[i]];
    b->klass = klass;
    j->cfg = whole;
    return wml_nn_ok(b);
}

static void features(struct wml_family_job *j)
{
    const struct dinov2 p = params_of(j);
    wml_nn_output(j->nn, "last_hidden_state", body(j->nn, &p, wml_family_crop(j, 224)));
}

/* The first token beside the mean of all places. */
static void classification(struct wml_family_job *j)
{
    struct wml_nn *b = j->nn;
    const struct dinov2 p = params_of(j);
    struct wml_value *x = wml_family_crop(j, 224);
    wml_nn_enter(b, "*Model", "%s", j->type->base);
    x = body(b, &p, x);
    wml_nn_leave(b);
    struct wml_value *mean = wml_nn_reduce(b, "ReduceMean", wml_nn_slice(b, x, 1, 1 + p.registers, INT64_MAX), WML_DIMS(1), false);
    x = wml_nn_concat(b, 1, WML_VALUES(wml_nn_pick(b, x, 1, 0), mean));
    wml_nn_output(b, "logits", wml_nn_linear(b, x, "classifier", wml_cfg_labels(j, j->cfg)));
}

static const struct wml_family_type types[] = {
    {"dinov2", "Dinov2", "dinov2"}, {"dinov2-with-registers", "Dinov2WithRegisters", "dinov2_with_registers"}, {NULL, NULL, NULL}};
static const struct wml_family_task tasks[] = {
    {"image-feature-extraction", "Model", features},
    {"image-classification", "ForImageClassification", classification},
    {NULL, NULL, NULL},
};
const struct wml_family wml_family_dinov2 = {.name = "dinov2", .type = types, .task = tasks};
