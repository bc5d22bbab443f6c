/* families/swinv2.c - Swin V2 (Liu et al. 2021): scores by cosine, biases from a small network over distances, norms
 * behind the parts of a block. The network's answers do not depend on the input: they are computed here. */
#include <math.h>
#include "families/swin_body.h"

enum { HIDDEN = 512 };

/* Distances of places as the network sees them: relative to the window it was trained with, on a logarithmic scale. */
static double log_distance(int64_t d, int64_t window, int64_t pretrained)
{
    const double most = (double)((pretrained > 0 ? pretrained : window) - 1);
    const double x = (most > 0 ? (double)d / most : 0) * 8;
    return (x < 0 ? -1 : x > 0 ? 1 : 0) * log2(fabs(x) + 1) / 3;
}

/* 16 sigmoid(network(dy, dx)) for every distance: [(2 side - 1)^2, heads]. */
static const float *distance_table(struct wml_nn *b, const struct wml_swin_block *k)
{
    const int64_t span = 2 * k->side - 1;
    wml_nn_enter_layer(b, "Sequential", "continuous_position_bias_mlp");
    const float *w0 = wml_nn_read(b, wml_nn_need(b, "0.weight", WML_DIMS(HIDDEN, 2)));
    const float *b0 = wml_nn_read(b, wml_nn_need(b, "0.bias", WML_DIMS(HIDDEN)));
    const float *w2 = wml_nn_read(b, wml_nn_need(b, "2.weight", WML_DIMS(k->heads, HIDDEN)));
    wml_nn_leave(b);
    if (b->failed) return NULL;
    float *table = wml_nn_room(b, "relative positions", sizeof *table, WML_DIMS(span, span, k->heads));
    if (!table) return NULL;
    const int64_t pretrained = k->p->pretrained[k->stage];
    for (int64_t i = 0; i < span * span; i++) {
        double inner[HIDDEN];
        const double y = log_distance(i / span - k->side + 1, k->side, pretrained), x = log_distance(i % span - k->side + 1, k->side, pretrained);
        for (size_t n = 0; n < HIDDEN; n++) inner[n] = fmax(0, y * w0[2 * n] + x * w0[2 * n + 1] + b0[n]);
        for (int64_t h = 0; h < k->heads; h++) {
            double sum = 0;
            for (size_t n = 0; n < HIDDEN; n++) sum += inner[n] * w2[h * HIDDEN + (int64_t)n];
            table[i * k->heads + h] = (float)(16 / (1 + exp(-sum)));
        }
    }
    return table;
}

/* x / max(|x|, 1e-12) over the last axis. */
static struct wml_value *unit(struct wml_nn *b, struct wml_value *x)
{
    struct wml_value *length = wml_nn_reduce(b, "ReduceL2", x, WML_DIMS(-1), true);
    return wml_nn_div(b, x, wml_nn_binary(b, "Max", length, wml_nn_float(b, 1e-12)));
}

static struct wml_value *scale_of(struct wml_nn *b, int64_t heads)
{
    const float *stored = wml_nn_read(b, wml_nn_need(b, "logit_scale", WML_DIMS(heads, 1, 1)));
    float *scale = wml_nn_room(b, "scales", sizeof *scale, WML_DIMS(heads));
    if (!scale) return NULL;
    for (int64_t i = 0; stored && i < heads; i++) scale[i] = (float)exp(fmin(stored[i], log(100.0)));
    return wml_nn_const(b, "logit_scale.exp", WML_F32, WML_DIMS(heads, 1, 1), scale);
}

static struct wml_value *attend(struct wml_nn *b, const struct wml_swin_block *k, struct wml_value *x, struct wml_value *mask)
{
    wml_nn_enter(b, "*Attention", "attention");
    wml_nn_enter(b, "*SelfAttention", "self");
    const int64_t places = k->side * k->side;
    struct wml_value *q = unit(b, wml_nn_split_rows(b, wml_nn_linear(b, x, "query", k->width), k->heads, places));
    struct wml_value *key = unit(b, wml_nn_split_rows(b, wml_nn_linear(b, x, "key", k->width), k->heads, places));
    struct wml_value *v = wml_nn_split_rows(b, wml_nn_linear(b, x, "value", k->width), k->heads, places);
    struct wml_value *scores = wml_nn_mul(b, wml_nn_attention_scores(b, q, key, 1), scale_of(b, k->heads));
    scores = wml_nn_add(b, scores, wml_swin_bias(b, k, distance_table(b, k), k->side));
    wml_nn_find(b, "relative_coords_table"); /* both computed */
    wml_nn_find(b, "relative_position_index");
    scores = wml_swin_add_mask(b, scores, mask);
    x = wml_nn_join_rows(b, wml_nn_matmul(b, wml_nn_softmax(b, scores, -1), v));
    wml_nn_leave(b);
    wml_nn_enter(b, "*SelfOutput", "output");
    x = wml_nn_linear(b, x, "dense", k->width);
    wml_nn_leave(b);
    wml_nn_leave(b);
    return x;
}

static struct wml_value *block(struct wml_nn *b, const struct wml_swin_block *k, struct wml_value *x)
{
    const double eps = k->p->eps;
    x = wml_nn_add(b, x, wml_nn_layer_norm(b, wml_swin_in_windows(b, k, x), "layernorm_before", eps));
    return wml_nn_add(b, x, wml_nn_layer_norm(b, wml_swin_feed_forward(b, k, x), "layernorm_after", eps));
}

static const struct wml_swin_kind kind = {.block = block, .attend = attend};

static const struct wml_family_type types[] = {{"swinv2", "Swinv2", "swinv2"}, {NULL, NULL, NULL}};
static const struct wml_family_task tasks[] = {
    {"image-classification", "ForImageClassification", wml_swin_classification},
    {"image-feature-extraction", "Model", wml_swin_features},
    {"masked-im", "ForMaskedImageModeling", wml_swin_masked_image},
    {NULL, NULL, NULL},
};
const struct wml_family wml_family_swinv2 = {.name = "swinv2", .type = types, .task = tasks, .own = &kind};
