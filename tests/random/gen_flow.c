/* If, Loop and Scan: sub-graphs that read values of the graphs around them. */
#include "gen.h"

#include <math.h>

struct inside { /* what to come back to */
    struct wml_graph *g;
    size_t n;
};

static struct inside enter(struct gen *g, struct wml_node *owner)
{
    struct inside was = {g->g, g->n};
    g->g = wml_graph_new(g->m, owner);
    g->g->name = wml_model_unique(g->m, WML_STR("body"));
    g->depth++;
    return was;
}

static struct wml_graph *leave(struct gen *g, struct inside was)
{
    struct wml_graph *sub = g->g;
    g->g = was.g;
    g->n = was.n;
    g->depth--;
    return sub;
}

/* A bool of one element: computed, an input, or fixed. */
static bool condition(struct gen *g, struct gen_value *c)
{
    struct gen_value x, k;
    int64_t way = gen_int(g, 0, 9);
    if (way < 3) {
        *c = gen_fill(g, WML_BOOL, 0, NULL, &(double){(double)gen_int(g, 0, 1)});
        return true;
    }
    if (way < 6 && gen_find(g, GEN_B, 0, 0, c)) return true;
    if (way < 6) {
        *c = gen_source(g, WML_BOOL, 0, NULL);
        return true;
    }
    if (!gen_number(g, &x)) return false;
    k = gen_fill(g, WML_F32, 0, NULL, &(double){gen_real(g, -1, 1)});
    *c = gen_out(g, GEN_NODE(g, "Greater", &x, &k), WML_BOOL, 0, NULL, 1);
    return true;
}

/* The body of a branch: some nodes, and a value like each of `want` as its outputs. */
static void branch(struct gen *g, size_t n, const struct gen_value *want, const char *name, struct wml_node *owner)
{
    struct inside was = enter(g, owner);
    for (int64_t i = gen_int(g, 0, 3); i > 0; i--) gen_step(g);
    for (size_t i = 0; i < n; i++) {
        struct gen_value y = gen_chance(g, 30) ? gen_const(g, want[i].t, want[i].rank, want[i].dim, -1, 1) : gen_same(g, want[i]);
        if (!y.v->def || y.v->graph != g->g || y.v->n_outputs) y = gen_op1(g, "Identity", y);
        wml_value_set_type(y.v, wml_type_tensor(g->m, y.t, gen_chance(g, 50) ? -1 : (int64_t)y.rank,
                                                (struct wml_axis[GEN_RANK]){{-1, WML_NO_STR}, {-1, WML_NO_STR}, {-1, WML_NO_STR}, {-1, WML_NO_STR},
                                                                            {-1, WML_NO_STR}, {-1, WML_NO_STR}, {-1, WML_NO_STR}, {-1, WML_NO_STR}}));
        wml_graph_add_output(g->g, y.v);
    }
    if (gen_chance(g, 40)) /* both branches may use the same names */
        for (struct wml_value *v = g->g->first_value, *next; v; v = next) {
            next = v->next;
            struct wml_str same = wml_arena_fmt(&g->m->arena, "inner_%zu_%zu", g->depth, (size_t)gen_int(g, 0, 9));
            if (!wml_graph_resolve(was.g, same)) wml_value_rename(v, same);
        }
    wml_attr_set_graph(owner, name, leave(g, was));
}

static bool make_if(struct gen *g)
{
    struct gen_value c, want[2];
    size_t n = (size_t)gen_int(g, 1, 2);
    if (g->depth > 1 || !condition(g, &c)) return false;
    for (size_t i = 0; i < n; i++) want[i] = gen_pick(g, GEN_F | GEN_F | GEN_I, 0, 4);
    struct wml_node *node = GEN_NODE(g, "If", &c);
    branch(g, n, want, "then_branch", node);
    branch(g, n, want, "else_branch", node);
    for (size_t i = 0; i < n; i++) gen_like(g, node, &want[i], want[i].most * 4 + 10);
    return true;
}

static struct gen_value sub_input(struct gen *g, const struct gen_value *like, size_t drop, bool sized)
{
    struct wml_axis axis[GEN_RANK];
    struct gen_value a = {.t = like->t, .rank = like->rank - drop, .most = like->most};
    for (size_t i = 0; i < a.rank; i++) {
        a.dim[i] = like->dim[i + drop];
        axis[i] = (struct wml_axis){sized ? a.dim[i] : -1, WML_NO_STR};
    }
    a.v = wml_graph_add_input(g->g, wml_model_unique(g->m, WML_STR("in")), wml_type_tensor(g->m, a.t, (int64_t)a.rank, axis));
    g->pool[g->n++] = a;
    return a;
}

