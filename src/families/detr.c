/* families/detr.c - DETR (Carion et al. 2020): a convolutional backbone, then a transformer whose learned queries become
 * boxes; and Table Transformer, which is the same with norms before the parts. */
#include <math.h>
#include "families/backbone.h"
#include "families/box_head.h"
#include "families/resnet_body.h"

struct params {
    int64_t hidden, queries, layers[2], heads[2], inner[2]; /* of encoder, decoder */
    bool before;                                            /* norms before the parts */
    bool each;                                              /* the decoder's norm comes after each of its layers, too */
    struct wml_str act;
};

static struct params params_of(struct wml_family_job *j)
{
    const struct wml_json_val *c = j->cfg;
    return (struct params){
        .hidden = wml_cfg_size(j, c, "d_model", 256), .queries = wml_cfg_size(j, c, "num_queries", 100),
        .layers = {wml_cfg_size(j, c, "encoder_layers", 6), wml_cfg_size(j, c, "decoder_layers", 6)},
        .heads = {wml_cfg_size(j, c, "encoder_attention_heads", 8), wml_cfg_size(j, c, "decoder_attention_heads", 8)},
        .inner = {wml_cfg_size(j, c, "encoder_ffn_dim", 2048), wml_cfg_size(j, c, "decoder_ffn_dim", 2048)},
        .before = strcmp(j->type->model_type, "table-transformer") == 0,
        .each = wml_json_get_bool(c, "auxiliary_loss", false), .act = wml_cfg_str(j, c, "activation_function", "relu")};
}

/* ---------------------------------------------------------------- positions */

/* Sines and cosines of the place, rows in the first half of the channels, columns in the second. */
static struct wml_value *sine(struct wml_nn *b, int64_t rows, int64_t columns, int64_t hidden)
{
    const int64_t half = hidden / 2;
    const double whole = 6.283185307179586;
    float *t = wml_nn_room(b, "places of the picture", sizeof *t, WML_DIMS(rows, columns, hidden));
    if (!t) return NULL;
    for (int64_t p = 0; p < rows * columns; p++)
        for (int64_t c = 0; c < 2 * half; c++) {
            const int64_t i = c % half;
            const double at = c < half ? (double)(p / columns + 1) / ((double)rows + 1e-6) : (double)(p % columns + 1) / ((double)columns + 1e-6);
            const double angle = at * whole / pow(10000, 2 * (double)(i / 2) / (double)half);
            t[p * hidden + c] = (float)(i % 2 ? cos(angle) : sin(angle));
        }
    return wml_nn_const(b, "position_embedding", WML_F32, WML_DIMS(rows * columns, hidden), t);
}

/* Tables of 50 rows and 50 columns. */
static struct wml_value *learned(struct wml_nn *b, int64_t rows, int64_t columns, int64_t hidden)
{
    const int64_t half = hidden / 2;
    wml_nn_enter(b, "*LearnedPositionEmbedding", "backbone.position_embedding");
    const float *row = wml_nn_read(b, wml_nn_need(b, "row_embeddings.weight", WML_DIMS(50, half)));
    const float *column = wml_nn_read(b, wml_nn_need(b, "column_embeddings.weight", WML_DIMS(50, half)));
    wml_nn_leave(b);
    if (b->failed) return NULL;
    if (rows > 50 || columns > 50) return wml_nn_fail(b, WML_E_UNSUPPORTED, "the picture is too large: learned positions end at 50 x 50 places");
    float *t = wml_nn_room(b, "places of the picture", sizeof *t, WML_DIMS(rows, columns, hidden));
    if (!t) return NULL;
    for (int64_t p = 0; p < rows * columns; p++)
        for (int64_t c = 0; c < 2 * half; c++)
            t[p * hidden + c] = c < half ? column[p % columns * half + c] : row[p / columns * half + c - half];
    return wml_nn_const(b, "position_embedding", WML_F32, WML_DIMS(rows * columns, hidden), t);
}

