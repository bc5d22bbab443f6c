/* families/deberta.c - DeBERTa and DeBERTa-v2/v3 (He et al. 2020, 2021): words and their distances attend to each other
 * apart: scores are query to key, query to distance ("c2p") and distance to key ("p2c"). */
#include <math.h>
#include "families/text_tasks.h"
#include "nn/relative.h"

struct own {
    bool v2, relative, c2p, p2c, shared, norm, talking;
    size_t kinds;            /* of scores, of which each makes the scale smaller: 1 + those of pos_att_type */
    int64_t reach, buckets;  /* distances are cut at reach; 0 buckets: each has its own row */
    int64_t span, head;      /* half of the table's rows; the size of a head */
    /* of the graph: */
    struct wml_value *mask, *alive; /* [batch, 1, n, n] as it is added, [batch, n, 1] of 1 and 0 */
    struct wml_value *to_key, *to_query; /* [hidden, distances]: the vectors of the table for them */
};

/* The next word of "c2p|p2c"; empty at the end. */
static struct wml_str next_word(struct wml_str *rest)
{
    const size_t bar = wml_str_find(*rest, '|');
    const struct wml_str word = wml_str_sub(*rest, 0, WML_MIN(bar, rest->len));
    *rest = bar == SIZE_MAX ? WML_NO_STR : wml_str_sub(*rest, bar + 1, rest->len);
    return wml_str_trim(word);
}

static void add_kind(struct own *o, struct wml_str kind)
{
    o->c2p |= wml_str_is(kind, "c2p");
    o->p2c |= wml_str_is(kind, "p2c");
    o->kinds++;
}

/* pos_att_type: one text, or a list. */
static void read_kinds(struct wml_family_job *j, struct own *o)
{
    const struct wml_json_val *v = wml_json_get(j->cfg, "pos_att_type"), *e;
    struct wml_str text = wml_json_str(v), key;
    struct wml_json_iter it = {0};
    while (wml_json_is_array(v) && wml_json_next(v, &it, &key, &e)) add_kind(o, wml_json_str(e));
    while (text.len) add_kind(o, next_word(&text));
    if (o->v2) o->kinds = (size_t)o->c2p + o->p2c;
    o->kinds++;
}

static void read_distances(struct wml_family_job *j, const struct wml_bert *p, struct own *o)
{
    const struct wml_json_val *c = j->cfg;
    const int64_t reach = wml_cfg_int(j, c, "max_relative_positions", -1), buckets = o->v2 ? wml_cfg_int(j, c, "position_buckets", -1) : -1;
    o->reach = reach < 1 ? p->positions : WML_MIN(reach, 1 << 24);
    o->buckets = buckets > 0 ? WML_MIN(buckets, 1 << 24) : 0;
    o->span = o->buckets ? o->buckets : o->reach;
    o->shared = o->v2 && wml_json_get_bool(c, "share_att_key", false);
    struct wml_str norm = wml_cfg_str(j, c, "norm_rel_ebd", "none");
    while (norm.len) o->norm |= wml_str_is(next_word(&norm), "layer_norm");
    o->norm &= o->v2;
    if (o->buckets == 1) wml_nn_fail(j->nn, WML_E_FORMAT, "config.json: position_buckets is 1, but must be 2 or more");
}

static struct wml_bert params(struct wml_family_job *j)
{
    const struct wml_json_val *c = j->cfg;
    const bool v2 = strcmp(j->type->klass, "DebertaV2") == 0;
    static const struct wml_bert first = {.hidden = 768, .layers = 12, .heads = 12, .inner = 3072, .vocab = 50265,
                                          .positions = 512, .pad = -1, .eps = 1e-7};
    static const struct wml_bert second = {.hidden = 1536, .layers = 24, .heads = 24, .inner = 6144, .vocab = 128100,
                                           .positions = 512, .pad = -1, .eps = 1e-7};
    struct wml_bert p = wml_bert_params(j, v2 ? &second : &first);
    p.segments = wml_cfg_count(j, c, "type_vocab_size", 0);
    p.embedding = wml_cfg_size(j, c, "embedding_size", p.hidden);
    p.places = wml_json_get_bool(c, "position_biased_input", true) ? WML_BERT_ABSOLUTE : WML_BERT_NOWHERE;
    struct own *o = WML_NEW(&j->nn->m->arena, struct own);
    *o = (struct own){.v2 = v2, .relative = wml_json_get_bool(c, "relative_attention", false),
                      .talking = !v2 && wml_json_get_bool(c, "talking_head", false)};
    if (p.hidden % p.heads)
        wml_nn_fail(j->nn, WML_E_FORMAT, "config.json: a width of %lld does not divide into %lld attention heads", (long long)p.hidden, (long long)p.heads);
    o->head = v2 ? wml_cfg_size(j, c, "attention_head_size", WML_MAX(p.hidden / p.heads, 1)) : p.hidden / p.heads;
    read_kinds(j, o);
    read_distances(j, &p, o);
    p.own = o;
    p.own_mask = true;
    return p;
}

