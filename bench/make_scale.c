/* bench/make_scale.c - graphs of about N nodes, each kind hard for something that is easily made quadratic.
 *
 * chain       small nodes one after the other
 * blocks      what exporters write: Conv-BatchNormalization-Relu, Reshape and Transpose there and back, decomposed
 *             LayerNormalization and Gelu, Constant nodes, a residual Add
 * tree        pairs of branches that meet again: every value has two readers
 * identities  nothing but Identity
 * constants   every second node is a Constant
 * weights     every node reads an initializer of its own
 * readers     one value that every node reads, and one node that reads them all
 * outputs     every node is an output of the graph
 * nested      If in If, N levels deep */
#include "maker.h"

static void unary_chain(struct maker *k, int64_t n, const char *const *ops, size_t n_ops, struct wml_value **x)
{
    for (int64_t i = 0; i < n; i++) *x = MAKER_OP(k, ops[(size_t)i % n_ops], *x);
}

static void chain(struct maker *k, int64_t n, struct wml_value **x)
{
    static const char *const ops[] = {"Relu", "Neg", "Identity", "Abs", "Sigmoid"};
    unary_chain(k, n, ops, WML_COUNT(ops), x);
}

static void identities(struct maker *k, int64_t n, struct wml_value **x)
{
    static const char *const ops[] = {"Identity"};
    unary_chain(k, n, ops, 1, x);
}

static void tree(struct maker *k, int64_t n, struct wml_value **x)
{
    for (int64_t i = 0; i + 2 < n; i += 3)
        *x = MAKER_OP(k, "Add", MAKER_OP(k, i % 2 ? "Sin" : "Sigmoid", *x), MAKER_OP(k, "Tanh", *x));
}

static void constants(struct maker *k, int64_t n, struct wml_value **x)
{
    for (int64_t i = 0; i + 1 < n; i += 2)
        *x = MAKER_OP(k, i % 4 ? "Mul" : "Add", *x, maker_scalar(k, 1 + (float)(i % 1000) * 1e-6f));
}

static void weights(struct maker *k, int64_t n, struct wml_value **x)
{
    for (int64_t i = 0; i < n; i++)
        *x = MAKER_OP(k, i % 2 ? "Mul" : "Add", *x, maker_weight(k, "w", 1, (int64_t[]){8}, 0.01f, (float)(i % 2)));
}

static void readers(struct maker *k, int64_t n, struct wml_value **x)
{
    struct wml_node *all = wml_graph_append(k->g, "", "Concat");
    all->name = maker_name(k, "Concat");
    wml_attr_set_int(all, "axis", 1);
    for (int64_t i = 0; i < n; i++)
        wml_node_add_input(all, MAKER_OP(k, "Add", *x, maker_weight(k, "w", 1, (int64_t[]){8}, 0.1f, 0)));
    wml_node_move(all, NULL);
    *x = wml_node_add_output(all, maker_name(k, "v"));
}

static void outputs(struct maker *k, int64_t n, struct wml_value **x)
{
    for (int64_t i = 0; i < n; i++) {
        *x = MAKER_OP(k, i % 2 ? "Identity" : "Neg", *x);
        wml_value_set_type(*x, wml_type_static(k->m, WML_F32, 2, (int64_t[]){1, 8}));
        wml_graph_add_output(k->g, *x);
    }
}

static struct wml_graph *branch(struct maker *k, struct wml_node *n, const char *attribute)
{
    struct wml_graph *g = wml_graph_new(k->m, n);
    wml_attr_set_graph(n, attribute, g);
    return g;
}

/* Level by level: the next If lies in the then-branch of the last one. */
static void nested(struct maker *k, int64_t n, struct wml_value **x)
{
    struct wml_graph *top = k->g, *g = top;
    struct wml_value *condition = wml_graph_add_input(top, WML_STR("condition"), wml_type_static(k->m, WML_BOOL, 0, NULL));
    struct wml_value *result = *x;
    for (int64_t i = 0; i < n; i++) {
        k->g = g;
        struct wml_value *y = MAKER_OP(k, "If", condition);
        if (g == top) result = y;
        else wml_graph_add_output(g, y);
        k->g = branch(k, y->def, "else_branch");
        wml_graph_add_output(k->g, MAKER_OP(k, "Neg", *x));
        g = branch(k, y->def, "then_branch");
    }
    k->g = g;
    if (g != top) wml_graph_add_output(g, MAKER_OP(k, "Relu", *x));
    k->g = top;
    *x = result;
}

static struct wml_value *transpose(struct maker *k, struct wml_value *x, size_t n, const int64_t *perm)
{
    struct wml_value *y = MAKER_OP(k, "Transpose", x);
    wml_attr_set_ints(y->def, "perm", n, perm);
    return y;
}

enum { CHANNELS = 16, PIXELS = 16 };

/* [1,16,4,4] to itself; some 35 nodes. */
static struct wml_value *block(struct maker *k, struct wml_value *x)
{
    struct wml_value *y = maker_conv_bn(k, x, CHANNELS, CHANNELS, 3, 1, true);
    y = MAKER_OP(k, "Reshape", y, maker_ints(k, 3, (int64_t[]){1, CHANNELS, PIXELS}));
    y = transpose(k, y, 3, (int64_t[]){0, 2, 1});
    y = MAKER_OP(k, "Identity", maker_mlp(k, maker_layer_norm(k, y)));
    y = transpose(k, y, 3, (int64_t[]){0, 2, 1});
    y = MAKER_OP(k, "Reshape", y, maker_ints(k, 4, (int64_t[]){1, CHANNELS, 4, 4}));
    return MAKER_OP(k, "Add", x, y);
}

static void blocks(struct maker *k, int64_t n, struct wml_value **x)
{
    k->hidden = k->inner = CHANNELS;
    while ((int64_t)k->g->n_nodes < n) *x = block(k, *x);
}

static const struct {
    const char *name;
    void (*make)(struct maker *k, int64_t n, struct wml_value **x);
    size_t rank;
    int64_t dims[4];
    int64_t width; /* of the output's second axis per node; 0: as the input */
} kinds[] = {
    {"chain", chain, 2, {1, 8}, 0},         {"blocks", blocks, 4, {1, CHANNELS, 4, 4}, 0},
    {"tree", tree, 2, {1, 8}, 0},           {"identities", identities, 2, {1, 8}, 0},
    {"constants", constants, 2, {1, 8}, 0}, {"weights", weights, 2, {1, 8}, 0},
    {"readers", readers, 2, {1, 8}, 8},     {"outputs", outputs, 2, {1, 8}, 0},
    {"nested", nested, 2, {1, 8}, 0},
};

bool make_scale(struct maker *k, const char *kind, int64_t n)
{
    for (size_t i = 0; i < WML_COUNT(kinds); i++) {
        if (strcmp(kind, kinds[i].name) != 0) continue;
        struct wml_axis axes[4] = {0};
        for (size_t d = 0; d < kinds[i].rank; d++) axes[d].size = kinds[i].dims[d];
        struct wml_value *x = wml_graph_add_input(k->g, WML_STR("x"), wml_type_tensor(k->m, WML_F32, (int64_t)kinds[i].rank, axes));
        kinds[i].make(k, n, &x);
        if (kinds[i].width) axes[1].size = kinds[i].width * n;
        if (!x->n_outputs) maker_output(k, x, "y", kinds[i].rank, axes);
        return true;
    }
    return false;
}
