/* families/beit.c - BEiT (Bao et al. 2021) and Data2Vec for pictures: a ViT whose scores get a bias of the distance, and whose
 * residuals are scaled. */
#include "families/vit_body.h"
#include "nn/grid.h"

struct params {
    struct wml_vit vit;
    bool absolute, relative, shared, mean; /* positions: a table; a bias in every layer, or one for all; mean of places is pooled */
};

static struct params params_of(struct wml_family_job *j)
{
    const struct wml_json_val *c = j->cfg;
    return (struct params){.vit = wml_vit_params(j), .absolute = wml_json_get_bool(c, "use_absolute_position_embeddings", false),
                           .relative = wml_json_get_bool(c, "use_relative_position_bias", false),
                           .shared = wml_json_get_bool(c, "use_shared_relative_position_bias", false),
                           .mean = wml_json_get_bool(c, "use_mean_pooling", true)};
}

/* The row of the table for a query and a key, the first token being no place. */
static int64_t row_of(int64_t q, int64_t k, int64_t h, int64_t w)
{
    const int64_t places = (2 * h - 1) * (2 * w - 1);
    if (!q) return k ? places : places + 2;
    if (!k) return places + 1;
    q--, k--;
    return (q / w - k / w + h - 1) * (2 * w - 1) + q % w - k % w + w - 1;
}

/* [1, heads, tokens, tokens]; the table of `stored` places is resized to the picture's. The original takes rows for columns
 * where it resizes, which is seen when a picture is not square. */
static struct wml_value *bias(struct wml_nn *b, const struct wml_vit *v, const int64_t stored[2], const int64_t grid[2])
{
    const int64_t old[2] = {2 * stored[1] - 1, 2 * stored[0] - 1}, now[2] = {2 * grid[0] - 1, 2 * grid[1] - 1};
    const int64_t n = 1 + grid[0] * grid[1], rows = old[0] * old[1] + 3, places = now[0] * now[1];
    wml_nn_enter(b, "*RelativePositionBias", "relative_position_bias");
    const float *table = wml_nn_read(b, wml_nn_need(b, "relative_position_bias_table", WML_DIMS(rows, v->heads)));
    wml_nn_find(b, "relative_position_index"); /* computed */
    const float *resized = wml_nn_resize_grid(b, table, old, now, v->heads, WML_NN_BILINEAR);
    if (b->failed) return NULL;
    float *out = wml_nn_room(b, "relative positions", sizeof *out, WML_DIMS(v->heads, n, n));
    if (!out) return NULL;
    for (int64_t q = 0; q < n; q++)
        for (int64_t k = 0; k < n; k++) {
            const int64_t at = row_of(q, k, grid[0], grid[1]);
            const float *row = at < places ? resized + at * v->heads : table + (rows - 3 + at - places) * v->heads;
            for (int64_t h = 0; h < v->heads; h++) out[(h * n + q) * n + k] = row[h];
        }
    struct wml_value *x = wml_nn_const(b, "bias", WML_F32, WML_DIMS(1, v->heads, n, n), out);
    wml_nn_leave(b);
    return x;
}

static struct wml_value *attention(struct wml_nn *b, const struct params *p, struct wml_value *x, const int64_t stored[2],
                               const int64_t grid[2], struct wml_value *shared)
{
    const struct wml_vit *v = &p->vit;
    wml_nn_enter(b, "*Attention", "attention");
    wml_nn_enter(b, "*SelfAttention", "attention");
    const struct wml_nn_attention a = {.q = wml_nn_queries(b, x, "query", v->hidden, v->heads), .k = wml_nn_keys(b, x, "key", v->hidden),
                                       .v = wml_nn_linear(b, x, "value", v->hidden), .heads = v->heads, .scale = 1,
                                       .bias = p->relative ? bias(b, v, stored, grid) : NULL, .mask = shared};
    x = wml_nn_attention(b, &a);
    wml_nn_leave(b);
    wml_nn_enter(b, "*SelfOutput", "output");
    x = wml_nn_linear(b, x, "dense", v->hidden);
    wml_nn_leave(b);
    wml_nn_leave(b);
    return x;
}

