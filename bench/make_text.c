/* bench/make_text.c - BERT encoders with a dynamic batch and sequence, and the blocks that they share with ViT,
 * in the two forms that PyTorch's exporter wrote: of version 1 (all normalisations written out, a mask of
 * numbers) and of version 2 (scaled_dot_product_attention, a mask of booleans). */
#include <float.h>
#include <math.h>

#include "maker.h"

enum { VOCAB = 30522, POSITIONS = 512 };

/* --- blocks --- */

struct wml_value *maker_linear(struct maker *k, struct wml_value *x, int64_t in, int64_t out)
{
    struct wml_value *w = maker_weight(k, "w", 2, (int64_t[]){in, out}, 0.02f, 0);
    struct wml_value *b = maker_weight(k, "b", 1, &out, 0.02f, 0);
    return MAKER_OP(k, "Add", b, MAKER_OP(k, "MatMul", x, w));
}

struct wml_value *maker_gemm(struct maker *k, struct wml_value *x, int64_t in, int64_t out)
{
    x = MAKER_OP(k, "Gemm", x, maker_weight(k, "w", 2, (int64_t[]){out, in}, 0.02f, 0),
                 maker_weight(k, "b", 1, &out, 0.02f, 0));
    wml_attr_set_int(x->def, "transB", 1);
    return x;
}

static struct wml_value *mean(struct maker *k, struct wml_value *x)
{
    struct wml_value *y = MAKER_OP(k, "ReduceMean", x);
    wml_attr_set_ints(y->def, "axes", 1, (int64_t[]){-1});
    return y;
}

struct wml_value *maker_layer_norm(struct maker *k, struct wml_value *x)
{
    struct wml_value *gamma = maker_weight(k, "gamma", 1, &k->hidden, 0.1f, 1);
    struct wml_value *beta = maker_weight(k, "beta", 1, &k->hidden, 0.1f, 0);
    if (k->torch2) {
        struct wml_value *y = MAKER_OP(k, "LayerNormalization", x, gamma, beta);
        wml_attr_set_int(y->def, "axis", -1);
        wml_attr_set_float(y->def, "epsilon", 1e-12f);
        return y;
    }
    struct wml_value *d = MAKER_OP(k, "Sub", x, mean(k, x));
    struct wml_value *v = mean(k, MAKER_OP(k, "Pow", d, maker_scalar(k, 2)));
    v = MAKER_OP(k, "Sqrt", MAKER_OP(k, "Add", v, maker_scalar(k, 1e-12f)));
    return MAKER_OP(k, "Add", MAKER_OP(k, "Mul", MAKER_OP(k, "Div", d, v), gamma), beta);
}

struct wml_value *maker_mlp(struct maker *k, struct wml_value *x)
{
    x = maker_linear(k, x, k->hidden, k->inner);
    struct wml_value *e = MAKER_OP(k, "Erf", MAKER_OP(k, "Div", x, maker_scalar(k, 1.41421356f)));
    e = MAKER_OP(k, "Mul", x, MAKER_OP(k, "Add", e, maker_scalar(k, 1)));
    return maker_linear(k, MAKER_OP(k, "Mul", e, maker_scalar(k, 0.5f)), k->inner, k->hidden);
}

struct wml_value *maker_dim(struct maker *k, struct wml_value *x, int64_t axis)
{
    struct wml_value *d = MAKER_OP(k, "Gather", MAKER_OP(k, "Shape", x), maker_index(k, axis));
    wml_attr_set_int(d->def, "axis", 0);
    return MAKER_OP(k, "Unsqueeze", d, maker_ints(k, 1, (int64_t[]){0}));
}

struct wml_value *maker_concat(struct maker *k, int64_t axis, size_t n, struct wml_value *const *part)
{
    struct wml_node *cat = wml_graph_append(k->g, "", "Concat");
    cat->name = maker_name(k, "Concat");
    wml_attr_set_int(cat, "axis", axis);
    for (size_t i = 0; i < n; i++) wml_node_add_input(cat, part[i]);
    return wml_node_add_output(cat, maker_name(k, "v"));
}

