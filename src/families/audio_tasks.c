/* families/audio_tasks.c - see audio_tasks.h. */
#include <math.h>
#include "families/audio_tasks.h"

enum { MAX_TDNN = 32 };

static struct wml_value *encoded(struct wml_family_job *j, struct wml_value **keep)
{
    const struct wml_audio_model *m = j->family->own;
    wml_nn_enter(j->nn, "*Model", "%s", j->type->base);
    struct wml_value *x = m->body(j, keep);
    wml_nn_leave(j->nn);
    return x;
}

struct wml_value *wml_audio_weighted(struct wml_nn *b, struct wml_value *const *kept, size_t n)
{
    const float *w = wml_nn_read(b, wml_nn_need(b, "layer_weights", WML_DIMS((int64_t)n)));
    struct wml_value *sum = NULL;
    double most = -INFINITY, total = 0; /* shares are the softmax of the weights */
    for (size_t i = 0; w && i < n; i++) most = fmax(most, w[i]);
    for (size_t i = 0; w && i < n; i++) total += exp(w[i] - most);
    for (size_t i = 0; i < n && wml_nn_ok(b); i++) {
        struct wml_value *part = wml_nn_mul(b, kept[i], wml_nn_float(b, exp(w[i] - most) / total));
        sum = sum ? wml_nn_add(b, sum, part) : part;
    }
    return sum;
}

/* What a head other than that of words gets: the last states, or the weighted sum of all. */
static struct wml_value *states(struct wml_family_job *j)
{
    const struct wml_audio_model *m = j->family->own;
    if (!wml_json_get_bool(j->cfg, "use_weighted_layer_sum", false)) return encoded(j, NULL);
    const size_t n = (size_t)wml_cfg_count(j, j->cfg, "num_hidden_layers", m->layers) + 1;
    struct wml_value **kept = WML_NEW_ARRAY(&j->nn->m->arena, struct wml_value *, n);
    encoded(j, kept);
    return wml_audio_weighted(j->nn, kept, n);
}

static void features(struct wml_family_job *j)
{
    const struct wml_audio_model *m = j->family->own;
    wml_nn_output(j->nn, "last_hidden_state", m->body(j, NULL));
}

static void recognition(struct wml_family_job *j)
{
    const struct wml_audio_model *m = j->family->own;
    struct wml_value *x = encoded(j, NULL);
    wml_nn_output(j->nn, "logits", wml_nn_linear(j->nn, x, "lm_head", wml_cfg_size(j, j->cfg, "vocab_size", m->vocab)));
}

/* Feelings as numbers (Wagner et al. 2023): the mean, and a head of two layers on it. */
static void feelings(struct wml_family_job *j, struct wml_value *x)
{
    struct wml_nn *b = j->nn;
    struct wml_value *mean = wml_nn_reduce(b, "ReduceMean", x, WML_DIMS(1), false);
    wml_nn_enter(b, "RegressionHead", "classifier");
    x = wml_nn_unary(b, "Tanh", wml_nn_linear(b, mean, "dense", -1));
    x = wml_nn_linear(b, x, "out_proj", wml_cfg_labels(j, j->cfg));
    wml_nn_leave(b);
    wml_nn_output(b, "hidden_states", mean);
    wml_nn_output(b, "logits", x);
}

static void classes(struct wml_family_job *j)
{
    const struct wml_audio_model *m = j->family->own;
    struct wml_nn *b = j->nn;
    struct wml_value *x = states(j);
    if (wml_nn_has(b, "classifier.dense.weight") && !wml_nn_has(b, "projector.weight")) {
        feelings(j, x);
        return;
    }
    x = wml_nn_linear(b, x, "projector", wml_cfg_size(j, j->cfg, "classifier_proj_size", m->projection));
    x = wml_nn_reduce(b, "ReduceMean", x, WML_DIMS(1), false);
    wml_nn_output(b, "logits", wml_nn_linear(b, x, "classifier", wml_cfg_labels(j, j->cfg)));
}

static void place_classes(struct wml_family_job *j)
{
    struct wml_value *x = states(j);
    wml_nn_output(j->nn, "logits", wml_nn_linear(j->nn, x, "classifier", wml_cfg_labels(j, j->cfg)));
}

/* ---------------------------------------------------------------- speakers */

struct tdnn { /* time-delay layers (Peddinti et al. 2015) */
    int64_t width[MAX_TDNN], kernel[MAX_TDNN], dilation[MAX_TDNN];
    size_t n;
};