/* ------------------------------------------------------------------- layers */

/* Positions are added to what queries and keys are made of, not to the values. */
static struct wml_value *attend(struct wml_nn *b, const char *name, const struct params *p, bool decoder, struct wml_value *x,
                                struct wml_value *at, struct wml_value *memory, struct wml_value *places)
{
    const int64_t n = p->hidden;
    struct wml_value *q = wml_nn_add(b, x, at), *k = memory == x ? q : wml_nn_add(b, memory, places);
    wml_nn_enter(b, "*Attention", "%s", name);
    const struct wml_nn_attention a = {.q = wml_nn_queries(b, q, "q_proj", n, p->heads[decoder]), .k = wml_nn_keys(b, k, "k_proj", n),
                                       .v = wml_nn_linear(b, memory, "v_proj", n), .heads = p->heads[decoder], .scale = 1};
    x = wml_nn_linear(b, wml_nn_attention(b, &a), "out_proj", n);
    wml_nn_leave(b);
    return x;
}

static struct wml_value *feed_forward(struct wml_nn *b, const struct params *p, bool decoder, struct wml_value *x)
{
    x = wml_nn_act(b, wml_nn_linear(b, x, "fc1", p->inner[decoder]), p->act, "activation_function");
    return wml_nn_linear(b, x, "fc2", p->hidden);
}

static struct wml_value *start(struct wml_nn *b, const struct params *p);

/* x + part(norm(x)), or norm(x + part(x)): what goes in, and what comes of it. */
static struct wml_value *before(struct wml_nn *b, const struct params *p, struct wml_value *x, const char *norm)
{
    return p->before ? wml_nn_layer_norm(b, x, norm, 1e-5) : x;
}

static struct wml_value *after(struct wml_nn *b, const struct params *p, struct wml_value *x, struct wml_value *part, const char *norm)
{
    x = wml_nn_add(b, x, part);
    return p->before ? x : wml_nn_layer_norm(b, x, norm, 1e-5);
}

static struct wml_value *encoder_layer(struct wml_nn *b, const struct params *p, size_t i, struct wml_value *x, struct wml_value *places)
{
    wml_nn_enter(b, "*EncoderLayer", "layers.%zu", i);
    struct wml_value *y = before(b, p, x, "self_attn_layer_norm");
    x = after(b, p, x, attend(b, "self_attn", p, false, y, places, y, places), "self_attn_layer_norm");
    y = before(b, p, x, "final_layer_norm");
    x = after(b, p, x, feed_forward(b, p, false, y), "final_layer_norm");
    wml_nn_leave(b);
    return x;
}

/* x of the first layer is nothing. */
static struct wml_value *decoder_layer(struct wml_nn *b, const struct params *p, size_t i, struct wml_value *x, struct wml_value *at,
                                       struct wml_value *memory, struct wml_value *places)
{
    wml_nn_enter(b, "*DecoderLayer", "layers.%zu", i);
    struct wml_value *y;
    if (i == 0) {
        x = start(b, p);
    } else {
        y = before(b, p, x, "self_attn_layer_norm");
        x = after(b, p, x, attend(b, "self_attn", p, true, y, at, y, at), "self_attn_layer_norm");
    }
    y = before(b, p, x, "encoder_attn_layer_norm");
    x = after(b, p, x, attend(b, "encoder_attn", p, true, y, at, memory, places), "encoder_attn_layer_norm");
    y = before(b, p, x, "final_layer_norm");
    x = after(b, p, x, feed_forward(b, p, true, y), "final_layer_norm");
    wml_nn_leave(b);
    return x;
}

/* ---------------------------------------------------- the first layer's start */

