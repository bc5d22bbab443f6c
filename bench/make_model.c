/* bench/make_model.c - writes models of real size with random weights, so that timings need nothing
 * from outside: `make_model resnet50|bert|chain OUT [N]`.
 *
 * resnet50: Conv + BatchNormalization + Relu bottlenecks, 25.6 million parameters, static 1x3x224x224.
 * bert: twelve encoder layers as a PyTorch export writes them (decomposed LayerNormalization and Gelu,
 * Shape-Gather chains, Constant nodes), 110 million parameters, dynamic batch and sequence.
 * chain: N small nodes, to see how time grows with the number of nodes. */
#include <math.h>

#include "base/num.h"
#include "base/rng.h"
#include "graph/edit.h"
#include "onnx/onnx.h"

struct maker {
    struct wml_model *m;
    struct wml_graph *g;
    struct wml_rng rng;
    int serial;
    bool constants_as_nodes;
};

static WML_NORETURN void give_up(const struct wml_err *err)
{
    fprintf(stderr, "make_model: %s\n", err->msg);
    exit(1);
}

static struct wml_str name(struct maker *k, const char *stem)
{
    return wml_arena_fmt(&k->m->arena, "%s_%d", stem, k->serial++);
}

/* A float tensor of normal numbers times scale, plus offset. */
static struct wml_value *weight(struct maker *k, const char *stem, size_t rank, const int64_t *dims,
                                float scale, float offset)
{
    struct wml_err err = {0};
    size_t n = 1;
    for (size_t i = 0; i < rank; i++) n *= (size_t)dims[i];
    float *data = malloc(n * sizeof *data);
    if (!data) abort();
    for (size_t i = 0; i < n; i++) {
        /* uniform with the deviation of a normal: much faster, and nobody looks at the values */
        double u = (double)(int64_t)wml_rng_u64(&k->rng) * 0x1p-63;
        data[i] = offset + scale * (float)u * 1.7320508f;
    }
    struct wml_tensor *t = wml_tensor_own(k->m, WML_F32, rank, dims, data, n * sizeof *data, &err);
    if (!t) give_up(&err);
    return wml_graph_add_init(k->g, name(k, stem), t);
}

static struct wml_value *op(struct maker *k, const char *type, struct wml_value *a,
                            struct wml_value *b)
{
    struct wml_node *n = wml_graph_append(k->g, "", type);
    n->name = name(k, type);
    wml_node_add_input(n, a);
    if (b) wml_node_add_input(n, b);
    return wml_node_add_output(n, name(k, "v"));
}

static struct wml_value *constant(struct maker *k, struct wml_tensor *t)
{
    if (!k->constants_as_nodes) return wml_graph_add_init(k->g, name(k, "c"), t);
    struct wml_node *n = wml_graph_append(k->g, "", "Constant");
    n->name = name(k, "Constant");
    wml_attr_set_tensor(n, "value", t);
    return wml_node_add_output(n, name(k, "c"));
}

static struct wml_value *scalar(struct maker *k, float v)
{
    return constant(k, wml_tensor_f32(k->m, v));
}

static struct wml_value *ints(struct maker *k, size_t n, const int64_t *v)
{
    return constant(k, wml_tensor_i64s(k->m, n, v));
}

/* --- ResNet-50 --- */

