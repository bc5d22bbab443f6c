/* A branch of an If that cannot run with the sizes the model has: fixed shapes often suit one branch only, and ONNX Runtime
 * refuses to load such a model once it computes the shapes. The branch becomes one that ends in an error when it is taken, as
 * it did before, but loads everywhere. Asked of ONNX Runtime, a branch at a time. Left alone: a branch whose fault lies in a
 * graph inside it, which may never be entered, and both branches when neither can run. */
#include "passes/match.h"

struct given { WML_VEC(struct wml_value *) v; };
struct capture { struct given *given; const struct wml_graph *branch; struct wml_arena *arena; };

/* Values from outside become inputs of their type; where it is not known, what makes them is part of the question. */
static bool add_captured(void *arg, struct wml_node *n)
{
    struct capture *c = arg;
    for (size_t i = 0; i < n->n_in; i++) {
        struct wml_value *v = n->in[i];
        bool seen = false;
        if (!v || wml_graph_is_inside(v->graph, c->branch) || wml_value_tensor(v) || wml_value_rank(v) < 0) continue;
        for (size_t k = 0; k < c->given->v.len; k++) seen = seen || c->given->v.at[k] == v;
        if (!seen) WML_PUSH_IN(c->arena, &c->given->v, v);
    }
    return true;
}

/* What output i is declared as: by the If, else by the branch that stays. */
static struct wml_type *type_of(const struct wml_node *n, const struct wml_graph *stays, size_t i)
{
    struct wml_value *v = wml_node_out(n, i);
    if (v && wml_value_rank(v) >= 0) return wml_value_type(v);
    return i < stays->outputs.len ? wml_value_type(stays->outputs.at[i]) : NULL;
}

static bool can_stand_for(const struct wml_node *n, const struct wml_graph *branch, const struct wml_graph *stays)
{
    if (branch->outputs.len != n->n_out) return false;
    for (size_t i = 0; i < n->n_out; i++) {
        const struct wml_type *t = type_of(n, stays, i);
        if (wml_type_rank(t) < 0 || wml_dtype_info((int)wml_type_elem(t))->bits < 8) return false;
    }
    return true;
}

static void clear(struct wml_graph *g)
{
    while (g->outputs.len) wml_graph_remove_output(g, g->outputs.len - 1);
    while (g->last) wml_node_remove(g->last);
}

static struct wml_value *constant(struct wml_graph *g, enum wml_dtype dtype, size_t n, const int64_t *ints)
{
    int64_t dim = (int64_t)n;
    uint64_t bytes = 0;
    static const unsigned char zeros[16];
    wml_dtype_bytes((int)dtype, n, &bytes);
    return wml_graph_add_init(g, WML_NO_STR, wml_tensor_copy(g->model, dtype, 1, &dim, ints ? (const void *)ints : zeros, (size_t)bytes, NULL));
}

static struct wml_value *append(struct wml_graph *g, const char *op, struct wml_value *a, struct wml_value *b)
{
    struct wml_node *n = wml_graph_append(g, "", op);
    n->name = wml_model_unique(g->model, WML_STR("this_branch_does_not_fit_the_sizes"));
    wml_node_add_input(n, a);
    if (b) wml_node_add_input(n, b);
    if (!b) wml_attr_set_int(n, "to", WML_I64);
    return wml_node_add_output(n, wml_str(op));
}

/* Element 1 or 2 of a table of one: an error whenever it is computed. */
static void fail_in(struct wml_pass_run *r, struct wml_graph *g, const struct wml_graph *stays, const struct wml_node *n)
{
    int64_t one = 1;
    clear(g);
    struct wml_value *beyond = append(g, "Add", append(g, "Cast", n->in[0], NULL), constant(g, WML_I64, 1, &one));
    for (size_t i = 0; i < n->n_out; i++) {
        const struct wml_type *t = type_of(n, stays, i);
        size_t rank = (size_t)wml_type_rank(t);
        int64_t *shape = WML_NEW_ARRAY(r->scratch, int64_t, rank + 1);
        for (size_t k = 0; k < rank; k++) shape[k] = WML_MAX(wml_type_axis(t, k).size, 1);
        struct wml_value *element = append(g, "Gather", constant(g, wml_type_elem(t), 1, NULL), beyond);
        wml_graph_add_output(g, append(g, "Expand", append(g, "Reshape", element, constant(g, WML_I64, 0, &one)), constant(g, WML_I64, rank, shape)));
    }
    wml_pass_applied(r, n->op_type, n->name);
}

static bool cannot_run(struct wml_pass_run *r, struct wml_node *n, struct wml_graph *branch, const struct wml_graph *stays)
{
    struct given given = {0};
    struct capture c = {&given, branch, r->scratch};
    if (branch->n_nodes < 2 || !can_stand_for(n, branch, stays)) return false;
    wml_graph_walk(branch, add_captured, &c);
    return r->env->cannot_run(r->env->arg, r->model, branch, given.v.at, given.v.len);
}

static bool run(struct wml_pass_run *r, struct wml_err *err)
{
    (void)err;
    if (r->round) return true;
    for (struct wml_node *n = r->model->graph->first; n; n = n->next) {
        if (!wml_node_is(n, "If") || !n->n_in || !n->in[0] || wml_value_tensor(n->in[0])) continue;
        if (!r->env->cannot_run) return wml_pass_skip(r, "ONNX Runtime is not at hand");
        struct wml_graph *yes = wml_attr_graph(n, "then_branch"), *no = wml_attr_graph(n, "else_branch");
        if (!yes || !no) continue;
        bool a = cannot_run(r, n, yes, no), b = cannot_run(r, n, no, yes);
        if (a != b) fail_in(r, a ? yes : no, a ? no : yes, n);
    }
    return true;
}

const struct wml_pass wml_pass_impossible_branch_elimination = {
    .name = "impossible-branch-elimination", .category = "elimination", .on = true, .run = run,
    .summary = "Replace a branch that cannot run with the model's sizes by one that only fails",
};
