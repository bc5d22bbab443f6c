/* families/wavlm.c - WavLM (Chen et al. 2021): wav2vec 2.0 whose scores depend on distances, more or less so by a gate. */
#include "families/wav2vec2_body.h"

/* The layer "gru_rel_pos_linear" gives eight numbers, of which the first and the last four are added up: two are computed. */
static struct wml_value *gate_sums(struct wml_nn *b, const struct wml_speech *p, struct wml_value *x)
{
    const int64_t size = p->hidden / p->heads, two = 2, dims[2] = {size, 2};
    wml_nn_enter_layer(b, "Linear", "gru_rel_pos_linear");
    const float *w = wml_nn_read(b, wml_nn_need(b, "weight", WML_DIMS(8, size)));
    const float *bias = wml_nn_read(b, wml_nn_need(b, "bias", WML_DIMS(8)));
    float *sum = wml_nn_room(b, "gate", sizeof *sum, 2, dims);
    if (w && bias && sum) {
        float shift[2] = {0};
        for (int64_t i = 0; i < 8; i++) {
            for (int64_t k = 0; k < size; k++) sum[2 * k + i / 4] += w[i * size + k];
            shift[i / 4] += bias[i];
        }
        x = wml_nn_matmul(b, x, wml_nn_const(b, "weight.summed", WML_F32, 2, dims, sum));
        x = wml_nn_add(b, x, wml_nn_const(b, "bias.summed", WML_F32, 1, &two, shift));
    }
    wml_nn_leave(b);
    return x;
}

/* [batch, heads, places, places] */
static struct wml_value *gated_bias(struct wml_nn *b, const struct wml_speech *p, struct wml_value *x, struct wml_value **kept)
{
    if (!*kept) {
        const struct wml_weight *table = wml_nn_need(b, "rel_attn_embed.weight", WML_DIMS(p->buckets->buckets, p->heads));
        *kept = wml_nn_bucket_bias(b, table, p->buckets, x, 1);
    }
    struct wml_value *part[2] = {NULL, NULL};
    wml_nn_split(b, wml_nn_unary(b, "Sigmoid", gate_sums(b, p, wml_nn_split_heads(b, x, p->heads))), 3, 2, part);
    struct wml_value *gate = wml_nn_mul(b, part[1], wml_nn_param(b, "gru_rel_pos_const", WML_DIMS(1, p->heads, 1, 1)));
    gate = wml_nn_shift(b, wml_nn_mul(b, part[0], wml_nn_shift(b, gate, -1)), 2);
    return wml_nn_mul(b, gate, *kept);
}

static struct wml_value *body(struct wml_family_job *j, struct wml_value **keep)
{
    struct wml_speech p = wml_speech_params(j, NULL);
    struct wml_nn_buckets buckets = {.buckets = wml_cfg_size(j, j->cfg, "num_buckets", 320),
                                     .max_distance = wml_cfg_size(j, j->cfg, "max_bucket_distance", 800), .both_ways = true};
    p.bias = gated_bias;
    p.buckets = &buckets;
    struct wml_value *x = wml_speech_convs(j->nn, &p, wml_speech_input(j));
    x = wml_speech_project(j->nn, &p, x, true);
    return wml_speech_adapt(j, &p, wml_speech_encoder(j->nn, &p, x, keep));
}

static const struct wml_audio_model model = {.body = body, .layers = 12, .projection = 256, .vocab = 32};

static const struct wml_family_type types[] = {{"wavlm", "WavLM", "wavlm"}, {NULL, NULL, NULL}};
const struct wml_family wml_family_wavlm = {.name = "wavlm", .type = types, .task = wml_audio_tasks, .own = &model};
