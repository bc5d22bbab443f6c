/* Graphs of tests/passes, changed a little: every form that a pass knows, and what lies near it. Nothing is known of
 * sizes here, so a change may well make a graph that ONNX Runtime refuses. */
#include "gen_cases.h"

#include <math.h>

#include "../unit/pass_cases.h"
#include "os/file.h"
#include "os/path.h"

enum { MAX_NODES = 200 };

struct gen_cases {
    WML_VEC(struct suite) v;
    size_t n; /* cases in all */
};

struct gen_cases *gen_cases_open(const char *folder)
{
    struct gen_cases *c = wml_xcalloc(1, sizeof *c);
    struct wml_dir_list list = {0};
    struct wml_err err = {0};
    if (wml_dir_list(folder, &list, &err))
        for (size_t i = 0; i < list.v.len; i++) {
            struct wml_buf path = {0};
            struct suite s = {0};
            if (!wml_str_ends(list.v.at[i].name, ".case")) continue;
            wml_path_join(&path, wml_str(folder), list.v.at[i].name);
            s.path = wml_xstrdup(wml_buf_text(&path));
            wml_buf_release(&path);
            load(&s);
            c->n += s.v.len;
            WML_PUSH(&c->v, s);
        }
    wml_dir_list_release(&list);
    return c;
}

void gen_cases_close(struct gen_cases *c)
{
    for (size_t i = 0; i < c->v.len; i++) {
        free(c->v.at[i].path);
        release(&c->v.at[i]);
    }
    WML_VEC_RELEASE(&c->v);
    free(c);
}

size_t gen_cases_count(const struct gen_cases *c)
{
    return c->n;
}

/* --- what can be changed --- */

struct nodes {
    struct wml_node *at[MAX_NODES];
    size_t n;
};

/* ORT's kernel of BatchNormalization in training writes into its constants. */
static bool is_pure(void *arg, struct wml_node *n)
{
    (void)arg;
    return !wml_attr_int(n, "training_mode", 0);
}

static bool collect(void *arg, struct wml_node *n)
{
    struct nodes *all = arg;
    if (all->n < MAX_NODES) all->at[all->n++] = n;
    return true;
}

static struct wml_node *some_node(struct gen *g)
{
    struct nodes all = {.n = 0};
    wml_graph_walk(g->m->graph, collect, &all);
    return all.n ? all.at[gen_int(g, 0, (int64_t)all.n - 1)] : NULL;
}

static struct wml_value *some_constant(struct gen *g)
{
    struct wml_value *found = NULL;
    int64_t n = 0;
    for (struct wml_value *v = g->m->graph->first_value; v; v = v->next)
        if (v->init && v->n_uses && !v->n_inputs && v->init->dtype != WML_STRING && gen_int(g, 0, n++) == 0) found = v;
    return found;
}

static void change_attr(struct gen *g, struct wml_node *n)
{
    if (!n->attr.len) return;
    struct wml_attr *a = n->attr.at[gen_int(g, 0, (int64_t)n->attr.len - 1)];
    char name[64];
    snprintf(name, sizeof name, "%.*s", WML_ARG(a->name));
    if (gen_chance(g, 20) && wml_attr_kind(a) != WML_ATTR_GRAPH) wml_attr_remove(n, name);
    else if (wml_attr_kind(a) == WML_ATTR_INT) wml_attr_set_int(n, name, gen_chance(g, 50) ? !a->i : a->i + gen_int(g, -1, 1));
    else if (wml_attr_kind(a) == WML_ATTR_FLOAT) wml_attr_set_float(n, name, a->f * 1.5f);
    else if (wml_attr_kind(a) == WML_ATTR_INTS && a->ints.len) {
        int64_t v[32];
        size_t len = WML_MIN(a->ints.len, 32), i = (size_t)gen_int(g, 0, (int64_t)len - 1), k = (size_t)gen_int(g, 0, (int64_t)len - 1);
        memcpy(v, a->ints.at, len * sizeof *v);
        v[i] = gen_chance(g, 50) ? a->ints.at[k] : v[i] + gen_int(g, -1, 1);
        if (gen_chance(g, 50)) v[k] = a->ints.at[i];
        wml_attr_set_ints(n, name, len, v);
    }
}

static void change_op(struct gen *g, struct wml_node *n)
{
    static const char *const group[][8] = {{"Add", "Sub", "Mul", "Div", "Max", "Min"},
                                           {"Relu", "Sigmoid", "Tanh", "Neg", "Erf", "Sqrt", "Exp", "Identity"},
                                           {"ReduceMean", "ReduceSum", "ReduceMax"}, {"MaxPool", "AveragePool"},
                                           {"Equal", "Less", "Greater"}, {"And", "Or"}, {"Softmax", "LogSoftmax"}};
    for (size_t i = 0; i < WML_COUNT(group); i++)
        for (size_t k = 0; k < 8 && group[i][k]; k++)
            if (wml_node_is(n, group[i][k])) {
                const char *to = group[i][gen_int(g, 0, 7)];
                if (to) wml_node_set_op(n, "", to);
                return;
            }
}