/* x times the layer's scale, where it has one. */
static struct wml_value *scaled(struct wml_nn *b, const char *name, struct wml_value *x, int64_t hidden)
{
    return wml_nn_has(b, name) ? wml_nn_mul(b, wml_nn_param(b, name, WML_DIMS(hidden)), x) : x;
}

static struct wml_value *layer(struct wml_nn *b, const struct params *p, size_t i, struct wml_value *x, const int64_t stored[2],
                               const int64_t grid[2], struct wml_value *shared)
{
    const struct wml_vit *v = &p->vit;
    wml_nn_enter(b, "*Layer", "layer.%zu", i);
    struct wml_value *y = attention(b, p, wml_nn_layer_norm(b, x, "layernorm_before", v->eps), stored, grid, shared);
    x = wml_nn_add(b, scaled(b, "lambda_1", y, v->hidden), x);
    y = wml_nn_layer_norm(b, x, "layernorm_after", v->eps);
    wml_nn_enter(b, "*Intermediate", "intermediate");
    y = wml_nn_act(b, wml_nn_linear(b, y, "dense", v->inner), v->act, "hidden_act");
    wml_nn_leave(b);
    wml_nn_enter(b, "*Output", "output");
    y = wml_nn_linear(b, y, "dense", v->hidden);
    wml_nn_leave(b);
    x = wml_nn_add(b, scaled(b, "lambda_2", y, v->hidden), x);
    wml_nn_leave(b);
    return x;
}

/* [batch, 1 + places, hidden], normalised where the pooling does not do it. */
static struct wml_value *body(struct wml_nn *b, const struct params *p, struct wml_value *pixels)
{
    const struct wml_vit *v = &p->vit;
    const int64_t stored[2] = {v->image[0] / v->patch[0], v->image[1] / v->patch[1]};
    int64_t grid[2];
    wml_nn_enter(b, "*Embeddings", "embeddings");
    struct wml_value *x = wml_vit_prepend(b, (const char *const[]){"cls_token"}, 1, wml_vit_patches(b, v, pixels, grid));
    if (p->absolute) x = wml_vit_add_positions(b, x, 1, 0, stored, grid, v->hidden);
    wml_nn_find(b, "mask_token"); /* of training */
    wml_nn_leave(b);
    wml_nn_enter(b, "*Encoder", "encoder");
    struct wml_value *shared = p->shared ? bias(b, v, stored, grid) : NULL;
    for (size_t i = 0; i < (size_t)v->layers && wml_nn_ok(b); i++) x = layer(b, p, i, x, stored, grid, shared);
    wml_nn_leave(b);
    return p->mean ? x : wml_nn_layer_norm(b, x, "layernorm", v->eps);
}

static void features(struct wml_family_job *j)
{
    const struct params p = params_of(j);
    wml_nn_output(j->nn, "last_hidden_state", body(j->nn, &p, wml_family_pixels(j, 224)));
}

static void classification(struct wml_family_job *j)
{
    struct wml_nn *b = j->nn;
    const struct params p = params_of(j);
    struct wml_value *x = wml_family_pixels(j, 224);
    wml_nn_enter(b, "*Model", "%s", j->type->base);
    x = body(b, &p, x);
    wml_nn_enter(b, "*Pooler", "pooler");
    if (p.mean) x = wml_nn_layer_norm(b, wml_nn_reduce(b, "ReduceMean", wml_nn_slice(b, x, 1, 1, INT64_MAX), WML_DIMS(1), false), "layernorm", p.vit.eps);
    else x = wml_nn_pick(b, x, 1, 0);
    wml_nn_leave(b);
    wml_nn_leave(b);
    wml_nn_output(b, "logits", wml_nn_linear(b, x, "classifier", wml_cfg_labels(j, j->cfg)));
}

static const struct wml_family_type types[] = {
    {"beit", "Beit", "beit"}, {"data2vec-vision", "Data2VecVision", "data2vec_vision"}, {NULL, NULL, NULL}};
static const struct wml_family_task tasks[] = {
    {"image-classification", "ForImageClassification", classification},
    {"image-feature-extraction", "Model", features},
    {NULL, NULL, NULL},
};
const struct wml_family wml_family_beit = {.name = "beit", .type = types, .task = tasks};
