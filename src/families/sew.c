/* families/sew.c - SEW (Wu et al. 2021): wav2vec 2.0 whose transformer sees several places as one. */
#include "families/wav2vec2_body.h"

/* "upsample": every place becomes as many as were made one of. */
static struct wml_value *spread(struct wml_nn *b, const struct wml_speech *p, struct wml_value *x)
{
    wml_nn_enter(b, "*Upsampling", "upsample");
    x = wml_nn_act(b, wml_nn_linear(b, x, "projection", p->hidden * p->position_stride), p->conv_act, "feat_extract_activation");
    if (p->position_stride > 1) x = wml_nn_reshape(b, x, WML_DIMS(0, -1, p->hidden));
    wml_nn_leave(b);
    return x;
}

/* As many places as `like` has: zeros stand for those at the end that were not enough for one. */
static struct wml_value *as_long_as(struct wml_nn *b, const struct wml_speech *p, struct wml_value *x, struct wml_value *like)
{
    if (!wml_nn_ok(b) || p->position_stride == 1) return x;
    const struct wml_axis n = wml_nn_axis(like, 1);
    const int64_t missing = n.size >= 0 ? n.size % p->position_stride : p->position_stride - 1;
    if (missing) x = wml_nn_pad(b, x, (const int64_t[]){0, 0, 0, 0, missing, 0}, 0);
    return n.size >= 0 ? x : wml_nn_slice_to(b, x, 1, wml_nn_extent(b, like, 1), n);
}

static struct wml_value *encoder(struct wml_nn *b, const struct wml_speech *p, struct wml_value *x, struct wml_value **keep)
{
    struct wml_value *all = x;
    wml_nn_enter(b, "*Encoder", "encoder");
    struct wml_value *at = wml_speech_positions(b, p, x), *mean = wml_nn_transpose(b, x, "021");
    if (p->position_stride > 1)
        mean = wml_nn_pool(b, "AveragePool", mean, &(struct wml_nn_window){.kernel = p->position_stride, .stride = p->position_stride});
    x = wml_nn_layer_norm(b, wml_nn_transpose(b, wml_nn_add(b, mean, at), "021"), "layer_norm", p->eps);
    x = wml_speech_layers(b, p, x, keep);
    if (keep) keep[p->layers] = x;
    x = as_long_as(b, p, spread(b, p, x), all);
    wml_nn_leave(b);
    return x;
}

static struct wml_value *body(struct wml_family_job *j, struct wml_value **keep)
{
    struct wml_nn *b = j->nn;
    static const struct wml_speech_lists lists = {13, {64, 128, 128, 128, 128, 256, 256, 256, 256, 512, 512, 512, 512},
                                                  {5, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1}, {10, 3, 1, 3, 1, 3, 1, 3, 1, 2, 1, 2, 1}};
    struct wml_speech p = wml_speech_params(j, &lists);
    p.stable = false;
    p.adapter = 0;
    p.position_stride = wml_cfg_size(j, j->cfg, "squeeze_factor", 2);
    struct wml_value *x = wml_speech_convs(b, &p, wml_speech_input(j));
    x = wml_nn_layer_norm(b, x, "layer_norm", p.eps);
    if (wml_nn_ok(b) && p.width[p.convs - 1] != p.hidden) x = wml_nn_linear(b, x, "feature_projection", p.hidden);
    return encoder(b, &p, x, keep);
}

static const struct wml_audio_model model = {.body = body, .layers = 12, .projection = 256, .vocab = 32};

static const struct wml_family_type types[] = {{"sew", "SEW", "sew"}, {NULL, NULL, NULL}};
const struct wml_family wml_family_sew = {.name = "sew", .type = types, .task = wml_audio_basic_tasks, .own = &model};