/* --------------------------------------------------------------- distances */

/* Near distances count as they are, far ones in steps of their logarithm; in float32, as the models were trained. */
static int64_t bucket_of(const struct own *o, int64_t behind)
{
    const int64_t mid = o->buckets / 2, far = behind < 0 ? -behind : behind;
    if (!o->buckets || far <= mid) return behind;
    float steps = ceilf(logf((float)far / (float)mid) / logf((float)((double)(o->reach - 1) / (double)mid)) * (float)(mid - 1));
    if (!(steps < 1e6f)) steps = 1e6f;
    if (steps < -1e6f) steps = -1e6f;
    const int64_t at = (int64_t)steps + mid;
    return behind < 0 ? -at : at;
}

static int64_t cut(const struct own *o, int64_t at)
{
    return at < -o->span ? 0 : WML_MIN(at, o->span - 1) + o->span;
}
static int64_t row_to_key(const void *own, int64_t distance) { return cut(own, bucket_of(own, -distance)); }
static int64_t row_to_query(const void *own, int64_t distance) { return cut(own, -bucket_of(own, -distance)); }

static double scale_of(const struct own *o)
{
    return 1 / sqrt((double)o->head * (double)o->kinds);
}

/* Factors of n outputs: that of scores for the first `part` of every `whole`, 1 for the rest. */
static const float *scales(struct wml_nn *b, const struct own *o, int64_t n, int64_t part, int64_t whole)
{
    float *f = wml_nn_room(b, "scales of queries", sizeof *f, WML_DIMS(n));
    for (int64_t i = 0; f && i < n; i++) f[i] = i % whole < part ? (float)scale_of(o) : 1;
    return f;
}

/* What the layer `name` makes of the vectors of distances `at`: [heads, size, distances]; its bias times `by`. */
static struct wml_value *vectors(struct wml_nn *b, const struct wml_bert *p, const char *name, struct wml_value *at, double by)
{
    const struct own *o = p->own;
    const int64_t n = p->heads * o->head;
    wml_nn_enter_layer(b, "Linear", "%s", name);
    struct wml_value *w = wml_nn_reshaped(b, wml_nn_need(b, "weight", WML_DIMS(n, p->hidden)), WML_DIMS(p->heads, o->head, p->hidden));
    const float *bias = wml_nn_has(b, "bias") ? wml_nn_read(b, wml_nn_need(b, "bias", WML_DIMS(n))) : NULL;
    float *column = bias ? wml_nn_room(b, "bias", sizeof *column, WML_DIMS(n)) : NULL;
    for (int64_t i = 0; column && i < n; i++) column[i] = (float)(bias[i] * by);
    struct wml_value *v = wml_nn_matmul(b, w, at);
    if (column && by != 0) v = wml_nn_add(b, v, wml_nn_const(b, "bias.column", WML_F32, WML_DIMS(p->heads, o->head, 1), column));
    wml_nn_leave(b);
    return v;
}

/* q is scaled; k is not, but the vectors that it meets are. A bias of those that q meets would be the same for every key. */
static struct wml_value *add_distances(struct wml_nn *b, const struct wml_bert *p, struct wml_value *scores, struct wml_value *q, struct wml_value *k,
                                       struct wml_value *ids)
{
    const struct own *o = p->own;
    if (o->c2p) {
        struct wml_value *v = vectors(b, p, !o->v2 ? "pos_proj" : o->shared ? "key_proj" : "pos_key_proj", o->to_key, 0);
        scores = wml_nn_add(b, scores, wml_nn_to_keys(b, wml_nn_matmul(b, q, v), ids));
    }
    if (!o->p2c) return scores;
    struct wml_value *v = vectors(b, p, !o->v2 ? "pos_q_proj" : o->shared ? "query_proj" : "pos_query_proj", o->to_query, scale_of(o));
    return wml_nn_add(b, scores, wml_nn_transpose(b, wml_nn_to_keys(b, wml_nn_matmul(b, k, v), ids), "0132"));
}