/* What the linear layer `name` makes of x, computed here. */
static const float *linear(struct wml_nn *b, const char *name, const float *x, int64_t n)
{
    wml_nn_enter_layer(b, "Linear", "%s", name);
    const float *w = wml_nn_read(b, wml_nn_need(b, "weight", WML_DIMS(n, n)));
    const float *bias = wml_nn_has(b, "bias") ? wml_nn_read(b, wml_nn_need(b, "bias", WML_DIMS(n))) : NULL;
    wml_nn_leave(b);
    float *y = wml_nn_room(b, name, sizeof *y, WML_DIMS(n));
    if (!w || !y) return NULL;
    for (int64_t i = 0; i < n; i++) {
        double sum = bias ? bias[i] : 0;
        for (int64_t c = 0; c < n; c++) sum += (double)w[i * n + c] * x[c];
        y[i] = (float)sum;
    }
    return y;
}

static const float *layer_norm(struct wml_nn *b, const char *name, const float *x, int64_t n)
{
    wml_nn_enter_layer(b, "LayerNorm", "%s", name);
    const float *w = wml_nn_read(b, wml_nn_need(b, "weight", WML_DIMS(n)));
    const float *bias = wml_nn_read(b, wml_nn_need(b, "bias", WML_DIMS(n)));
    wml_nn_leave(b);
    float *y = wml_nn_room(b, name, sizeof *y, WML_DIMS(n));
    if (!x || !w || !bias || !y) return NULL;
    double mean = 0, square = 0;
    for (int64_t i = 0; i < n; i++) mean += x[i] / (double)n;
    for (int64_t i = 0; i < n; i++) square += (x[i] - mean) * (x[i] - mean) / (double)n;
    for (int64_t i = 0; i < n; i++) y[i] = (float)((x[i] - mean) / sqrt(square + 1e-5) * w[i] + bias[i]);
    return y;
}

/* What the first self-attention makes of queries that are all 0: their values are all the same, and so is every mean of them. */
static struct wml_value *start(struct wml_nn *b, const struct params *p)
{
    static const char *const unused[4] = {"q_proj.weight", "q_proj.bias", "k_proj.weight", "k_proj.bias"};
    const int64_t n = p->hidden;
    const float *x = wml_nn_room(b, "queries", sizeof *x, WML_DIMS(n));
    if (x && p->before) x = layer_norm(b, "self_attn_layer_norm", x, n);
    wml_nn_enter(b, "*Attention", "self_attn");
    if (x) x = linear(b, "v_proj", x, n);
    if (x) x = linear(b, "out_proj", x, n);
    for (size_t i = 0; i < 4; i++) wml_nn_find(b, unused[i]);
    wml_nn_leave(b);
    if (x && !p->before) x = layer_norm(b, "self_attn_layer_norm", x, n);
    return x ? wml_nn_const(b, "start", WML_F32, WML_DIMS(1, 1, n), x) : NULL;
}

/* --------------------------------------------------------------------- model */

static struct wml_value *backbone(struct wml_family_job *j, struct wml_value *x)
{
    struct wml_nn *b = j->nn;
    const struct wml_json_val *own = wml_json_get(j->cfg, "backbone_config");
    wml_nn_enter(b, "*ConvModel", "backbone");
    wml_nn_enter(b, "*ConvEncoder", "conv_encoder");
    wml_nn_enter_layer(b, "Backbone", "model");
    const bool timm = b->sketch ? wml_json_get_bool(j->cfg, "use_timm_backbone", !own) : wml_nn_has(b, "conv1.weight");
    if (timm) x = wml_resnet_timm(b, x, wml_json_get_str(j->cfg, "backbone"), wml_json_get_bool(j->cfg, "dilation", false));
    else if (wml_str_is(wml_json_get_str(own, "model_type"), "resnet")) x = wml_resnet_backbone(j, own, x);
    else x = wml_nn_fail(b, WML_E_UNSUPPORTED, "config.json: the backbone of %s is no ResNet", j->type->model_type);
    wml_nn_leave(b);
    wml_nn_leave(b);
    wml_nn_leave(b);
    return x;
}