struct wml_value *maker_expand(struct maker *k, struct wml_value *x, struct wml_value *shape, int64_t rank)
{
    struct wml_err err = {0};
    int64_t one = 1;
    shape = MAKER_OP(k, "Reshape", shape, maker_ints(k, 1, (int64_t[]){-1}));
    struct wml_value *ones = MAKER_OP(k, "ConstantOfShape", maker_ints(k, 1, &rank));
    struct wml_tensor *t = wml_tensor_i64s(k->m, 1, &one);
    if (!t) maker_give_up(&err);
    wml_attr_set_tensor(ones->def, "value", t);
    struct wml_value *keep = MAKER_OP(k, "Equal", shape, MAKER_OP(k, "Mul", ones, maker_ints(k, 1, (int64_t[]){-1})));
    return MAKER_OP(k, "Expand", x, MAKER_OP(k, "Where", keep, ones, shape));
}

static struct wml_value *transpose4(struct maker *k, struct wml_value *x, bool last)
{
    struct wml_value *y = MAKER_OP(k, "Transpose", x);
    wml_attr_set_ints(y->def, "perm", 4, last ? (int64_t[]){0, 2, 3, 1} : (int64_t[]){0, 2, 1, 3});
    return y;
}

/* [b, s, hidden] to [b, heads, s, head] (or its transpose), sizes taken from `from`. */
static struct wml_value *split_heads(struct maker *k, struct wml_value *x, struct wml_value *from, bool transposed)
{
    int64_t head = k->hidden / k->heads;
    struct wml_value *part[4] = {maker_dim(k, from, 0), maker_dim(k, from, 1), maker_ints(k, 1, &k->heads),
                                 maker_ints(k, 1, &head)};
    return transpose4(k, MAKER_OP(k, "Reshape", x, maker_concat(k, 0, 4, part)), transposed);
}

static struct wml_value *softmax(struct maker *k, struct wml_value *x)
{
    x = MAKER_OP(k, "Softmax", x);
    wml_attr_set_int(x->def, "axis", -1);
    return x;
}

/* softmax(q kt / sqrt(head) + mask) v; the second form scales both factors, and keeps rows of nothing but mask from
 * becoming NaN */
static struct wml_value *scores(struct maker *k, struct wml_value *q, struct wml_value *kt, struct wml_value *v,
                                struct wml_value *mask)
{
    float scale = sqrtf((float)(k->hidden / k->heads));
    if (!k->torch2) {
        struct wml_value *a = MAKER_OP(k, "Div", MAKER_OP(k, "MatMul", q, kt), maker_scalar(k, scale));
        return MAKER_OP(k, "MatMul", softmax(k, mask ? MAKER_OP(k, "Add", a, mask) : a), v);
    }
    q = MAKER_OP(k, "Mul", q, maker_scalar(k, sqrtf(1 / scale)));
    struct wml_value *a = MAKER_OP(k, "MatMul", q, MAKER_OP(k, "Mul", kt, maker_scalar(k, sqrtf(1 / scale))));
    if (!mask) return MAKER_OP(k, "MatMul", softmax(k, a), v);
    mask = MAKER_OP(k, "Where", mask, maker_scalar(k, 0), maker_scalar(k, -INFINITY));
    a = softmax(k, MAKER_OP(k, "Add", a, mask));
    a = MAKER_OP(k, "Where", MAKER_OP(k, "IsNaN", a), maker_scalar(k, 0), a);
    return MAKER_OP(k, "MatMul", a, v);
}

struct wml_value *maker_attention(struct maker *k, struct wml_value *x, struct wml_value *mask)
{
    struct wml_value *q = maker_linear(k, x, k->hidden, k->hidden);
    struct wml_value *key = maker_linear(k, x, k->hidden, k->hidden);
    struct wml_value *v = maker_linear(k, x, k->hidden, k->hidden);
    key = split_heads(k, key, k->torch2 ? x : key, true);
    v = split_heads(k, v, k->torch2 ? x : v, false);
    struct wml_value *a = scores(k, split_heads(k, q, k->torch2 ? x : q, false), key, v, mask);
    a = transpose4(k, a, false);
    struct wml_value *from = k->torch2 ? x : a;
    struct wml_value *part[3] = {maker_dim(k, from, 0), maker_dim(k, from, 1), maker_ints(k, 1, &k->hidden)};
    a = MAKER_OP(k, "Reshape", a, maker_concat(k, 0, 3, part));
    return maker_linear(k, a, k->hidden, k->hidden);
}