static struct wml_value *conv_bn(struct maker *k, struct wml_value *x, int64_t in, int64_t out,
                                 int64_t kernel, int64_t stride, bool relu)
{
    float scale = 1.0f / sqrtf((float)(in * kernel * kernel));
    struct wml_node *c = wml_graph_append(k->g, "", "Conv");
    c->name = name(k, "Conv");
    wml_node_add_input(c, x);
    wml_node_add_input(c, weight(k, "w", 4, (int64_t[]){out, in, kernel, kernel}, scale, 0));
    int64_t pad = kernel / 2;
    wml_attr_set_ints(c, "kernel_shape", 2, (int64_t[]){kernel, kernel});
    wml_attr_set_ints(c, "strides", 2, (int64_t[]){stride, stride});
    wml_attr_set_ints(c, "pads", 4, (int64_t[]){pad, pad, pad, pad});
    struct wml_node *bn = wml_graph_append(k->g, "", "BatchNormalization");
    bn->name = name(k, "BatchNormalization");
    wml_node_add_input(bn, wml_node_add_output(c, name(k, "v")));
    wml_node_add_input(bn, weight(k, "scale", 1, &out, 0.1f, 1));
    wml_node_add_input(bn, weight(k, "bias", 1, &out, 0.1f, 0));
    wml_node_add_input(bn, weight(k, "mean", 1, &out, 0.1f, 0));
    wml_node_add_input(bn, weight(k, "var", 1, &out, 0.1f, 1));
    wml_attr_set_float(bn, "epsilon", 1e-5f);
    struct wml_value *y = wml_node_add_output(bn, name(k, "v"));
    return relu ? op(k, "Relu", y, NULL) : y;
}

static struct wml_value *bottleneck(struct maker *k, struct wml_value *x, int64_t in, int64_t mid,
                                    int64_t stride)
{
    struct wml_value *skip = in == mid * 4 && stride == 1
                                 ? x
                                 : conv_bn(k, x, in, mid * 4, 1, stride, false);
    struct wml_value *y = conv_bn(k, x, in, mid, 1, 1, true);
    y = conv_bn(k, y, mid, mid, 3, stride, true);
    y = conv_bn(k, y, mid, mid * 4, 1, 1, false);
    return op(k, "Relu", op(k, "Add", y, skip), NULL);
}

static void make_resnet50(struct maker *k)
{
    struct wml_value *x = wml_graph_add_input(
        k->g, WML_STR("pixel_values"),
        wml_type_static(k->m, WML_F32, 4, (int64_t[]){1, 3, 224, 224}));
    x = conv_bn(k, x, 3, 64, 7, 2, true);
    struct wml_node *pool = wml_graph_append(k->g, "", "MaxPool");
    pool->name = name(k, "MaxPool");
    wml_node_add_input(pool, x);
    wml_attr_set_ints(pool, "kernel_shape", 2, (int64_t[]){3, 3});
    wml_attr_set_ints(pool, "strides", 2, (int64_t[]){2, 2});
    wml_attr_set_ints(pool, "pads", 4, (int64_t[]){1, 1, 1, 1});
    x = wml_node_add_output(pool, name(k, "v"));
    static const int64_t blocks[4] = {3, 4, 6, 3};
    int64_t in = 64;
    for (int stage = 0; stage < 4; stage++) {
        int64_t mid = (int64_t)64 << stage;
        for (int64_t i = 0; i < blocks[stage]; i++) {
            x = bottleneck(k, x, in, mid, stage && i == 0 ? 2 : 1);
            in = mid * 4;
        }
    }
    x = op(k, "GlobalAveragePool", x, NULL);
    x = op(k, "Reshape", x, ints(k, 2, (int64_t[]){1, 2048}));
    x = op(k, "MatMul", x, weight(k, "fc", 2, (int64_t[]){2048, 1000}, 0.02f, 0));
    x = op(k, "Add", x, weight(k, "fc_bias", 1, (int64_t[]){1000}, 0.02f, 0));
    wml_value_rename(x, WML_STR("logits"));
    wml_value_set_type(x, wml_type_static(k->m, WML_F32, 2, (int64_t[]){1, 1000}));
    wml_graph_add_output(k->g, x);
}

/* --- BERT-base --- */

enum { HIDDEN = 768, HEADS = 12, HEAD = 64, INNER = 3072, VOCAB = 30522, POSITIONS = 512 };

static struct wml_value *linear(struct maker *k, struct wml_value *x, int64_t in, int64_t out)
{
    struct wml_value *w = weight(k, "w", 2, (int64_t[]){in, out}, 0.02f, 0);
    return op(k, "Add", weight(k, "b", 1, &out, 0.02f, 0), op(k, "MatMul", x, w));
}