static void sub_output(struct gen *g, struct gen_value y)
{
    if (!y.v->def || y.v->graph != g->g || y.v->n_outputs) y = gen_op1(g, "Identity", y);
    struct wml_axis axis[GEN_RANK];
    for (size_t i = 0; i < y.rank; i++) axis[i] = (struct wml_axis){-1, WML_NO_STR};
    wml_value_set_type(y.v, wml_type_tensor(g->m, y.t, (int64_t)y.rank, axis));
    wml_graph_add_output(g->g, y.v);
}

/* a number of rounds; one carried value, one that is collected. */
static bool make_loop(struct gen *g)
{
    struct gen_value trips = gen_fill(g, WML_I64, 0, NULL, &(double){(double)gen_int(g, 1, 3)});
    struct gen_value go = gen_fill(g, WML_BOOL, 0, NULL, &(double){1}), carried = gen_pick(g, GEN_F, 0, 3), none = {0};
    if (g->depth || carried.most > 100) return false;
    bool collect = gen_chance(g, 50);
    struct wml_node *node = GEN_NODE(g, "Loop", &trips, gen_chance(g, 60) ? &go : &none, &carried);
    struct inside was = enter(g, node);
    struct gen_value scalar = {.t = WML_I64, .most = 3}, flag = {.t = WML_BOOL, .most = 1};
    sub_input(g, &scalar, 0, true);
    struct gen_value again = sub_input(g, &flag, 0, true), in = sub_input(g, &carried, 0, !g->batch && gen_chance(g, 50));
    for (int64_t i = gen_int(g, 0, 3); i > 0; i--) gen_step(g);
    sub_output(g, gen_op1(g, "Identity", again));
    sub_output(g, gen_op1(g, "Tanh", gen_same(g, in)));
    if (collect) sub_output(g, gen_same(g, in));
    wml_attr_set_graph(node, "body", leave(g, was));
    gen_like(g, node, &carried, 1);
    if (collect) {
        int64_t dim[GEN_RANK];
        struct wml_str name = WML_STR("collected");
        memcpy(dim + 1, carried.dim, (GEN_RANK - 1) * sizeof *dim);
        double n = 0;
        if (trips.v->init) {
            int64_t *v;
            size_t len;
            if (wml_tensor_ints(g->m, trips.v->init, &v, &len, NULL)) n = (double)v[0];
        }
        dim[0] = (int64_t)n;
        if (n > 0) gen_out(g, node, carried.t, carried.rank + 1, dim, carried.most * 4 + 100);
        else wml_node_add_output(node, name); /* the number of rounds is in a Constant: sizes not followed */
    }
    return true;
}

static bool make_scan(struct gen *g)
{
    struct gen_value xs = gen_pick(g, GEN_F, 1, 3), state;
    if (g->depth || xs.dim[0] < 1 || xs.most > 100) return false;
    state = gen_const(g, WML_F32, xs.rank - 1, xs.dim + 1, -1, 1);
    struct wml_node *node = GEN_NODE(g, "Scan", &state, &xs);
    wml_attr_set_int(node, "num_scan_inputs", 1);
    struct inside was = enter(g, node);
    struct gen_value s = sub_input(g, &state, 0, !g->batch), x = sub_input(g, &xs, 1, !g->batch);
    for (int64_t i = gen_int(g, 0, 2); i > 0; i--) gen_step(g);
    struct gen_value sum = gen_op2(g, "Add", s, gen_same(g, x));
    sub_output(g, gen_op1(g, "Tanh", sum));
    sub_output(g, gen_same(g, x));
    wml_attr_set_graph(node, "body", leave(g, was));
    gen_like(g, node, &state, 1);
    gen_like(g, node, &xs, xs.most * 4 + 100);
    return true;
}

const struct gen_op gen_flow_ops[] = {
    {"if", make_if, 5, 0},
    {"loop", make_loop, 2, 0},
    {"scan", make_scan, 2, 0},
};
const size_t n_gen_flow_ops = WML_COUNT(gen_flow_ops);