/* --- BERT --- */

static struct wml_value *unsqueezed_mask(struct maker *k, struct wml_value *mask)
{
    mask = MAKER_OP(k, "Unsqueeze", mask, maker_ints(k, 1, (int64_t[]){1}));
    return MAKER_OP(k, "Unsqueeze", mask, maker_ints(k, 1, (int64_t[]){2}));
}

static struct wml_value *cast(struct maker *k, struct wml_value *x, enum wml_dtype to)
{
    x = MAKER_OP(k, "Cast", x);
    wml_attr_set_int(x->def, "to", to);
    return x;
}

static struct wml_value *attention_mask(struct maker *k, struct wml_value *mask, struct wml_value *ids)
{
    if (!k->torch2) {
        struct wml_value *m = cast(k, unsqueezed_mask(k, mask), WML_F32);
        return MAKER_OP(k, "Mul", MAKER_OP(k, "Sub", maker_scalar(k, 1), m), maker_scalar(k, -FLT_MAX));
    }
    struct wml_value *part[4] = {maker_dim(k, ids, 0), maker_ints(k, 1, (int64_t[]){1}), maker_dim(k, ids, 1),
                                 maker_dim(k, mask, 1)};
    mask = unsqueezed_mask(k, cast(k, mask, WML_BOOL));
    return maker_expand(k, mask, maker_concat(k, 0, 4, part), 4);
}

static struct wml_value *position_ids(struct maker *k, struct wml_value *ids)
{
    struct wml_err err = {0};
    int64_t *data = malloc(POSITIONS * sizeof *data), dims[2] = {1, POSITIONS};
    if (!data) abort();
    for (int64_t i = 0; i < POSITIONS; i++) data[i] = i;
    struct wml_tensor *t = wml_tensor_own(k->m, WML_I64, 2, dims, data, POSITIONS * sizeof *data, &err);
    if (!t) maker_give_up(&err);
    struct wml_value *all = wml_graph_add_init(k->g, maker_name(k, "position_ids"), t);
    struct wml_value *end = maker_dim(k, ids, 1);
    return MAKER_OP(k, "Slice", all, maker_ints(k, 1, (int64_t[]){0}), end, maker_ints(k, 1, (int64_t[]){1}),
                    maker_ints(k, 1, (int64_t[]){1}));
}

static struct wml_value *embedding(struct maker *k, const char *stem, int64_t n, struct wml_value *ids)
{
    return MAKER_OP(k, "Gather", maker_weight(k, stem, 2, (int64_t[]){n, k->hidden}, 0.02f, 0), ids);
}

void make_bert(struct maker *k)
{
    struct wml_axis axes[3] = {{-1, WML_STR("batch")}, {-1, WML_STR("sequence")}, {k->hidden, {0}}};
    struct wml_value *in[3];
    static const char *const names[] = {"input_ids", "attention_mask", "token_type_ids"};
    for (int i = 0; i < 3; i++)
        in[i] = wml_graph_add_input(k->g, wml_str(names[i]), wml_type_tensor(k->m, WML_I64, 2, axes));
    struct wml_value *mask = attention_mask(k, in[1], in[0]);
    struct wml_value *x = MAKER_OP(k, "Add", embedding(k, "word", VOCAB, in[0]), embedding(k, "type", 2, in[2]));
    x = MAKER_OP(k, "Add", x, embedding(k, "position", POSITIONS, position_ids(k, in[0])));
    x = maker_layer_norm(k, x);
    for (int64_t layer = 0; layer < k->layers; layer++) {
        x = maker_layer_norm(k, MAKER_OP(k, "Add", maker_attention(k, x, mask), x));
        x = maker_layer_norm(k, MAKER_OP(k, "Add", maker_mlp(k, x), x));
    }
    struct wml_value *first = MAKER_OP(k, "Gather", x, maker_index(k, 0));
    wml_attr_set_int(first->def, "axis", 1);
    first = MAKER_OP(k, "Tanh", maker_gemm(k, first, k->hidden, k->hidden));
    maker_output(k, x, "last_hidden_state", 3, axes);
    maker_output(k, first, "pooler_output", 2, (struct wml_axis[]){axes[0], axes[2]});
}