static struct wml_value *between_heads(struct wml_nn *b, const struct wml_bert *p, const char *name, struct wml_value *x)
{
    const struct own *o = p->own;
    if (!o->talking) return x;
    return wml_nn_transpose(b, wml_nn_linear(b, wml_nn_transpose(b, x, "0231"), name, p->heads), "0312");
}

static struct wml_value *head_bias(struct wml_nn *b, const struct wml_bert *p, const char *name, double by)
{
    const struct own *o = p->own;
    const float *stored = wml_nn_read(b, wml_nn_need(b, name, WML_DIMS(p->heads * o->head)));
    float *bias = wml_nn_room(b, name, sizeof *bias, WML_DIMS(p->heads * o->head));
    if (!stored || !bias) return NULL;
    for (int64_t i = 0; i < p->heads * o->head; i++) bias[i] = (float)(stored[i] * by);
    return wml_nn_const(b, name, WML_F32, WML_DIMS(p->heads, 1, o->head), bias);
}

/* One layer makes all three, head by head; queries are scaled. */
static void split_packed(struct wml_nn *b, const struct wml_bert *p, struct wml_value *x, struct wml_value **qkv)
{
    const struct own *o = p->own;
    const float *scale = scales(b, o, 3 * p->hidden, o->head, 3 * o->head);
    wml_nn_split(b, wml_nn_split_heads(b, wml_nn_linear_scaled(b, x, "in_proj", 3 * p->hidden, scale), p->heads), -1, 3, qkv);
    qkv[0] = wml_nn_add(b, qkv[0], head_bias(b, p, "q_bias", scale ? scale[0] : 1));
    qkv[2] = wml_nn_add(b, qkv[2], head_bias(b, p, "v_bias", 1));
}

static struct wml_value *self(struct wml_nn *b, const struct wml_bert *p, struct wml_value *x, const struct wml_text *t)
{
    const struct own *o = p->own;
    static const char *const name[3] = {"query_proj", "key_proj", "value_proj"};
    struct wml_value *qkv[3];
    const int64_t all = p->heads * o->head;
    for (size_t i = 0; o->v2 && i < 3; i++)
        qkv[i] = wml_nn_split_heads(b, i ? wml_nn_linear(b, x, name[i], all) : wml_nn_linear_scaled(b, x, name[i], all, scales(b, o, all, 1, 1)), p->heads);
    if (!o->v2) split_packed(b, p, x, qkv);
    struct wml_value *scores = wml_nn_matmul(b, qkv[0], wml_nn_transpose(b, qkv[1], "0132"));
    if (o->relative) scores = add_distances(b, p, scores, qkv[0], qkv[1], t->ids);
    scores = wml_nn_add(b, between_heads(b, p, "head_logits_proj", scores), o->mask);
    struct wml_value *w = between_heads(b, p, "head_weights_proj", wml_nn_softmax(b, scores, -1));
    return wml_nn_join_heads(b, wml_nn_matmul(b, w, qkv[2]));
}

/* ------------------------------------------------------------------- body */

static struct wml_value *embeddings(struct wml_nn *b, const struct wml_bert *p, const struct wml_text *t, struct own *o)
{
    wml_nn_enter(b, "*Embeddings", "embeddings");
    struct wml_value *x = wml_bert_embedded(b, p, t);
    if (p->embedding != p->hidden) x = wml_nn_linear(b, x, "embed_proj", p->hidden);
    x = wml_nn_layer_norm(b, x, "LayerNorm", p->eps);
    o->alive = wml_nn_cast(b, wml_nn_unsqueeze(b, t->mask, WML_DIMS(2)), WML_F32);
    x = wml_nn_mul(b, x, o->alive);
    wml_nn_leave(b);
    return x;
}

