/* families/vitpose.c - ViTPose (Xu et al. 2022): maps of heat, one per joint of a body, from a ViT without a first token; and
 * ViTPose+ (Xu et al. 2023), where every data set has an expert for a part of the channels. */
#include "families/backbone.h"
#include "families/vit_body.h"

struct params {
    struct wml_vit vit;
    int64_t experts, part; /* channels that the expert gives */
};

/* j->cfg is the backbone's. */
static struct params params_of(struct wml_family_job *j)
{
    struct params p = {.vit = wml_vit_params(j), .experts = wml_cfg_size(j, j->cfg, "num_experts", 1),
                       .part = wml_cfg_size(j, j->cfg, "part_features", 256)};
    p.vit.inner = wml_cfg_whole((double)p.vit.hidden * wml_cfg_num(j, j->cfg, "mlp_ratio", 4));
    if (!wml_json_get(j->cfg, "image_size")) p.vit.image[0] = 256, p.vit.image[1] = 192;
    return p;
}

/* Places [batch, rows * columns, hidden]: the row of the table that was for a first token is added to all others. */
static struct wml_value *embeddings(struct wml_nn *b, const struct wml_vit *p, struct wml_value *pixels, int64_t grid[2])
{
    static const char *const what = "the height and width of pixel_values";
    if (wml_nn_size(b, pixels, 2, what) != p->image[0] || wml_nn_size(b, pixels, 3, what) != p->image[1])
        return wml_nn_fail(b, WML_E_USAGE, "pixel_values must be %lld x %lld: the model has no positions for other sizes",
                           (long long)p->image[0], (long long)p->image[1]);
    if (p->patch[0] != p->patch[1]) return wml_nn_fail(b, WML_E_UNSUPPORTED, "config.json: patches that are not square");
    grid[0] = p->image[0] / p->patch[0];
    grid[1] = p->image[1] / p->patch[1];
    const int64_t n = grid[0] * grid[1], c = p->hidden;
    wml_nn_enter(b, "*Embeddings", "embeddings");
    wml_nn_enter(b, "*PatchEmbeddings", "patch_embeddings");
    struct wml_value *x = wml_nn_conv(b, pixels, "projection", c, &(struct wml_nn_window){.stride = p->patch[0], .pad = 2});
    x = wml_nn_transpose(b, wml_nn_reshape(b, x, WML_DIMS(0, c, n)), "021");
    wml_nn_leave(b);
    const float *table = wml_nn_read(b, wml_nn_need(b, "position_embeddings", WML_DIMS(1, n + 1, c)));
    float *sum = wml_nn_room(b, "positions", sizeof *sum, WML_DIMS(n, c));
    if (!table || !sum) return NULL;
    for (int64_t i = 0; i < n * c; i++) sum[i] = table[c + i] + table[i % c];
    x = wml_nn_add(b, x, wml_nn_const(b, "position_embeddings.sum", WML_F32, WML_DIMS(1, n, c), sum));
    wml_nn_leave(b);
    return x;
}

/* With experts the last channels come from the first of them, COCO's. */
static struct wml_value *feed_forward(struct wml_nn *b, const struct params *p, struct wml_value *x)
{
    const struct wml_vit *v = &p->vit;
    const bool experts = p->experts > 1;
    if (experts && p->part >= v->hidden) return wml_nn_fail(b, WML_E_FORMAT, "config.json: part_features is not below hidden_size");
    wml_nn_enter(b, experts ? "*MoeMLP" : "*MLP", "mlp");
    x = wml_nn_act(b, wml_nn_linear(b, x, "fc1", v->inner), v->act, "hidden_act");
    struct wml_value *y = wml_nn_linear(b, x, "fc2", experts ? v->hidden - p->part : v->hidden);
    if (experts) y = wml_nn_concat(b, 2, WML_VALUES(y, wml_nn_linear(b, x, "experts.0", p->part)));
    wml_nn_leave(b);
    return y;
}

static struct wml_value *layer(struct wml_nn *b, const struct params *p, size_t i, struct wml_value *x)
{
    wml_nn_enter(b, "*Layer", "layer.%zu", i);
    x = wml_nn_add(b, wml_vit_attention(b, &p->vit, wml_nn_layer_norm(b, x, "layernorm_before", p->vit.eps)), x);
    x = wml_nn_add(b, feed_forward(b, p, wml_nn_layer_norm(b, x, "layernorm_after", p->vit.eps)), x);
    wml_nn_leave(b);
    return x;
}

/* [batch, hidden, rows, columns] */
static struct wml_value *backbone(struct wml_family_job *j, int64_t *hidden)
{
    struct wml_nn *b = j->nn;
    int64_t grid[2] = {1, 1}, states[8];
    const struct params p = params_of(j);
    const size_t n = wml_backbone_states(j, j->cfg, p.vit.layers, states, 8);
    struct wml_value *x = wml_family_picture(j, p.vit.image[0], p.vit.image[1]);
    if (b->failed || !n) return NULL;
    wml_nn_enter(b, "*", "backbone");
    x = embeddings(b, &p.vit, x, grid);
    wml_nn_enter(b, "*Encoder", "encoder");
    for (size_t i = 0; i < (size_t)states[n - 1] && wml_nn_ok(b); i++) x = layer(b, &p, i, x);
    wml_nn_leave(b);
    x = wml_nn_layer_norm(b, x, "layernorm", p.vit.eps);
    wml_nn_leave(b);
    *hidden = p.vit.hidden;
    return wml_vit_to_image(b, x, grid, p.vit.hidden);
}

static struct wml_value *twice(struct wml_nn *b, struct wml_value *x, const char *conv, const char *norm)
{
    x = wml_nn_conv_transpose(b, x, conv, 256, &(struct wml_nn_window){.stride = 2, .pad = 1});
    return wml_nn_unary(b, "Relu", wml_nn_batch_norm(b, x, norm, 1e-5));
}

static void keypoints(struct wml_family_job *j)
{
    struct wml_nn *b = j->nn;
    const struct wml_json_val *whole = j->cfg;
    const char *klass = b->klass;
    const int64_t factor = wml_cfg_size(j, whole, "scale_factor", 4), joints = wml_cfg_labels(j, whole);
    const bool simple = wml_json_get_bool(whole, "use_simple_decoder", true);
    int64_t hidden = 0;
    j->cfg = wml_json_get(whole, "backbone_config");
    b->klass = "VitPoseBackbone";
    struct wml_value *x = backbone(j, &hidden);
    b->klass = klass;
    j->cfg = whole;
    wml_nn_enter(b, simple ? "*SimpleDecoder" : "*ClassicDecoder", "head");
    if (simple) {
        x = wml_nn_resize_by(b, wml_nn_unary(b, "Relu", x), "linear", false, (double)factor);
        x = wml_nn_conv(b, x, "conv", joints, &(struct wml_nn_window){.pad = 1});
    } else {
        x = twice(b, twice(b, x, "deconv1", "batchnorm1"), "deconv2", "batchnorm2");
        x = wml_nn_conv(b, x, "conv", joints, &(struct wml_nn_window){0});
    }
    wml_nn_leave(b);
    wml_nn_output(b, "heatmaps", x);
}

static const struct wml_family_type types[] = {{"vitpose", "VitPose", NULL}, {NULL, NULL, NULL}};
static const struct wml_family_task tasks[] = {{"keypoint-detection", "ForPoseEstimation", keypoints}, {NULL, NULL, NULL}};
const struct wml_family wml_family_vitpose = {.name = "vitpose", .type = types, .task = tasks};
