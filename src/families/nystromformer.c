/* families/nystromformer.c - Nystroemformer (Xiong et al. 2021): BERT, whose attention goes through a few landmarks, means of
 * neighbouring words, and a convolution of the values beside it. */
#include <math.h>
#include "families/text_tasks.h"

enum { INVERSE_STEPS = 6 };

struct own {
    int64_t landmarks, length, kernel; /* kernel 0: no convolution */
};

static struct wml_bert params(struct wml_family_job *j)
{
    static const struct wml_bert defaults = {.hidden = 768, .layers = 12, .heads = 12, .inner = 3072, .vocab = 30000, .positions = 510,
                                             .segments = 2, .pad = -1, .first = 2, .eps = 1e-5, .act = {"gelu_new", 8}};
    const struct wml_json_val *c = j->cfg, *kernel = wml_json_get(c, "conv_kernel_size");
    struct wml_bert p = wml_bert_params(j, &defaults);
    p.positions += p.first;
    struct own *o = WML_NEW(&j->nn->m->arena, struct own);
    *o = (struct own){.landmarks = wml_cfg_size(j, c, "num_landmarks", 64), .length = wml_cfg_size(j, c, "segment_means_seq_len", 64)};
    o->kernel = kernel && wml_json_is_null(kernel) ? 0 : wml_cfg_size(j, c, "conv_kernel_size", 65);
    if (wml_json_get_bool(c, "inv_coeff_init_option", false))
        wml_nn_fail(j->nn, WML_E_UNSUPPORTED, "config.json: inv_coeff_init_option is not supported");
    p.own = o;
    return p;
}

/* Means of so many neighbouring rows that `landmarks` are left. */
static struct wml_value *means(struct wml_nn *b, const struct wml_bert *p, struct wml_value *x)
{
    const struct own *o = p->own;
    x = wml_nn_reshape(b, x, WML_DIMS(0, p->heads * o->landmarks, o->length / o->landmarks, p->hidden / p->heads));
    return wml_nn_reshape(b, wml_nn_reduce(b, "ReduceMean", x, WML_DIMS(2), false), WML_DIMS(0, p->heads, o->landmarks, p->hidden / p->heads));
}

/* The inverse of x, found in steps of third order (Razavi et al. 2014): z becomes z (13 - xz (15 - xz (7 - xz))) / 4. Here z
 * is kept times `by`, whose cube is 1 / 4: then the division is part of the three numbers. */
static struct wml_value *inverse(struct wml_nn *b, struct wml_value *x, int64_t n)
{
    float *one = wml_nn_room(b, "landmarks", sizeof *one, WML_DIMS(n, n));
    if (!one) return NULL;
    struct wml_value *eye[3]; /* times 7, 15, 13 and so many `by` as come with the product that is taken away */
    const double by = cbrt(0.25), times[3] = {7 * by, 15 * by * by, 13 * by * by * by};
    for (size_t k = 0; k < 3; k++) {
        for (int64_t i = 0; i < n; i++) one[i * n + i] = (float)times[k];
        eye[k] = wml_nn_const(b, "identity", WML_F32, WML_DIMS(n, n), one);
    }
    struct wml_value *most = wml_nn_reduce(b, "ReduceMax", wml_nn_reduce(b, "ReduceSum", x, WML_DIMS(-2), true), WML_DIMS(0, 1, 2, 3), true);
    struct wml_value *z = wml_nn_div(b, wml_nn_transpose(b, x, "0132"), wml_nn_scale(b, most, 1 / by));
    for (size_t i = 0; i < INVERSE_STEPS && wml_nn_ok(b); i++) {
        struct wml_value *xz = wml_nn_matmul(b, x, z), *y = wml_nn_sub(b, eye[0], xz);
        y = wml_nn_sub(b, eye[1], wml_nn_matmul(b, xz, y));
        y = wml_nn_sub(b, eye[2], wml_nn_matmul(b, xz, y));
        z = wml_nn_matmul(b, z, y);
    }
    return wml_nn_scale(b, z, 1 / by);
}

/* Over the words, one kernel per head: x [batch, heads, n, size]. */
static struct wml_value *conv(struct wml_nn *b, const struct wml_bert *p, struct wml_value *x)
{
    const int64_t k = ((const struct own *)p->own)->kernel, half = k / 2;
    if (!wml_nn_ok(b) || !x) return NULL;
    wml_nn_enter_layer(b, "Conv2d", "conv");
    const struct wml_nn_shape s = wml_nn_shape(x);
    struct wml_node *n = wml_nn_node(b, "", "Conv", WML_VALUES(x, wml_nn_param(b, "weight", WML_DIMS(p->heads, 1, k, 1))));
    if (n) {
        wml_attr_set_ints(n, "kernel_shape", 2, (const int64_t[]){k, 1});
        wml_attr_set_ints(n, "strides", 2, (const int64_t[]){1, 1});
        wml_attr_set_ints(n, "pads", 4, (const int64_t[]){half, 0, half, 0});
        wml_attr_set_int(n, "group", p->heads);
    }
    x = wml_nn_out(b, n, WML_F32, &s);
    wml_nn_leave(b);
    return x;
}