/* Padding neither attends nor is attended to: [batch, 1, n, n]. */
static struct wml_value *square_mask(struct wml_nn *b, struct wml_value *alive)
{
    struct wml_value *column = wml_nn_unsqueeze(b, alive, WML_DIMS(1));
    struct wml_value *both = wml_nn_mul(b, column, wml_nn_transpose(b, column, "0132"));
    return wml_nn_scale(b, wml_nn_sub(b, wml_nn_float(b, 1), both), WML_NN_MASKED);
}

/* The table's rows after their norm. */
static const float *normed(struct wml_nn *b, const struct wml_weight *table, double eps)
{
    const int64_t rows = table->dims[0], n = table->dims[1];
    wml_nn_enter_layer(b, "LayerNorm", "LayerNorm");
    const float *scale = wml_nn_read(b, wml_nn_need(b, "weight", WML_DIMS(n)));
    const float *bias = wml_nn_has(b, "bias") ? wml_nn_read(b, wml_nn_need(b, "bias", WML_DIMS(n))) : NULL;
    wml_nn_leave(b);
    const float *in = wml_nn_read(b, table);
    float *out = wml_nn_room(b, "relative positions", sizeof *out, WML_DIMS(rows, n));
    if (!scale || !in || !out) return NULL;
    for (int64_t r = 0; r < rows; r++) {
        double mean = 0, square = 0;
        for (int64_t i = 0; i < n; i++) mean += in[r * n + i] / (double)n;
        for (int64_t i = 0; i < n; i++) square += (in[r * n + i] - mean) * (in[r * n + i] - mean) / (double)n;
        for (int64_t i = 0; i < n; i++)
            out[r * n + i] = (float)((in[r * n + i] - mean) / sqrt(square + eps) * scale[i] + (bias ? bias[i] : 0));
    }
    return out;
}

/* Rows of the table, after their norm, times `by`, as columns for the distances: [hidden, distances]. */
static struct wml_value *columns(struct wml_nn *b, const struct wml_bert *p, const struct wml_weight *w, struct wml_value *ids,
                                 int64_t (*row)(const void *own, int64_t distance), double by)
{
    const struct own *o = p->own;
    const int64_t n = wml_nn_axis(ids, 1).size, longest = WML_MAX(p->positions, 2048); /* texts may be longer than a table of positions */
    if (!o->norm) return wml_nn_distance_vectors(b, w, ids, longest, row, o, by);
    if (n >= 0) return wml_nn_distance_columns(b, normed(b, w, p->eps), p->hidden, n, row, o, by);
    struct wml_value *table = wml_nn_const(b, "rel_embeddings.normed", WML_F32, 2, w->dims, normed(b, w, p->eps));
    return wml_nn_scale(b, wml_nn_transpose(b, wml_nn_gather(b, table, wml_nn_distance_rows(b, ids, longest, row, o), 0), "10"), by);
}

static void distances(struct wml_nn *b, const struct wml_bert *p, const struct wml_text *t, struct own *o)
{
    const struct wml_weight *w = o->relative ? wml_nn_need(b, "rel_embeddings.weight", WML_DIMS(2 * o->span, p->hidden)) : NULL;
    if (w && o->c2p) o->to_key = columns(b, p, w, t->ids, row_to_key, 1);
    if (w && o->p2c) o->to_query = columns(b, p, w, t->ids, row_to_query, scale_of(o));
}

/* A convolution beside the first layer: near words, without attention. */
static struct wml_value *conv_layer(struct wml_family_job *j, const struct wml_bert *p, struct wml_value *words, struct wml_value *x)
{
    struct wml_nn *b = j->nn;
    const struct own *o = p->own;
    const int64_t kernel = wml_cfg_count(j, j->cfg, "conv_kernel_size", 0);
    if (!o->v2 || !kernel) return x;
    if (kernel % 2 == 0) return wml_nn_fail(b, WML_E_UNSUPPORTED, "config.json: conv_kernel_size %lld is even", (long long)kernel);
    wml_nn_enter(b, "ConvLayer", "conv");
    const struct wml_nn_window w = {.pad = kernel / 2, .groups = wml_cfg_size(j, j->cfg, "conv_groups", 1)};
    struct wml_value *y = wml_nn_conv(b, wml_nn_transpose(b, words, "021"), "conv", p->hidden, &w);
    y = wml_nn_mul(b, wml_nn_transpose(b, y, "021"), o->alive);
    y = wml_nn_act(b, y, wml_cfg_str(j, j->cfg, "conv_act", "tanh"), "conv_act");
    y = wml_nn_mul(b, wml_nn_layer_norm(b, wml_nn_add(b, x, y), "LayerNorm", p->eps), o->alive);
    wml_nn_leave(b);
    return y;
}