static void change_numbers(struct gen *g, struct wml_value *v)
{
    struct wml_span bytes;
    struct wml_tensor *t = v->init;
    uint64_t n = 0;
    if (!wml_tensor_bytes(g->m, t, &bytes, NULL) || !wml_tensor_count(t, &n, NULL) || !n || wml_dtype_info(t->dtype)->bits < 8) return;
    unsigned char *data = wml_arena_alloc(&g->arena, bytes.len + 1);
    memcpy(data, bytes.ptr, bytes.len);
    bool real = wml_dtype_is_float(t->dtype), all = gen_chance(g, 40);
    int64_t way = gen_int(g, 0, 4);
    size_t at = (size_t)gen_int(g, 0, (int64_t)n - 1);
    for (size_t i = all ? 0 : at; i < (all ? n : at + 1); i++) {
        double x = wml_dtype_load(t->dtype, data, i);
        x = way == 0 ? 0 : way == 1 ? 1 : way == 2 ? -x : real ? x * 1.25 : x + (double)gen_int(g, -1, 1);
        wml_dtype_store(t->dtype, data, i, x);
    }
    struct wml_tensor *other = wml_tensor_copy(g->m, (enum wml_dtype)t->dtype, t->dims.len, t->dims.at, data, bytes.len, NULL);
    if (other) wml_value_set_init(v, other);
}

/* One axis of size 1 more or less in front. */
static void change_rank(struct gen *g, struct wml_value *v)
{
    struct wml_tensor *t = v->init;
    struct wml_span bytes;
    int64_t dims[GEN_RANK] = {1};
    bool more = t->dims.len < 5 && gen_chance(g, 60);
    if (!wml_dtype_is_float(t->dtype)) return; /* shapes, pads, axes: ORT takes wrong ranks only while it does not know them */
    if (!more && (!t->dims.len || t->dims.at[0] != 1)) return;
    for (size_t i = 0; i < t->dims.len && i + more < GEN_RANK; i++)
        if (more || i) dims[more ? i + 1 : i - 1] = t->dims.at[i];
    if (!wml_tensor_bytes(g->m, t, &bytes, NULL)) return;
    struct wml_tensor *other = wml_tensor_copy(g->m, (enum wml_dtype)t->dtype, more ? t->dims.len + 1 : t->dims.len - 1, dims, bytes.ptr, bytes.len, NULL);
    if (!other) return;
    wml_value_set_type(v, NULL);
    wml_value_set_init(v, other);
}

static void show(struct gen *g, struct wml_node *n)
{
    struct wml_value *v = wml_node_out(n, 0);
    if (!v || n->graph != g->m->graph || v->n_outputs) return;
    if (gen_chance(g, 50)) {
        wml_graph_add_output(g->m->graph, v);
        return;
    }
    struct wml_node *reader = wml_graph_append(g->m->graph, "", "Identity");
    wml_node_add_input(reader, v);
    wml_graph_add_output(g->m->graph, wml_node_add_output(reader, WML_STR("shown")));
}

static void insert(struct gen *g, struct wml_node *n)
{
    static const char *const op[] = {"Identity", "Identity", "Relu", "Sigmoid"};
    size_t slot = n->n_in ? (size_t)gen_int(g, 0, (int64_t)n->n_in - 1) : 0;
    struct wml_value *v = wml_node_in(n, slot);
    if (!v) return;
    struct wml_node *between = wml_node_new(n, "", op[gen_int(g, 0, WML_COUNT(op) - 1)]);
    wml_node_add_input(between, v);
    wml_node_set_input(n, slot, wml_node_add_output(between, WML_STR("between")));
}

static void repeat(struct gen *g, struct wml_node *n)
{
    struct wml_value *v = wml_node_out(n, 0);
    if (!v || !v->uses || wml_node_subgraph(n, 0)) return;
    struct wml_use *u = gen_chance(g, 50) ? v->uses : v->last_use;
    if (u->node->graph != n->graph) return;
    char domain[64], op[64];
    snprintf(domain, sizeof domain, "%.*s", WML_ARG(n->domain));
    snprintf(op, sizeof op, "%.*s", WML_ARG(n->op_type));
    struct wml_node *twin = wml_node_new(n, domain, op);
    wml_attrs_copy(twin, n);
    for (size_t i = 0; i < n->n_in; i++) wml_node_set_input(twin, i, n->in[i]);
    struct wml_value *y = wml_node_add_output(twin, WML_STR("twin"));
    for (size_t i = 1; i < n->n_out; i++)
        if (n->out[i]) wml_node_add_output(twin, WML_STR("twin"));
    wml_node_set_input(u->node, u->slot, y);
}

/* A constant becomes an input, with its numbers as default or without. */
static void open_constant(struct gen *g, struct wml_value *v)
{
    struct wml_tensor *t = v->init;
    if (g->m->ir_version < 4 || v->n_outputs) return;
    struct wml_value *in = wml_graph_add_input(g->m->graph, wml_model_unique(g->m, WML_STR("opened")),
                                               wml_type_static(g->m, (enum wml_dtype)t->dtype, t->dims.len, t->dims.at));
    if (gen_chance(g, 70)) wml_value_set_init(in, wml_tensor_share(g->m, t));
    wml_value_replace_uses(v, in);
}