static struct wml_value *mean(struct maker *k, struct wml_value *x)
{
    struct wml_value *y = op(k, "ReduceMean", x, NULL);
    wml_attr_set_ints(y->def, "axes", 1, (int64_t[]){-1});
    return y;
}

static struct wml_value *layer_norm(struct maker *k, struct wml_value *x)
{
    int64_t h = HIDDEN;
    struct wml_value *d = op(k, "Sub", x, mean(k, x));
    struct wml_value *v = mean(k, op(k, "Pow", d, scalar(k, 2)));
    d = op(k, "Div", d, op(k, "Sqrt", op(k, "Add", v, scalar(k, 1e-12f)), NULL));
    d = op(k, "Mul", d, weight(k, "gamma", 1, &h, 0.1f, 1));
    return op(k, "Add", d, weight(k, "beta", 1, &h, 0.1f, 0));
}

static struct wml_value *gelu(struct maker *k, struct wml_value *x)
{
    struct wml_value *e = op(k, "Erf", op(k, "Div", x, scalar(k, 1.41421356f)), NULL);
    e = op(k, "Mul", x, op(k, "Add", e, scalar(k, 1)));
    return op(k, "Mul", e, scalar(k, 0.5f));
}

static struct wml_value *gather_dim(struct maker *k, struct wml_value *x, int64_t axis)
{
    struct wml_value *shape = op(k, "Shape", x, NULL);
    return op(k, "Gather", shape, ints(k, 1, &axis));
}

/* [b, s, HIDDEN] to [b, HEADS, s, HEAD] (or its transpose), shapes taken from x as PyTorch does. */
static struct wml_value *split_heads(struct maker *k, struct wml_value *x, bool transposed)
{
    struct wml_value *part[4] = {gather_dim(k, x, 0), gather_dim(k, x, 1),
                                 ints(k, 1, (int64_t[]){HEADS}), ints(k, 1, (int64_t[]){HEAD})};
    struct wml_node *cat = wml_graph_append(k->g, "", "Concat");
    cat->name = name(k, "Concat");
    wml_attr_set_int(cat, "axis", 0);
    for (int i = 0; i < 4; i++) wml_node_add_input(cat, part[i]);
    struct wml_value *y = op(k, "Reshape", x, wml_node_add_output(cat, name(k, "v")));
    y = op(k, "Transpose", y, NULL);
    if (transposed)
        wml_attr_set_ints(y->def, "perm", 4, (int64_t[]){0, 2, 3, 1});
    else
        wml_attr_set_ints(y->def, "perm", 4, (int64_t[]){0, 2, 1, 3});
    return y;
}

static struct wml_value *attention(struct maker *k, struct wml_value *x, struct wml_value *mask)
{
    struct wml_value *q = split_heads(k, linear(k, x, HIDDEN, HIDDEN), false);
    struct wml_value *key = split_heads(k, linear(k, x, HIDDEN, HIDDEN), true);
    struct wml_value *v = split_heads(k, linear(k, x, HIDDEN, HIDDEN), false);
    struct wml_value *a = op(k, "Div", op(k, "MatMul", q, key), scalar(k, 8));
    a = op(k, "Softmax", op(k, "Add", a, mask), NULL);
    wml_attr_set_int(a->def, "axis", -1);
    a = op(k, "Transpose", op(k, "MatMul", a, v), NULL);
    wml_attr_set_ints(a->def, "perm", 4, (int64_t[]){0, 2, 1, 3});
    a = op(k, "Reshape", a, ints(k, 3, (int64_t[]){0, 0, HIDDEN}));
    return linear(k, a, HIDDEN, HIDDEN);
}

static struct wml_value *attention_mask(struct maker *k, struct wml_value *mask)
{
    struct wml_value *m = op(k, "Unsqueeze", mask, ints(k, 2, (int64_t[]){1, 2}));
    m = op(k, "Cast", m, NULL);
    wml_attr_set_int(m->def, "to", WML_F32);
    return op(k, "Mul", op(k, "Sub", scalar(k, 1), m), scalar(k, -10000));
}