static struct tdnn tdnn_params(struct wml_family_job *j)
{
    struct tdnn t;
    t.n = wml_cfg_list(j, j->cfg, "tdnn_dim", WML_DIMS(512, 512, 512, 512, 1500), t.width, MAX_TDNN);
    const size_t kernels = wml_cfg_list(j, j->cfg, "tdnn_kernel", WML_DIMS(5, 3, 3, 1, 1), t.kernel, MAX_TDNN);
    const size_t dilations = wml_cfg_list(j, j->cfg, "tdnn_dilation", WML_DIMS(1, 2, 3, 1, 1), t.dilation, MAX_TDNN);
    if (kernels < t.n || dilations < t.n)
        wml_nn_fail(j->nn, WML_E_FORMAT, "config.json: tdnn_dim has %zu layers, tdnn_kernel %zu, tdnn_dilation %zu", t.n, kernels, dilations);
    return t;
}

/* A convolution whose weight is stored as that of a linear layer over the places it sees: [out, kernel * in]. */
static struct wml_value *tdnn_layer(struct wml_nn *b, const struct tdnn *t, size_t i, struct wml_value *x)
{
    const int64_t in = t->width[i ? i - 1 : 0], out = t->width[i];
    wml_nn_enter(b, "TDNNLayer", "tdnn.%zu", i);
    wml_nn_enter_layer(b, "Linear", "kernel");
    const struct wml_weight *w = wml_nn_need(b, "weight", WML_DIMS(out, t->kernel[i] * in));
    struct wml_value *bias = wml_nn_has(b, "bias") ? wml_nn_param(b, "bias", WML_DIMS(out)) : NULL;
    x = wml_nn_conv_node(b, x, wml_nn_turned(b, w, out, t->kernel[i], in), bias, &(struct wml_nn_window){.dilation = t->dilation[i]});
    wml_nn_leave(b);
    x = wml_nn_unary(b, "Relu", x);
    wml_nn_leave(b);
    return x;
}

/* Mean and standard deviation (of a sample) over the places of [batch, width, places]: [batch, 2 width]. */
static struct wml_value *statistics(struct wml_nn *b, struct wml_value *x)
{
    struct wml_value *mean = wml_nn_reduce(b, "ReduceMean", x, WML_DIMS(2), true), *d = wml_nn_sub(b, x, mean);
    struct wml_value *var = wml_nn_reduce(b, "ReduceSum", wml_nn_mul(b, d, d), WML_DIMS(2), true);
    if (!wml_nn_ok(b) || !x) return NULL;
    const struct wml_axis n = wml_nn_axis(x, 2);
    if (n.size >= 0 && n.size < 2) {
        wml_nn_fail(b, WML_E_UNSUPPORTED, "the sound is too short: a deviation needs two places, %lld is left", (long long)n.size);
        return wml_nn_hint(b, "give a larger audio_sequence_length with --shape-config");
    }
    if (n.size >= 0) var = wml_nn_scale(b, var, 1.0 / (double)(n.size - 1));
    else var = wml_nn_div(b, var, wml_nn_shift(b, wml_nn_cast(b, wml_nn_extent(b, x, 2), WML_F32), -1));
    x = wml_nn_concat(b, 1, WML_VALUES(mean, wml_nn_unary(b, "Sqrt", var)));
    return wml_nn_flatten(b, x, 1);
}

static void speaker(struct wml_family_job *j)
{
    struct wml_nn *b = j->nn;
    const struct tdnn t = tdnn_params(j);
    const int64_t width = wml_cfg_size(j, j->cfg, "xvector_output_dim", 512);
    struct wml_value *x = wml_nn_transpose(b, wml_nn_linear(b, states(j), "projector", t.width[0]), "021");
    for (size_t i = 0; i < t.n && wml_nn_ok(b); i++) x = tdnn_layer(b, &t, i, x);
    x = wml_nn_linear(b, statistics(b, x), "feature_extractor", width);
    wml_nn_output(b, "logits", wml_nn_linear(b, x, "classifier", width));
    wml_nn_output(b, "embeddings", x);
}

const struct wml_family_task wml_audio_basic_tasks[] = {
    {"automatic-speech-recognition", "ForCTC", recognition},
    {"audio-classification", "ForSequenceClassification", classes},
    {"feature-extraction", "Model", features},
    {NULL, NULL, NULL},
};
const struct wml_family_task wml_audio_tasks[] = {
    {"automatic-speech-recognition", "ForCTC", recognition},
    {"audio-classification", "ForSequenceClassification", classes},
    {"feature-extraction", "Model", features},
    {"audio-frame-classification", "ForAudioFrameClassification", place_classes},
    {"audio-xvector", "ForXVector", speaker},
    {NULL, NULL, NULL},
};
