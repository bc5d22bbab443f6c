/* families/rt_detr.c - RT-DETR (Zhao et al. 2023) and RT-DETRv2 (Lv et al. 2024): objects, found while they happen. */
#include "families/rt_detr_body.h"

static struct wml_value *fuse(struct wml_nn *b, const struct wml_rt_detr *p, struct wml_value *x, const char *name)
{
    return wml_rt_detr_csp(b, p, x, name, p->width, p->expansion, 3);
}

static struct wml_value *down(struct wml_nn *b, const struct wml_rt_detr *p, struct wml_value *x, const char *name)
{
    return wml_rt_detr_conv(b, p, x, name, p->width, &(struct wml_nn_window){.kernel = 3, .stride = 2, .pad = 1}, p->act);
}

static const struct wml_rt_detr_kind kind = {.fuse = fuse, .down = down, .lateral_act = true};

static struct wml_deformable deformable_of(struct wml_family_job *j, const struct wml_rt_detr *p, const struct wml_rt_detr_start *s)
{
    const bool v2 = strcmp(j->type->model_type, "rt-detr-v2") == 0;
    struct wml_deformable d = {.hidden = p->hidden, .heads = p->query_heads, .levels = p->levels, .scale = 0.5};
    const int64_t points = wml_cfg_size(j, j->cfg, "decoder_n_points", 4);
    if (v2) d.scale = wml_cfg_num(j, j->cfg, "decoder_offset_scale", 0.5);
    if (v2 && wml_cfg_size(j, j->cfg, "decoder_n_levels", 3) != (int64_t)p->levels)
        wml_nn_fail(j->nn, WML_E_FORMAT, "config.json: decoder_n_levels and num_feature_levels differ");
    const struct wml_str method = v2 ? wml_cfg_str(j, j->cfg, "decoder_method", "default") : WML_STR("default");
    d.nearest = wml_str_is(method, "discrete");
    if (!d.nearest && !wml_str_is(method, "default"))
        wml_nn_fail(j->nn, WML_E_UNSUPPORTED, "config.json: decoder_method is '%.*s', known are 'default' and 'discrete'", WML_ARG(method));
    for (size_t i = 0; i < p->levels; i++) {
        d.points[i] = points;
        for (size_t k = 0; k < 2; k++) d.size[i][k] = s->size[i][k];
    }
    return d;
}

static struct wml_value *layer(struct wml_nn *b, const struct wml_rt_detr *p, const struct wml_deformable *d, size_t i, struct wml_value *x,
                               struct wml_value *at, struct wml_value *box, struct wml_value *memory)
{
    wml_nn_enter(b, "*DecoderLayer", "layers.%zu", i);
    x = wml_nn_add(b, x, wml_rt_detr_attend(b, p->hidden, p->query_heads, x, at));
    x = wml_nn_layer_norm(b, x, "self_attn_layer_norm", p->eps);
    wml_nn_enter(b, "*MultiscaleDeformableAttention", "encoder_attn");
    struct wml_value *y = wml_deformable(b, d, wml_nn_add(b, x, at), box, wml_nn_linear(b, memory, "value_proj", p->hidden));
    y = wml_nn_linear(b, y, "output_proj", p->hidden);
    wml_nn_leave(b);
    x = wml_nn_layer_norm(b, wml_nn_add(b, x, y), "encoder_attn_layer_norm", p->eps);
    y = wml_nn_act(b, wml_nn_linear(b, x, "fc1", p->query_inner), p->decoder_act, "decoder_activation_function");
    x = wml_nn_layer_norm(b, wml_nn_add(b, x, wml_nn_linear(b, y, "fc2", p->hidden)), "final_layer_norm", p->eps);
    wml_nn_leave(b);
    return x;
}

static void detection(struct wml_family_job *j)
{
    struct wml_nn *b = j->nn;
    const struct wml_rt_detr p = wml_rt_detr_params(j);
    struct wml_value *pixels = wml_rt_detr_pixels(j, &p), *logits = NULL;
    wml_nn_enter(b, "*Model", "%s", j->type->base);
    struct wml_rt_detr_pictures s = wml_rt_detr_see(j, &p, pixels);
    wml_rt_detr_mix(b, &p, &kind, &s);
    struct wml_rt_detr_start at = wml_rt_detr_select(j, &p, &s);
    wml_nn_leave(b);
    const struct wml_deformable d = deformable_of(j, &p, &at);
    for (size_t i = 0; i < (size_t)p.depth && wml_nn_ok(b); i++) {
        const bool within = wml_rt_detr_enter(j);
        char name[40];
        struct wml_value *place = wml_rt_detr_mlp(b, "query_pos_head", at.box, 2 * p.hidden, p.hidden, 2);
        at.query = layer(b, &p, &d, i, at.query, place, at.box, at.memory);
        if (!within) wml_rt_detr_leave(b);
        snprintf(name, sizeof name, "bbox_embed.%zu", i);
        at.box = wml_rt_detr_refine(b, wml_rt_detr_mlp(b, name, at.query, p.hidden, 4, 3), at.box);
        snprintf(name, sizeof name, "class_embed.%zu", i);
        if (i + 1 == (size_t)p.depth) logits = wml_nn_linear(b, at.query, name, p.labels);
        if (within) wml_rt_detr_leave(b);
    }
    wml_nn_output(b, "logits", logits);
    wml_nn_output(b, "pred_boxes", at.box);
}

static const struct wml_family_type types[] = {{"rt-detr", "RTDetr", "model"}, {"rt-detr-v2", "RTDetrV2", "model"}, {NULL, NULL, NULL}};
static const struct wml_family_task tasks[] = {
    {"object-detection", "ForObjectDetection", detection},
    {NULL, NULL, NULL},
};
const struct wml_family wml_family_rt_detr = {.name = "rt_detr", .type = types, .task = tasks};