static struct wml_value *body(struct wml_family_job *j, const struct wml_bert *params_, const struct wml_text *t)
{
    struct wml_nn *b = j->nn;
    struct own o = *(const struct own *)params_->own;
    struct wml_bert p = *params_;
    p.own = &o;
    p.self = self;
    p.self_class = "DisentangledSelfAttention";
    struct wml_value *words = embeddings(b, &p, t, &o), *x = words;
    wml_nn_enter(b, "*Encoder", "encoder");
    o.mask = square_mask(b, o.alive);
    distances(b, &p, t, &o);
    for (size_t i = 0; i < (size_t)p.layers && wml_nn_ok(b); i++) {
        x = wml_bert_layer(b, &p, i, x, t);
        if (i == 0) x = conv_layer(j, &p, words, x);
    }
    wml_nn_leave(b);
    return x;
}

/* ------------------------------------------------------------------- heads */

static struct wml_value *pooled(struct wml_family_job *j, const struct wml_bert *p, struct wml_value *x)
{
    wml_nn_enter(j->nn, "ContextPooler", "pooler");
    x = wml_nn_linear(j->nn, wml_nn_pick(j->nn, x, 1, 0), "dense", p->hidden);
    x = wml_nn_act(j->nn, x, wml_cfg_str(j, j->cfg, "pooler_hidden_act", "gelu"), "pooler_hidden_act");
    wml_nn_leave(j->nn);
    return x;
}

static struct wml_value *predict(struct wml_family_job *j, const struct wml_bert *p, struct wml_value *x)
{
    struct wml_nn *b = j->nn;
    const bool v2 = ((const struct own *)p->own)->v2, legacy = wml_json_get_bool(j->cfg, "legacy", true);
    wml_nn_enter(b, !legacy ? "*OnlyMLMHead" : v2 ? "LegacyDebertaV2OnlyMLMHead" : "LegacyDebertaOnlyMLMHead", "%s", legacy ? "cls" : "lm_predictions");
    wml_nn_enter(b, !legacy ? "*LMPredictionHead" : v2 ? "LegacyDebertaV2LMPredictionHead" : "LegacyDebertaLMPredictionHead",
                 "%s", legacy ? "predictions" : "lm_head");
    if (legacy)
        wml_nn_enter(b, v2 ? "LegacyDebertaV2PredictionHeadTransform" : "LegacyDebertaPredictionHeadTransform", "transform");
    x = wml_nn_act(b, wml_nn_linear(b, x, "dense", legacy ? p->embedding : p->hidden), p->act, "hidden_act");
    x = wml_nn_layer_norm(b, x, "LayerNorm", p->eps);
    if (legacy) wml_nn_leave(b);
    x = wml_text_decode(j, x, "decoder", "embeddings.word_embeddings", p->vocab);
    wml_nn_leave(b);
    wml_nn_leave(b);
    return x;
}

static const struct wml_text_model model = {.params = params, .body = body, .pooled = pooled, .predict = predict};

static void choice(struct wml_family_job *j)
{
    if (strcmp(j->type->model_type, "deberta") != 0) wml_text_choice(j);
    else wml_nn_fail(j->nn, WML_E_USAGE, "deberta has no model for the task 'multiple-choice'; deberta-v2 has");
}

static const struct wml_family_type types[] = {
    {"deberta", "Deberta", "deberta"}, {"deberta-v2", "DebertaV2", "deberta"}, {NULL, NULL, NULL}};
static const struct wml_family_task tasks[] = {
    {"feature-extraction", "Model", wml_text_features},
    {"fill-mask", "ForMaskedLM", wml_text_fill_mask},
    {"text-classification", "ForSequenceClassification", wml_text_classes},
    {"token-classification", "ForTokenClassification", wml_text_token_classes},
    {"question-answering", "ForQuestionAnswering", wml_text_question},
    {"multiple-choice", "ForMultipleChoice", choice},
    {NULL, NULL, NULL},
};
const struct wml_family wml_family_deberta = {.name = "deberta", .type = types, .task = tasks, .own = &model};