static void to_constant_node(struct gen *g, struct wml_value *v)
{
    struct wml_node *n, *first = g->m->graph->first;
    if (!first || v->n_outputs) return;
    n = wml_node_new(first, "", "Constant");
    wml_attr_set_tensor(n, "value", wml_tensor_share(g->m, v->init));
    wml_value_replace_uses(v, wml_node_add_output(n, WML_STR("constant")));
}

static void open_axis(struct gen *g)
{
    struct wml_graph *top = g->m->graph;
    struct wml_axis axis[GEN_RANK];
    if (!top->inputs.len) return;
    struct wml_value *v = top->inputs.at[gen_int(g, 0, (int64_t)top->inputs.len - 1)];
    int64_t rank = wml_value_rank(v);
    if (rank < 1 || rank > GEN_RANK || v->init) return;
    for (int64_t i = 0; i < rank; i++) axis[i] = wml_value_axis(v, (size_t)i);
    size_t at = gen_chance(g, 70) ? 0 : (size_t)gen_int(g, 0, rank - 1);
    if (axis[at].size > 0 && !g->batch) g->batch = axis[at].size;
    axis[at] = (struct wml_axis){-1, WML_STR("N")};
    wml_value_set_type(v, wml_type_tensor(g->m, wml_value_elem(v), rank, axis));
    for (size_t i = 0; i < top->outputs.len; i++)
        if (top->outputs.at[i]->def) wml_value_set_type(top->outputs.at[i], NULL);
}

static void change(struct gen *g)
{
    struct wml_node *n = some_node(g);
    struct wml_value *k = some_constant(g);
    switch (gen_int(g, 0, 12)) {
    case 0: case 1: if (n) change_attr(g, n); break;
    case 2: if (n && n->n_in > 1) {
        struct wml_value *a = n->in[0], *b = n->in[1];
        wml_node_set_input(n, 0, b);
        wml_node_set_input(n, 1, a);
        break;
    }
    break;
    case 3: if (n) show(g, n); break;
    case 4: if (n) change_op(g, n); break;
    case 5: if (n && wml_node_in(n, 0) && wml_node_out(n, 0)) wml_value_replace_uses(n->out[0], n->in[0]); break;
    case 6: if (n) insert(g, n); break;
    case 7: if (n) repeat(g, n); break;
    case 8: if (k) change_numbers(g, k); break;
    case 9: if (k) change_rank(g, k); break;
    case 10: if (k) open_constant(g, k); break;
    case 11: if (k) to_constant_node(g, k); break;
    default: open_axis(g); break;
    }
}

/* --- feeding it --- */

static bool read_inputs(struct gen *g)
{
    struct wml_graph *top = g->m->graph;
    if (top->inputs.len > GEN_INPUTS) return false;
    for (size_t i = 0; i < top->inputs.len; i++) {
        const struct wml_value *v = top->inputs.at[i];
        struct gen_input *in = &g->input[g->n_inputs++];
        int64_t rank = wml_value_rank(v);
        enum wml_dtype t = wml_value_elem(v);
        bool real = wml_dtype_is_float((int)t);
        if (rank < 0 || rank > GEN_RANK || t == WML_STRING || wml_dtype_info((int)t)->bits < 8 || v->name.len >= sizeof in->name) return false;
        *in = (struct gen_input){.t = t, .rank = (size_t)rank, .optional = v->init != NULL, .low = real ? -3 : 0, .high = real ? 3 : 1};
        snprintf(in->name, sizeof in->name, "%.*s", WML_ARG(v->name));
        int64_t count = 1;
        for (size_t k = 0; k < in->rank; k++) {
            struct wml_axis a = wml_value_axis(v, k);
            in->batch[k] = a.size < 0;
            in->dim[k] = a.size < 0 ? (g->batch ? g->batch : 2) : a.size;
            count *= in->dim[k] + 1;
        }
        if (count > 1 << 16) return false;
    }
    if (!g->batch) g->batch = 2;
    return true;
}

bool gen_from_case(struct gen *g, const struct gen_cases *cases, const struct wml_pass **pass)
{
    size_t at = (size_t)gen_int(g, 0, (int64_t)cases->n - 1), s = 0;
    while (at >= cases->v.at[s].v.len) at -= cases->v.at[s++].v.len;
    const struct pass_case *c = &cases->v.at[s].v.at[at];
    *pass = wml_passes[cases->v.at[s].pass];
    g->m = build(&cases->v.at[s], c, c->before, c->opset, c->ir);
    g->g = g->m->graph;
    g->opset = wml_model_opset(g->m, "");
    for (int64_t i = gen_chance(g, 15) ? 0 : gen_int(g, 1, 3); i > 0; i--) change(g);
    struct wml_err err = {0};
    return wml_graph_walk(g->m->graph, is_pure, NULL) && read_inputs(g) && wml_graph_sort(g->m->graph, &err);
}
