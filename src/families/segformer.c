/* families/segformer.c - SegFormer (Xie et al. 2021): a transformer over pictures in four sizes, without positions, and a
 * head that joins them. */
#include "families/family.h"

enum { MAX_STAGES = 8 };

struct params {
    size_t stages;
    int64_t width[MAX_STAGES], depth[MAX_STAGES], heads[MAX_STAGES], patch[MAX_STAGES], stride[MAX_STAGES], reduce[MAX_STAGES], ratio[MAX_STAGES];
    int64_t decoder;
    bool flat; /* the last picture is given as a list of places */
    double eps;
    struct wml_str act;
};

static struct params params_of(struct wml_family_job *j)
{
    const struct wml_json_val *c = j->cfg;
    struct params p = {.stages = (size_t)wml_cfg_size(j, c, "num_encoder_blocks", 4), .decoder = wml_cfg_size(j, c, "decoder_hidden_size", 256),
                       .eps = wml_cfg_num(j, c, "layer_norm_eps", 1e-6), .act = wml_cfg_str(j, c, "hidden_act", "gelu"),
                       .flat = !wml_json_get_bool(c, "reshape_last_stage", true)};
    const struct {
        const char *key;
        int64_t *to, usual[4];
    } list[] = {{"hidden_sizes", p.width, {32, 64, 160, 256}}, {"depths", p.depth, {2, 2, 2, 2}}, {"num_attention_heads", p.heads, {1, 2, 5, 8}},
                {"patch_sizes", p.patch, {7, 3, 3, 3}}, {"strides", p.stride, {4, 2, 2, 2}}, {"sr_ratios", p.reduce, {8, 4, 2, 1}},
                {"mlp_ratios", p.ratio, {4, 4, 4, 4}}};
    for (size_t i = 0; i < sizeof list / sizeof *list && wml_nn_ok(j->nn); i++) {
        const size_t n = wml_cfg_list(j, c, list[i].key, 4, list[i].usual, list[i].to, MAX_STAGES);
        if (n < p.stages || p.stages > MAX_STAGES)
            wml_nn_fail(j->nn, WML_E_FORMAT, "config.json: %s has %zu values for %zu stages", list[i].key, n, p.stages);
    }
    return p;
}

/* Rows [batch * places, width] -> [batch, width, rows, columns], and back. */
static struct wml_value *to_image(struct wml_nn *b, struct wml_value *x, int64_t width, const int64_t grid[2])
{
    return wml_nn_transpose(b, wml_nn_reshape(b, x, WML_DIMS(-1, grid[0], grid[1], width)), "0312");
}

static struct wml_value *to_rows(struct wml_nn *b, struct wml_value *x, int64_t width)
{
    return wml_nn_reshape(b, wml_nn_transpose(b, x, "0231"), WML_DIMS(-1, width));
}

static struct wml_value *attention(struct wml_nn *b, const struct params *p, size_t s, struct wml_value *x, const int64_t grid[2])
{
    const int64_t width = p->width[s];
    struct wml_value *kv = x;
    int64_t keys = grid[0] * grid[1];
    wml_nn_enter(b, "*Attention", "attention");
    wml_nn_enter(b, "*EfficientSelfAttention", "self");
    if (p->reduce[s] > 1) {
        kv = wml_nn_conv(b, to_image(b, x, width, grid), "sr", width, &(struct wml_nn_window){.stride = p->reduce[s]});
        keys = kv ? wml_nn_axis(kv, 2).size * wml_nn_axis(kv, 3).size : 1;
        kv = wml_nn_layer_norm(b, to_rows(b, kv, width), "layer_norm", 1e-5);
    }
    const struct wml_nn_attention a = {.q = wml_nn_queries(b, x, "query", width, p->heads[s]), .k = wml_nn_keys(b, kv, "key", width),
                                       .v = wml_nn_linear(b, kv, "value", width), .heads = p->heads[s], .scale = 1,
                                       .length = grid[0] * grid[1], .kv_length = keys};
    x = wml_nn_attention(b, &a);
    wml_nn_leave(b);
    wml_nn_enter(b, "*SelfOutput", "output");
    x = wml_nn_linear(b, x, "dense", width);
    wml_nn_leave(b);
    wml_nn_leave(b);
    return x;
}

/* Two linear layers with a convolution per channel between them, which tells places apart. */
static struct wml_value *mix(struct wml_nn *b, const struct params *p, size_t s, struct wml_value *x, const int64_t grid[2])
{
    const int64_t inner = p->width[s] * p->ratio[s];
    wml_nn_enter(b, "*MixFFN", "mlp");
    x = to_image(b, wml_nn_linear(b, x, "dense1", inner), inner, grid);
    wml_nn_enter(b, "*DWConv", "dwconv");
    x = to_rows(b, wml_nn_conv(b, x, "dwconv", inner, &(struct wml_nn_window){.pad = 1, .groups = inner}), inner);
    wml_nn_leave(b);
    x = wml_nn_linear(b, wml_nn_act(b, x, p->act, "hidden_act"), "dense2", p->width[s]);
    wml_nn_leave(b);
    return x;
}

