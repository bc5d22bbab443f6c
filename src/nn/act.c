/* nn/act.c - activations by the names that configs use. */
#include "nn/layers.h"

/* x (1 + erf(x / sqrt 2)) / 2: one operator since opset 20. */
struct wml_value *wml_nn_gelu(struct wml_nn *b, struct wml_value *x)
{
    if (b->failed || !x) return NULL;
    if (b->opset >= 20) return wml_nn_unary(b, "Gelu", x);
    struct wml_value *e = wml_nn_unary(b, "Erf", wml_nn_div(b, x, wml_nn_float(b, 1.4142135623730951)));
    return wml_nn_scale(b, wml_nn_mul(b, x, wml_nn_shift(b, e, 1)), 0.5);
}

/* x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2 */
static struct wml_value *gelu_tanh(struct wml_nn *b, struct wml_value *x)
{
    if (b->failed || !x) return NULL;
    if (b->opset >= 20) {
        const struct wml_nn_shape s = wml_nn_shape(x);
        struct wml_node *n = wml_nn_node(b, "", "Gelu", 1, &x);
        wml_attr_set_str(n, "approximate", WML_STR("tanh"));
        return wml_nn_out(b, n, WML_F32, &s);
    }
    struct wml_value *cube = wml_nn_scale(b, wml_nn_binary(b, "Pow", x, wml_nn_float(b, 3)), 0.044715);
    struct wml_value *t = wml_nn_unary(b, "Tanh", wml_nn_scale(b, wml_nn_add(b, x, cube), 0.7978845608028654));
    return wml_nn_mul(b, wml_nn_scale(b, x, 0.5), wml_nn_shift(b, t, 1));
}

static struct wml_value *silu(struct wml_nn *b, struct wml_value *x)
{
    return wml_nn_mul(b, x, wml_nn_unary(b, "Sigmoid", x));
}

static struct wml_value *quick_gelu(struct wml_nn *b, struct wml_value *x)
{
    return wml_nn_mul(b, x, wml_nn_unary(b, "Sigmoid", wml_nn_scale(b, x, 1.702)));
}

static struct wml_value *relu(struct wml_nn *b, struct wml_value *x) { return wml_nn_unary(b, "Relu", x); }
static struct wml_value *relu6(struct wml_nn *b, struct wml_value *x) { return wml_nn_clip(b, x, 0, 6); }
static struct wml_value *tanh_(struct wml_nn *b, struct wml_value *x) { return wml_nn_unary(b, "Tanh", x); }
static struct wml_value *sigmoid(struct wml_nn *b, struct wml_value *x) { return wml_nn_unary(b, "Sigmoid", x); }
static struct wml_value *hard_swish(struct wml_nn *b, struct wml_value *x) { return wml_nn_unary(b, "HardSwish", x); }
static struct wml_value *elu(struct wml_nn *b, struct wml_value *x) { return wml_nn_unary(b, "Elu", x); }
static struct wml_value *selu(struct wml_nn *b, struct wml_value *x) { return wml_nn_unary(b, "Selu", x); }
static struct wml_value *leaky(struct wml_nn *b, struct wml_value *x) { return wml_nn_unary(b, "LeakyRelu", x); }
static struct wml_value *same(struct wml_nn *b, struct wml_value *x) { (void)b; return x; }

static struct wml_value *mish(struct wml_nn *b, struct wml_value *x)
{
    return wml_nn_mul(b, x, wml_nn_unary(b, "Tanh", wml_nn_unary(b, "Softplus", x)));
}

/* relu6(x + 3) / 6 */
static struct wml_value *hard_sigmoid(struct wml_nn *b, struct wml_value *x)
{
    if (b->failed || !x) return NULL;
    const struct wml_nn_shape s = wml_nn_shape(x);
    struct wml_node *n = wml_nn_node(b, "", "HardSigmoid", 1, &x);
    wml_attr_set_float(n, "alpha", 1.0f / 6);
    return wml_nn_out(b, n, WML_F32, &s);
}

static struct wml_value *relu_squared(struct wml_nn *b, struct wml_value *x)
{
    x = wml_nn_unary(b, "Relu", x);
    return wml_nn_mul(b, x, x);
}

/* Gelu between -10 and 10: for models that were trained for small integers. */
static struct wml_value *gelu_10(struct wml_nn *b, struct wml_value *x)
{
    return wml_nn_clip(b, wml_nn_gelu(b, x), -10, 10);
}

/* How much of a normal distribution around sqrt(1/2) lies below x. */
static struct wml_value *laplace(struct wml_nn *b, struct wml_value *x)
{
    x = wml_nn_scale(b, wml_nn_shift(b, x, -0.707107), 1 / (0.282095 * 1.4142135623730951));
    return wml_nn_scale(b, wml_nn_shift(b, wml_nn_unary(b, "Erf", x), 1), 0.5);
}

static const struct {
    const char *name;
    struct wml_value *(*add)(struct wml_nn *b, struct wml_value *x);
} acts[] = {
    {"gelu", wml_nn_gelu}, {"gelu_python", wml_nn_gelu}, {"gelu_new", gelu_tanh}, {"gelu_pytorch_tanh", gelu_tanh},
    {"gelu_python_tanh", gelu_tanh},
    {"gelu_fast", gelu_tanh}, {"gelu_accurate", gelu_tanh}, {"gelu_10", gelu_10}, {"laplace", laplace}, {"quick_gelu", quick_gelu}, {"relu", relu}, {"relu6", relu6},
    {"relu2", relu_squared}, {"silu", silu}, {"swish", silu}, {"tanh", tanh_}, {"sigmoid", sigmoid},
    {"hard_swish", hard_swish}, {"hardswish", hard_swish}, {"hard_sigmoid", hard_sigmoid}, {"mish", mish}, {"elu", elu}, {"selu", selu},
    {"leaky_relu", leaky}, {"linear", same}, {"identity", same},
};

struct wml_value *wml_nn_act(struct wml_nn *b, struct wml_value *x, struct wml_str name, const char *field)
{
    if (b->failed || !x) return NULL;
    for (size_t i = 0; i < sizeof acts / sizeof *acts; i++)
        if (wml_str_is(name, acts[i].name)) return acts[i].add(b, x);
    wml_nn_fail(b, WML_E_UNSUPPORTED, "config.json: %s '%.*s' is no activation that is known", field, WML_ARG(name));
    return wml_nn_hint(b, "known ones: gelu, gelu_new, gelu_pytorch_tanh, quick_gelu, relu, relu6, silu, tanh, sigmoid, hard_swish, mish, ...");
}
