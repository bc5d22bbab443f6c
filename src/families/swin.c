/* families/swin.c - Swin (Liu et al. 2021), also as Donut's encoder (Kim et al. 2021): attention within windows, which shift in every second block. */
#include "families/swin_body.h"

static struct wml_value *attend(struct wml_nn *b, const struct wml_swin_block *k, struct wml_value *x, struct wml_value *mask)
{
    const int64_t window = k->p->window, span = (2 * window - 1) * (2 * window - 1);
    wml_nn_enter(b, "*Attention", "attention");
    wml_nn_enter(b, "*SelfAttention", "self");
    const int64_t places = k->side * k->side;
    const float *table = wml_nn_read(b, wml_nn_need(b, "relative_position_bias_table", WML_DIMS(span, k->heads)));
    struct wml_value *q = wml_nn_split_rows(b, wml_nn_queries(b, x, "query", k->width, k->heads), k->heads, places);
    struct wml_value *key = wml_nn_split_rows(b, wml_nn_keys(b, x, "key", k->width), k->heads, places);
    struct wml_value *v = wml_nn_split_rows(b, wml_nn_linear(b, x, "value", k->width), k->heads, places);
    wml_nn_find(b, "relative_position_index"); /* computed */
    struct wml_value *scores = wml_nn_attention_scores(b, q, key, 1);
    scores = wml_swin_add_mask(b, wml_nn_add(b, scores, wml_swin_bias(b, k, table, window)), mask);
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
    x = wml_nn_add(b, x, wml_swin_in_windows(b, k, wml_nn_layer_norm(b, x, "layernorm_before", eps)));
    return wml_nn_add(b, x, wml_swin_feed_forward(b, k, wml_nn_layer_norm(b, x, "layernorm_after", eps)));
}

static const struct wml_swin_kind kind = {.block = block, .attend = attend};

static const struct wml_family_type types[] = {{"swin", "Swin", "swin"}, {"donut-swin", "DonutSwin", "donut"}, {NULL, NULL, NULL}};
static const struct wml_family_task tasks[] = {
    {"image-classification", "ForImageClassification", wml_swin_classification},
    {"image-feature-extraction", "Model", wml_swin_features},
    {"masked-im", "ForMaskedImageModeling", wml_swin_masked_image},
    {NULL, NULL, NULL},
};
const struct wml_family wml_family_swin = {.name = "swin", .type = types, .task = tasks, .own = &kind};
