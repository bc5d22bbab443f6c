/* families/dpt_neck.c - see dpt_neck.h. */
#include <stdio.h>
#include "families/dpt_neck.h"

void wml_dpt_neck_params(struct wml_family_job *j, struct wml_dpt_neck *neck)
{
    static const double usual[WML_DPT_STATES] = {4, 2, 1, 0.5, 1, 1, 1, 1};
    const struct wml_json_val *c = j->cfg, *factors = wml_json_get(c, "reassemble_factors");
    const size_t n = wml_cfg_sizes(j, c, "neck_hidden_sizes", neck->width, WML_DPT_STATES);
    if (n) neck->n = n;
    neck->fusion = wml_cfg_size(j, c, "fusion_hidden_size", neck->fusion);
    neck->fused = neck->n;
    for (size_t i = 0; i < neck->n; i++) {
        const double f = wml_json_num(wml_json_at(factors, i), usual[i]);
        neck->factor[i] = f;
        if (!(f >= 1.0 / 64 && f <= 64) || (f >= 1 ? f != (double)(int64_t)f : 1 / f < 1))
            wml_nn_fail(j->nn, WML_E_FORMAT, "config.json: reassemble_factors has %g, which is neither a whole number nor a part of 1", f);
    }
}

/* The tokens of places, with what the first token says. */
static struct wml_value *read_out(struct wml_nn *b, const struct wml_dpt_neck *p, size_t i, struct wml_value *x, int64_t hidden)
{
    struct wml_value *part[2];
    if (p->readout == WML_DPT_IGNORE) return wml_nn_slice(b, x, 1, 1, INT64_MAX);
    wml_nn_split_sizes(b, x, 1, 2, (const int64_t[]){1, wml_nn_size(b, x, 1, "the number of tokens") - 1}, part);
    struct wml_value *first = part[0], *places = part[1];
    if (p->readout == WML_DPT_ADD) return wml_nn_add(b, places, first);
    char name[40];
    snprintf(name, sizeof name, "readout_projects.%zu.0", i);
    x = wml_nn_linear(b, wml_nn_concat(b, 2, WML_VALUES(places, wml_nn_repeat(b, first, 1, places, 1))), name, hidden);
    return wml_nn_act(b, x, p->act, "hidden_act");
}

/* A state as a picture, `factor` times as large. */
static struct wml_value *reassemble(struct wml_nn *b, const struct wml_dpt_neck *p, size_t i, const struct wml_dpt_states *s)
{
    struct wml_value *x = s->state[i];
    if (wml_nn_rank(x) == 4) return x;
    x = wml_nn_transpose(b, read_out(b, p, i, x, s->hidden), "021");
    x = wml_nn_reshape(b, x, WML_DIMS(0, s->hidden, s->grid[0], s->grid[1]));
    wml_nn_enter(b, "*ReassembleLayer", "layers.%zu", i);
    x = wml_nn_conv(b, x, "projection", p->width[i], &(struct wml_nn_window){0});
    if (p->factor[i] > 1) x = wml_nn_conv_transpose(b, x, "resize", p->width[i], &(struct wml_nn_window){.stride = (int64_t)p->factor[i]});
    else if (p->factor[i] < 1) x = wml_nn_conv(b, x, "resize", p->width[i], &(struct wml_nn_window){.stride = (int64_t)(1 / p->factor[i]), .pad = 1});
    wml_nn_leave(b);
    return x;
}

static struct wml_value *conv_relu(struct wml_nn *b, const struct wml_dpt_neck *p, struct wml_value *x, const char *conv, const char *norm)
{
    const struct wml_nn_window w = {.pad = 1};
    char stored[40];
    snprintf(stored, sizeof stored, "%s.running_var", norm);
    x = wml_nn_unary(b, "Relu", x);
    return wml_nn_has(b, stored) ? wml_nn_conv_bn(b, x, conv, norm, 1e-5, p->fusion, &w) : wml_nn_conv(b, x, conv, p->fusion, &w);
}

static struct wml_value *residual(struct wml_nn *b, const struct wml_dpt_neck *p, const char *name, struct wml_value *x)
{
    wml_nn_enter(b, "*PreActResidualLayer", "%s", name);
    struct wml_value *y = conv_relu(b, p, x, "convolution1", "batch_norm1");
    y = conv_relu(b, p, y, "convolution2", "batch_norm2");
    wml_nn_leave(b);
    return wml_nn_add(b, y, x);
}

/* What is known so far (NULL: nothing) and a state, at the size of the next one (NULL: twice as large). */
static struct wml_value *fuse(struct wml_nn *b, const struct wml_dpt_neck *p, size_t i, struct wml_value *known, struct wml_value *state,
                              const struct wml_value *next)
{
    static const char *const what = "the height and width of pixel_values";
    wml_nn_enter(b, "*FeatureFusionLayer", "layers.%zu", i);
    struct wml_value *x = known ? known : state;
    const int64_t h = wml_nn_size(b, x, 2, what), w = wml_nn_size(b, x, 3, what);
    if (known && state) {
        const bool same = wml_nn_axis(state, 2).size == h && wml_nn_axis(state, 3).size == w;
        x = wml_nn_add(b, x, residual(b, p, "residual_layer1", same ? state : wml_nn_resize(b, state, "linear", false, h, w)));
    }
    x = residual(b, p, "residual_layer2", x);
    x = wml_nn_resize(b, x, "linear", true, next ? wml_nn_axis(next, 2).size : 2 * h, next ? wml_nn_axis(next, 3).size : 2 * w);
    x = wml_nn_conv(b, x, "projection", p->fusion, &(struct wml_nn_window){0});
    wml_nn_leave(b);
    return x;
}

struct wml_value *wml_dpt_neck(struct wml_nn *b, const struct wml_dpt_neck *p, const struct wml_dpt_states *s)
{
    struct wml_value *state[WML_DPT_STATES] = {NULL}, *x = NULL;
    wml_nn_enter(b, "*Neck", "neck");
    wml_nn_enter(b, "*ReassembleStage", "reassemble_stage");
    for (size_t i = 0; i < p->n; i++) state[i] = reassemble(b, p, i, s);
    wml_nn_leave(b);
    for (size_t i = 0; i < p->n; i++) {
        char name[32];
        snprintf(name, sizeof name, "convs.%zu", i);
        state[i] = wml_nn_conv(b, state[i], name, p->fusion, &(struct wml_nn_window){.pad = 1});
    }
    wml_nn_enter(b, "*FeatureFusionStage", "fusion_stage");
    for (size_t i = 0; i < p->fused && wml_nn_ok(b); i++) {
        const size_t at = p->n - 1 - i;
        x = fuse(b, p, i, x, state[at], p->to_next && at ? state[at - 1] : NULL);
    }
    wml_nn_leave(b);
    wml_nn_leave(b);
    return x;
}