static struct wml_value *softmax_of(struct wml_nn *b, struct wml_value *q, struct wml_value *turned, struct wml_value *mask)
{
    struct wml_value *s = wml_nn_matmul(b, q, turned);
    return wml_nn_softmax(b, mask ? wml_nn_add(b, s, mask) : s, -1);
}

static bool lengths_fit(struct wml_nn *b, const struct wml_bert *p, const struct wml_text *t)
{
    const struct own *o = p->own;
    if (o->kernel && o->kernel % 2 == 0) wml_nn_fail(b, WML_E_UNSUPPORTED, "config.json: conv_kernel_size %lld is even", (long long)o->kernel);
    if (o->landmarks == o->length) return wml_nn_ok(b);
    const int64_t n = wml_nn_size(b, t->ids, 1, "the text of a model with landmarks");
    if (wml_nn_ok(b) && (o->length % o->landmarks || n != o->length)) {
        wml_nn_fail(b, WML_E_UNSUPPORTED, "config.json: %lld landmarks stand for texts of %lld tokens, not %lld", (long long)o->landmarks,
                    (long long)o->length, (long long)n);
        wml_nn_hint(b, "set sequence_length to segment_means_seq_len with --shape-config; num_landmarks must divide it");
    }
    return wml_nn_ok(b);
}

static struct wml_value *self(struct wml_nn *b, const struct wml_bert *p, struct wml_value *x, const struct wml_text *t)
{
    const struct own *o = p->own;
    static const char *const name[3] = {"query", "key", "value"};
    struct wml_value *qkv[3];
    if (!lengths_fit(b, p, t)) return NULL;
    for (size_t i = 0; i < 3; i++) {
        qkv[i] = i ? wml_nn_linear(b, x, name[i], p->hidden) : wml_nn_queries(b, x, name[i], p->hidden, p->heads);
        qkv[i] = wml_nn_split_heads(b, qkv[i], p->heads);
    }
    struct wml_value *q = qkv[0], *k = wml_nn_transpose(b, qkv[1], "0132"), *y;
    if (o->landmarks == o->length) {
        y = wml_nn_matmul(b, softmax_of(b, q, k, t->additive), qkv[2]);
    } else {
        struct wml_value *lq = means(b, p, q), *lk = wml_nn_transpose(b, means(b, p, qkv[1]), "0132");
        struct wml_value *w = wml_nn_matmul(b, softmax_of(b, q, lk, NULL), inverse(b, softmax_of(b, lq, lk, NULL), o->landmarks));
        y = wml_nn_matmul(b, w, wml_nn_matmul(b, softmax_of(b, lq, k, t->additive), qkv[2]));
    }
    if (o->kernel) y = wml_nn_add(b, y, conv(b, p, qkv[2]));
    return wml_nn_join_heads(b, y);
}

/* Landmarks fix how long a text is. */
static struct wml_text inputs(struct wml_family_job *j, const struct wml_bert *p, bool choices)
{
    const struct own *o = p->own;
    if (o->landmarks != o->length && !j->size[WML_SIZE_SEQUENCE]) j->size[WML_SIZE_SEQUENCE] = o->length;
    return wml_bert_inputs(j, p, choices);
}

static struct wml_value *body(struct wml_family_job *j, const struct wml_bert *p, const struct wml_text *t)
{
    struct wml_bert q = *p;
    q.self = self;
    return wml_bert_body(j, &q, t);
}

static struct wml_value *pooled(struct wml_family_job *j, const struct wml_bert *p, struct wml_value *x)
{
    return wml_nn_unary(j->nn, "Relu", wml_nn_linear(j->nn, wml_nn_pick(j->nn, x, 1, 0), "pre_classifier", p->hidden));
}

static const struct wml_text_model model = {
    .params = params, .inputs = inputs, .body = body, .pooled = pooled, .classify = wml_text_classify_act, .predict = wml_bert_predict,
};

static const struct wml_family_type types[] = {{"nystromformer", "Nystromformer", "nystromformer"}, {NULL, NULL, NULL}};
const struct wml_family wml_family_nystromformer = {.name = "nystromformer", .type = types, .task = wml_text_tasks, .own = &model};