/* A picture -> rows of places, and their grid. */
static struct wml_value *stage(struct wml_nn *b, const struct params *p, size_t s, struct wml_value *x, int64_t grid[2])
{
    char name[48];
    static const char *const what = "the height and width of pixel_values";
    wml_nn_enter(b, "*OverlapPatchEmbeddings", "patch_embeddings.%zu", s);
    x = wml_nn_conv(b, x, "proj", p->width[s], &(struct wml_nn_window){.stride = p->stride[s], .pad = p->patch[s] / 2});
    grid[0] = wml_nn_size(b, x, 2, what);
    grid[1] = wml_nn_size(b, x, 3, what);
    x = wml_nn_layer_norm(b, to_rows(b, x, p->width[s]), "layer_norm", 1e-5);
    wml_nn_leave(b);
    for (size_t i = 0; i < (size_t)p->depth[s] && wml_nn_ok(b); i++) {
        wml_nn_enter(b, "*Layer", "block.%zu.%zu", s, i);
        x = wml_nn_add(b, attention(b, p, s, wml_nn_layer_norm(b, x, "layer_norm_1", 1e-5), grid), x);
        x = wml_nn_add(b, mix(b, p, s, wml_nn_layer_norm(b, x, "layer_norm_2", 1e-5), grid), x);
        wml_nn_leave(b);
    }
    snprintf(name, sizeof name, "layer_norm.%zu", s);
    return wml_nn_layer_norm(b, x, name, 1e-5);
}

/* What a stage sees: rows of places. */
struct seen {
    struct wml_value *rows;
    int64_t grid[2];
};

static struct wml_value *picture(struct wml_nn *b, const struct params *p, const struct seen *out, size_t s)
{
    return to_image(b, out[s].rows, p->width[s], out[s].grid);
}

static void body(struct wml_nn *b, const struct params *p, struct wml_value *x, struct seen *out)
{
    wml_nn_enter(b, "*Encoder", "encoder");
    for (size_t s = 0; s < p->stages && wml_nn_ok(b); s++) {
        if (s) x = picture(b, p, out, s - 1);
        out[s].rows = stage(b, p, s, x, out[s].grid);
    }
    wml_nn_leave(b);
}

static void features(struct wml_family_job *j)
{
    struct seen out[MAX_STAGES] = {{0}};
    const struct params p = params_of(j);
    body(j->nn, &p, wml_family_pixels_by_preprocessor(j, 512), out);
    if (!wml_nn_ok(j->nn)) return;
    const struct seen *last = &out[p.stages - 1];
    struct wml_value *x = p.flat ? wml_nn_reshape(j->nn, last->rows, WML_DIMS(-1, last->grid[0] * last->grid[1], p.width[p.stages - 1]))
                                 : picture(j->nn, &p, out, p.stages - 1);
    wml_nn_output(j->nn, "last_hidden_state", x);
}

static void encoder(struct wml_family_job *j, const struct params *p, struct seen *out)
{
    struct wml_value *x = wml_family_pixels_by_preprocessor(j, 512);
    wml_nn_enter(j->nn, "*Model", "%s", j->type->base);
    body(j->nn, p, x, out);
    wml_nn_leave(j->nn);
}

static void classification(struct wml_family_job *j)
{
    struct wml_nn *b = j->nn;
    struct seen out[MAX_STAGES] = {{0}};
    const struct params p = params_of(j);
    encoder(j, &p, out);
    if (!wml_nn_ok(b)) return;
    struct wml_value *x = wml_nn_flatten(b, wml_nn_global_mean(b, picture(b, &p, out, p.stages - 1)), 1);
    wml_nn_output(b, "logits", wml_nn_linear(b, x, "classifier", wml_cfg_labels(j, j->cfg)));
}

static struct wml_value *head(struct wml_family_job *j, const struct params *p, const struct seen *in)
{
    struct wml_nn *b = j->nn;
    struct wml_value *part[MAX_STAGES] = {NULL};
    const int64_t h = in[0].grid[0], w = in[0].grid[1];
    wml_nn_enter(b, "*DecodeHead", "decode_head");
    for (size_t s = 0; s < p->stages; s++) {
        const int64_t *grid = in[s].grid;
        wml_nn_enter(b, "*MLP", "linear_c.%zu", s);
        struct wml_value *x = wml_nn_linear(b, in[s].rows, "proj", p->decoder);
        wml_nn_leave(b);
        x = to_image(b, x, p->decoder, grid);
        if (grid[0] != h || grid[1] != w) x = wml_nn_resize(b, x, "linear", false, h, w);
        part[p->stages - 1 - s] = x; /* the smallest comes first */
    }
    struct wml_value *x = wml_nn_concat(b, 1, p->stages, part);
    x = wml_nn_conv_bn(b, x, "linear_fuse", "batch_norm", 1e-5, p->decoder, &(struct wml_nn_window){0});
    x = wml_nn_conv(b, wml_nn_unary(b, "Relu", x), "classifier", wml_cfg_labels(j, j->cfg), &(struct wml_nn_window){0});
    wml_nn_leave(b);
    return x;
}

static void segmentation(struct wml_family_job *j)
{
    struct seen out[MAX_STAGES] = {{0}};
    const struct params p = params_of(j);
    encoder(j, &p, out);
    if (wml_nn_ok(j->nn)) wml_nn_output(j->nn, "logits", head(j, &p, out));
}

static const struct wml_family_type types[] = {{"segformer", "Segformer", "segformer"}, {NULL, NULL, NULL}};
static const struct wml_family_task tasks[] = {
    {"image-segmentation", "ForSemanticSegmentation", segmentation},
    {"image-classification", "ForImageClassification", classification},
    {"image-feature-extraction", "Model", features},
    {NULL, NULL, NULL},
};
const struct wml_family wml_family_segformer = {.name = "segformer", .type = types, .task = tasks};