static struct wml_value *pixels(struct wml_family_job *j)
{
    const struct wml_json_val *own = wml_json_get(j->cfg, "backbone_config");
    if (wml_json_is_object(own)) wml_backbone_channels(j, own);
    return wml_family_pixels(j, 800);
}

/* [batch, queries, hidden] */
static struct wml_value *body(struct wml_family_job *j, const struct params *p, struct wml_value *x)
{
    struct wml_nn *b = j->nn;
    static const char *const what = "the height and width of pixel_values";
    x = wml_nn_conv(b, backbone(j, x), "input_projection", p->hidden, &(struct wml_nn_window){0});
    const int64_t rows = wml_nn_size(b, x, 2, what), columns = wml_nn_size(b, x, 3, what);
    const bool is_sine = wml_str_is(wml_cfg_str(j, j->cfg, "position_embedding_type", "sine"), "sine");
    if (b->failed) return NULL;
    struct wml_value *places = is_sine ? sine(b, rows, columns, p->hidden) : learned(b, rows, columns, p->hidden);
    x = wml_nn_transpose(b, wml_nn_reshape(b, x, WML_DIMS(0, p->hidden, rows * columns)), "021");
    wml_nn_enter(b, "*Encoder", "encoder");
    for (size_t i = 0; i < (size_t)p->layers[0] && wml_nn_ok(b); i++) x = encoder_layer(b, p, i, x, places);
    if (p->before) x = wml_nn_layer_norm(b, x, "layernorm", 1e-5);
    wml_nn_leave(b);
    struct wml_value *at = wml_nn_param(b, "query_position_embeddings.weight", WML_DIMS(p->queries, p->hidden));
    struct wml_value *y = NULL; /* queries start as nothing */
    wml_nn_enter(b, "*Decoder", "decoder");
    for (size_t i = 0; i < (size_t)p->layers[1] && wml_nn_ok(b); i++) {
        y = decoder_layer(b, p, i, y, at, x, places);
        if (p->each) y = wml_nn_layer_norm(b, y, "layernorm", 1e-5);
    }
    y = wml_nn_layer_norm(b, y, "layernorm", 1e-5);
    wml_nn_leave(b);
    return y;
}

static void features(struct wml_family_job *j)
{
    const struct params p = params_of(j);
    wml_nn_output(j->nn, "last_hidden_state", body(j, &p, pixels(j)));
}

static void detection(struct wml_family_job *j)
{
    struct wml_nn *b = j->nn;
    const struct params p = params_of(j);
    struct wml_value *x = pixels(j);
    wml_nn_enter(b, "*Model", "%s", j->type->base);
    x = body(j, &p, x);
    wml_nn_leave(b);
    const int64_t labels = wml_cfg_labels(j, j->cfg) + 1;
    x = wml_nn_reshape(b, x, WML_DIMS(-1, p.hidden));
    struct wml_value *kind = wml_nn_linear(b, x, "class_labels_classifier", labels);
    struct wml_value *box = wml_nn_unary(b, "Sigmoid", wml_box_head(b, "bbox_predictor", x, p.hidden, 4));
    wml_nn_output(b, "logits", wml_nn_reshape(b, kind, WML_DIMS(-1, p.queries, labels)));
    wml_nn_output(b, "pred_boxes", wml_nn_reshape(b, box, WML_DIMS(-1, p.queries, 4)));
}

static const struct wml_family_type types[] = {
    {"detr", "Detr", "model"}, {"table-transformer", "TableTransformer", "model"}, {NULL, NULL, NULL}};
static const struct wml_family_task tasks[] = {
    {"object-detection", "ForObjectDetection", detection},
    {"image-feature-extraction", "Model", features},
    {NULL, NULL, NULL},
};
const struct wml_family wml_family_detr = {.name = "detr", .type = types, .task = tasks};