static struct wml_value *embeddings(struct maker *k, struct wml_value *ids)
{
    struct wml_value *x =
        op(k, "Gather", weight(k, "word", 2, (int64_t[]){VOCAB, HIDDEN}, 0.02f, 0), ids);
    struct wml_value *position = weight(k, "position", 2, (int64_t[]){POSITIONS, HIDDEN}, 0.02f, 0);
    struct wml_value *part[4] = {position, ints(k, 1, (int64_t[]){0}), gather_dim(k, ids, 1),
                                 ints(k, 1, (int64_t[]){0})};
    struct wml_node *slice = wml_graph_append(k->g, "", "Slice");
    slice->name = name(k, "Slice");
    for (int i = 0; i < 4; i++) wml_node_add_input(slice, part[i]);
    x = op(k, "Add", x, wml_node_add_output(slice, name(k, "v")));
    x = op(k, "Add", x, weight(k, "type", 1, (int64_t[]){HIDDEN}, 0.02f, 0));
    return layer_norm(k, x);
}

static void make_bert(struct maker *k)
{
    k->constants_as_nodes = true;
    struct wml_axis axes[2] = {{-1, WML_STR("batch")}, {-1, WML_STR("sequence")}};
    struct wml_type *t = wml_type_tensor(k->m, WML_I64, 2, axes);
    struct wml_value *ids = wml_graph_add_input(k->g, WML_STR("input_ids"), t);
    struct wml_value *mask =
        wml_graph_add_input(k->g, WML_STR("attention_mask"), wml_type_copy(k->m, t));
    struct wml_value *bias = attention_mask(k, mask);
    struct wml_value *x = embeddings(k, ids);
    for (int layer = 0; layer < 12; layer++) {
        x = layer_norm(k, op(k, "Add", x, attention(k, x, bias)));
        struct wml_value *h = linear(k, gelu(k, linear(k, x, HIDDEN, INNER)), INNER, HIDDEN);
        x = layer_norm(k, op(k, "Add", x, h));
    }
    wml_value_rename(x, WML_STR("last_hidden_state"));
    struct wml_axis out[3] = {axes[0], axes[1], {HIDDEN, {0}}};
    wml_value_set_type(x, wml_type_tensor(k->m, WML_F32, 3, out));
    wml_graph_add_output(k->g, x);
}

/* --- a chain of n nodes: work for passes, no weights --- */

static void make_chain(struct maker *k, int64_t n)
{
    struct wml_type *t = wml_type_static(k->m, WML_F32, 2, (int64_t[]){1, 8});
    struct wml_value *x = wml_graph_add_input(k->g, WML_STR("x"), t);
    static const char *const ops[] = {"Relu", "Neg", "Identity", "Abs", "Sigmoid"};
    for (int64_t i = 0; i < n; i++) x = op(k, ops[i % 5], x, NULL);
    wml_value_rename(x, WML_STR("y"));
    wml_value_set_type(x, wml_type_copy(k->m, t));
    wml_graph_add_output(k->g, x);
}

int main(int argc, char **argv)
{
    struct wml_err err = {0};
    int64_t n = 100000;
    const char *kind = argc > 2 ? argv[1] : "";
    struct maker k = {.m = wml_model_new(), .rng = {7}};
    k.g = k.m->graph;
    k.g->name = WML_STR("bench");
    k.m->producer_name = WML_STR("winml bench");
    k.m->ir_version = 8;
    wml_model_set_opset(k.m, "", 17);
    if (strcmp(kind, "resnet50") == 0)
        make_resnet50(&k);
    else if (strcmp(kind, "bert") == 0)
        make_bert(&k);
    else if (strcmp(kind, "chain") == 0 && (argc < 4 || wml_parse_i64(wml_str(argv[3]), &n)))
        make_chain(&k, n);
    else {
        fprintf(stderr, "usage: make_model resnet50|bert|chain OUT [NODES]\n");
        return 2;
    }
    struct wml_onnx_save_opts opts = {.external = WML_EXTERNAL_NEVER};
    if (!wml_onnx_save(k.m, argv[2], &opts, NULL, &err)) give_up(&err);
    wml_model_free(k.m);
    return 0;
}
