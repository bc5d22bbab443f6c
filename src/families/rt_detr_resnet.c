/* families/rt_detr_resnet.c - RT-DETR's ResNet ("vd", He et al. 2018): the first convolution is three, shortcuts that shrink take the
 * mean of two by two places. */
#include "families/backbone.h"
#include "families/rt_detr_body.h"

enum { MAX_STAGES = 16 };

/* Conv, BN and the activation ("": none). */
static struct wml_value *conv(struct wml_nn *b, struct wml_value *x, const char *name, int64_t out, int64_t kernel, int64_t stride, struct wml_str act)
{
    wml_nn_enter(b, "*ConvLayer", "%s", name);
    x = wml_nn_conv_bn(b, x, "convolution", "normalization", 1e-5, out, &(struct wml_nn_window){.kernel = kernel, .stride = stride, .pad = kernel / 2});
    if (act.len) x = wml_nn_act(b, x, act, "hidden_act");
    wml_nn_leave(b);
    return x;
}

static struct wml_value *project(struct wml_nn *b, struct wml_value *x, const char *name, int64_t out, int64_t stride)
{
    wml_nn_enter(b, "*ShortCut", "%s", name);
    x = wml_nn_conv_bn(b, x, "convolution", "normalization", 1e-5, out, &(struct wml_nn_window){.stride = stride});
    wml_nn_leave(b);
    return x;
}

static struct wml_value *shortcut(struct wml_nn *b, struct wml_value *x, bool bottleneck, bool first, int64_t out, int64_t stride)
{
    const bool same = wml_nn_axis(x, 1).size == out;
    if (bottleneck ? same && stride == 1 : !first) return x;
    if (bottleneck ? stride != 2 : same) return project(b, x, "shortcut", out, stride);
    return project(b, wml_nn_pool(b, "AveragePool", x, &(struct wml_nn_window){.kernel = 2, .stride = 2, .ceil = true}), "shortcut.1", out, 1);
}

struct stage {
    int64_t width, depth, stride;
    bool bottleneck, down_first; /* down_first: the stride is in the 1x1 */
    struct wml_str act;
};

static struct wml_value *block(struct wml_nn *b, const struct stage *s, size_t i, struct wml_value *x)
{
    wml_nn_enter(b, s->bottleneck ? "*BottleNeckLayer" : "*BasicLayer", "layers.%zu", i);
    const struct wml_str inner = WML_STR("relu"), none = WML_STR(""); /* whatever hidden_act says */
    const int64_t stride = i ? 1 : s->stride, out = s->width;
    struct wml_value *y = x;
    if (s->bottleneck) {
        y = conv(b, y, "layer.0", out / 4, 1, s->down_first ? stride : 1, inner);
        y = conv(b, y, "layer.1", out / 4, 3, s->down_first ? 1 : stride, inner);
        y = conv(b, y, "layer.2", out, 1, 1, none);
    } else {
        y = conv(b, conv(b, y, "layer.0", out, 3, stride, inner), "layer.1", out, 3, 1, none);
    }
    y = wml_nn_act(b, wml_nn_add(b, y, shortcut(b, x, s->bottleneck, i == 0, out, stride)), s->act, "hidden_act");
    wml_nn_leave(b);
    return y;
}

static struct wml_value *stem(struct wml_nn *b, struct wml_value *x, int64_t width, struct wml_str act)
{
    wml_nn_enter(b, "*Embeddings", "embedder");
    x = conv(b, x, "embedder.0", width / 2, 3, 2, act);
    x = conv(b, conv(b, x, "embedder.1", width / 2, 3, 1, act), "embedder.2", width, 3, 1, act);
    x = wml_nn_pool(b, "MaxPool", x, &(struct wml_nn_window){.kernel = 3, .stride = 2, .pad = 1});
    wml_nn_leave(b);
    return x;
}

void wml_rt_detr_resnet(struct wml_family_job *j, const struct wml_json_val *c, struct wml_value *x, struct wml_rt_detr_pictures *out)
{
    static const int64_t widths[] = {256, 512, 1024, 2048}, depths[] = {3, 4, 6, 3};
    struct wml_nn *b = j->nn;
    int64_t width[MAX_STAGES], depth[MAX_STAGES], wanted[WML_DEFORMABLE_LEVELS];
    const struct wml_str act = wml_cfg_str(j, c, "hidden_act", "relu");
    const size_t n = wml_cfg_list(j, c, "hidden_sizes", 4, widths, width, MAX_STAGES), m = wml_cfg_list(j, c, "depths", 4, depths, depth, MAX_STAGES);
    if (n != m) wml_nn_fail(b, WML_E_FORMAT, "config.json: the backbone's hidden_sizes has %zu stages, depths %zu", n, m);
    const size_t states = wml_backbone_states(j, c, (int64_t)n, wanted, WML_DEFORMABLE_LEVELS);
    if (b->failed) return;
    x = stem(b, x, wml_cfg_size(j, c, "embedding_size", 64), act);
    wml_nn_enter(b, "*Encoder", "encoder");
    for (size_t i = 0, k = 0; i <= n && k < states; i++) {
        if (wanted[k] == (int64_t)i) out->level[k++] = x;
        if (i == n) break;
        const struct stage s = {.width = width[i], .depth = depth[i], .stride = i || wml_json_get_bool(c, "downsample_in_first_stage", false) ? 2 : 1,
                                .bottleneck = wml_str_is(wml_cfg_str(j, c, "layer_type", "bottleneck"), "bottleneck"),
                                .down_first = wml_json_get_bool(c, "downsample_in_bottleneck", false), .act = act};
        wml_nn_enter(b, "*Stage", "stages.%zu", i);
        for (size_t l = 0; l < (size_t)s.depth && wml_nn_ok(b); l++) x = block(b, &s, l, x);
        wml_nn_leave(b);
    }
    out->n = states;
    wml_nn_leave(b);
}
