/* families/roformer.c - RoFormer (Su et al. 2021): BERT whose queries and keys turn with their position, in neighbouring pairs. */
#include <math.h>
#include "families/text_tasks.h"

struct own {
    bool values; /* turn as well */
    int64_t head;
    struct wml_value *cos, *sin; /* [n, hidden], the same for every head */
};

static struct wml_bert params(struct wml_family_job *j)
{
    static const struct wml_bert defaults = {.hidden = 768, .layers = 12, .heads = 12, .inner = 3072, .vocab = 50000,
                                             .positions = 1536, .segments = 2, .pad = -1, .eps = 1e-12};
    struct wml_bert p = wml_bert_params(j, &defaults);
    p.embedding = wml_cfg_size(j, j->cfg, "embedding_size", p.hidden);
    p.places = WML_BERT_NOWHERE;
    struct own *o = WML_NEW(&j->nn->m->arena, struct own);
    *o = (struct own){.values = wml_json_get_bool(j->cfg, "rotary_value", false), .head = p.hidden / p.heads};
    if (p.hidden % p.heads || o->head % 2)
        wml_nn_fail(j->nn, WML_E_FORMAT, "config.json: a width of %lld does not divide into %lld attention heads of an even size",
                    (long long)p.hidden, (long long)p.heads);
    p.own = o;
    return p;
}

/* Sine (or cosine) of pair i at a position: of the table that checkpoints have, sines before cosines, or computed. */
static double angle_part(const float *table, int64_t head, int64_t at, int64_t i, bool sine)
{
    if (table) return table[at * head + (sine ? 0 : head / 2) + i];
    const double a = (double)at / pow(10000, 2.0 * (double)i / (double)head);
    return sine ? sin(a) : cos(a);
}

/* One table [n, hidden] for all heads: pairs are neighbours, the sine of the first is negative. */
static struct wml_value *turns(struct wml_nn *b, const struct wml_bert *p, const float *stored, const struct wml_text *t, bool sine)
{
    const struct own *o = p->own;
    const struct wml_axis n = wml_nn_axis(t->ids, 1);
    if (n.size > p->positions)
        return wml_nn_fail(b, WML_E_UNSUPPORTED, "%lld tokens, but the model has %lld positions", (long long)n.size, (long long)p->positions);
    const int64_t rows = n.size >= 0 ? n.size : p->positions;
    float *out = wml_nn_room(b, "rotary positions", sizeof *out, WML_DIMS(rows, p->hidden));
    if (!out) return NULL;
    for (int64_t at = 0; at < rows; at++)
        for (int64_t i = 0; i < p->hidden; i++) {
            const double v = angle_part(stored, o->head, at, i % o->head / 2, sine);
            out[at * p->hidden + i] = (float)(sine && i % 2 == 0 ? -v : v);
        }
    struct wml_value *v = wml_nn_const(b, sine ? "rotary.sin" : "rotary.cos", WML_F32, WML_DIMS(rows, p->hidden), out);
    return n.size >= 0 ? v : wml_nn_slice_to(b, v, 0, wml_nn_extent(b, t->ids, 1), n);
}

/* x [batch, n, hidden]: x cos + (its pairs changed round) sin */
static struct wml_value *turned(struct wml_nn *b, const struct wml_bert *p, struct wml_value *x)
{
    const struct own *o = p->own;
    struct wml_value *half[2];
    wml_nn_split(b, wml_nn_reshape(b, x, WML_DIMS(0, 0, p->hidden / 2, 2)), -1, 2, half);
    struct wml_value *round = wml_nn_reshape(b, wml_nn_concat(b, -1, WML_VALUES(half[1], half[0])), WML_DIMS(0, 0, p->hidden));
    return wml_nn_add(b, wml_nn_mul(b, x, o->cos), wml_nn_mul(b, round, o->sin));
}

static struct wml_value *self(struct wml_nn *b, const struct wml_bert *p, struct wml_value *x, const struct wml_text *t)
{
    const struct own *o = p->own;
    struct wml_value *v = wml_nn_linear(b, x, "value", p->hidden);
    const struct wml_nn_attention a = {.q = turned(b, p, wml_nn_linear(b, x, "query", p->hidden)),
                                       .k = turned(b, p, wml_nn_linear(b, x, "key", p->hidden)),
                                       .v = o->values ? turned(b, p, v) : v, .heads = p->heads, .mask = t->additive};
    return wml_nn_attention(b, &a);
}

static struct wml_value *body(struct wml_family_job *j, const struct wml_bert *params_, const struct wml_text *t)
{
    struct wml_nn *b = j->nn;
    struct own o = *(const struct own *)params_->own;
    struct wml_bert p = *params_;
    p.self = self;
    p.own = &o;
    wml_nn_enter_layer(b, "Embedding", "encoder.embed_positions");
    const struct wml_weight *w = wml_nn_has(b, "weight") ? wml_nn_need(b, "weight", WML_DIMS(p.positions, o.head)) : NULL;
    const float *stored = wml_nn_read(b, w);
    o.cos = wml_nn_ok(b) ? turns(b, &p, stored, t, false) : NULL;
    o.sin = wml_nn_ok(b) ? turns(b, &p, stored, t, true) : NULL;
    wml_nn_leave(b);
    return wml_bert_projected_body(j, &p, t);
}

static const struct wml_text_model model = {
    .params = params, .body = body, .pooled = wml_text_summary_last, .classify = wml_text_classify_act, .predict = wml_bert_predict,
};

static const struct wml_family_type types[] = {{"roformer", "RoFormer", "roformer"}, {NULL, NULL, NULL}};
const struct wml_family wml_family_roformer = {.name = "roformer", .type = types, .task = wml_text_tasks, .own = &model};
