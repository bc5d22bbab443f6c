/* graph/walk.c - walks over nodes, graphs and tensors, and small facts for messages. */
#include "graph/graph.h"

#include "graph/attr.h"
#include "graph/edit.h"
#include "graph/internal.h"
#include "graph/parts.h"
#include "graph/store.h"

void wml_graph_init(struct wml_graph *g, struct wml_model *m, struct wml_node *owner,
                    struct wml_graph *outer)
{
    g->model = m;
    g->owner = owner;
    g->outer = outer;
    if (owner) owner->graph->holds_graphs = true;
    wml_model_own_map(m, &g->by_name);
}

struct wml_graph *wml_graph_new(struct wml_model *m, struct wml_node *owner)
{
    struct wml_graph *g = WML_NEW(&m->arena, struct wml_graph);
    wml_graph_init(g, m, owner, owner ? owner->graph : NULL);
    if (owner) g->name = wml_model_unique(m, WML_STR("branch"));
    return g;
}

struct wml_graph *wml_node_subgraph(const struct wml_node *n, size_t i)
{
    for (size_t k = 0; k < n->attr.len; k++) {
        const struct wml_attr *a = n->attr.at[k];
        const size_t here = (a->g ? 1 : 0) + a->graphs.len;
        if (i < here) return a->g ? (i ? a->graphs.at[i - 1] : a->g) : a->graphs.at[i];
        i -= here;
    }
    return NULL;
}

bool wml_graph_walk(struct wml_graph *g, bool (*f)(void *arg, struct wml_node *n), void *arg)
{
    for (struct wml_node *n = g->first, *next; n; n = next) {
        next = n->next;
        if (!f(arg, n)) return false;
        if (n->graph != g || !g->holds_graphs) continue; /* f removed it; or nothing is inside */
        struct wml_graph *sub;
        for (size_t k = 0; (sub = wml_node_subgraph(n, k)); k++)
            if (!wml_graph_walk(sub, f, arg)) return false;
    }
    return true;
}

bool wml_graph_each(struct wml_graph *g, bool (*f)(void *arg, struct wml_graph *g), void *arg)
{
    if (!f(arg, g)) return false;
    for (struct wml_node *n = g->holds_graphs ? g->first : NULL; n; n = n->next) {
        struct wml_graph *sub;
        for (size_t k = 0; (sub = wml_node_subgraph(n, k)); k++)
            if (!wml_graph_each(sub, f, arg)) return false;
    }
    return true;
}

bool wml_model_each_graph(struct wml_model *m, bool (*f)(void *arg, struct wml_graph *g), void *arg)
{
    return wml_graph_each(m->graph, f, arg);
}

struct tensor_walk {
    bool (*f)(void *arg, struct wml_tensor *t);
    void *arg;
};

static bool sparse_tensor(struct tensor_walk *w, struct wml_sparse_tensor *s)
{
    return !s || ((!s->values || w->f(w->arg, s->values)) && (!s->indices || w->f(w->arg, s->indices)));
}

static bool attr_tensors(struct tensor_walk *w, struct wml_attr *a)
{
    if (a->t && !w->f(w->arg, a->t)) return false;
    if (!sparse_tensor(w, a->sparse)) return false;
    for (size_t i = 0; i < a->tensors.len; i++)
        if (!w->f(w->arg, a->tensors.at[i])) return false;
    for (size_t i = 0; i < a->sparses.len; i++)
        if (!sparse_tensor(w, a->sparses.at[i])) return false;
    return true;
}

static bool graph_tensors(void *arg, struct wml_graph *g)
{
    struct tensor_walk *w = arg;
    for (struct wml_value *v = g->first_value; v; v = v->next) {
        if (v->init && !w->f(w->arg, v->init)) return false;
        if (!sparse_tensor(w, v->sparse)) return false;
    }
    for (struct wml_node *n = g->first; n; n = n->next)
        for (size_t k = 0; k < n->attr.len; k++)
            if (!attr_tensors(w, n->attr.at[k])) return false;
    return true;
}

bool wml_model_each_tensor(struct wml_model *m, bool (*f)(void *arg, struct wml_tensor *t), void *arg)
{
    struct tensor_walk w = {f, arg};
    if (!wml_graph_each(m->graph, graph_tensors, &w)) return false;
    for (size_t i = 0; i < m->function.len; i++) {
        struct wml_function *fn = m->function.at[i];
        if (!wml_graph_each(&fn->body, graph_tensors, &w)) return false;
        for (size_t k = 0; k < fn->attr.len; k++)
            if (!attr_tensors(&w, fn->attr.at[k])) return false;
    }
    for (size_t i = 0; i < m->training.len; i++) {
        struct wml_training *t = m->training.at[i];
        if (t->initialization && !wml_graph_each(t->initialization, graph_tensors, &w)) return false;
        if (t->algorithm && !wml_graph_each(t->algorithm, graph_tensors, &w)) return false;
    }
    return true;
}

bool wml_graph_is_inside(const struct wml_graph *g, const struct wml_graph *outer)
{
    for (; g; g = g->outer)
        if (g == outer) return true;
    return false;
}

static bool drop_unused(void *arg, struct wml_graph *g)
{
    size_t *dropped = arg;
    for (struct wml_value *v = g->first_value, *next; v; v = next) {
        next = v->next;
        if (v->def || v->n_inputs || !(v->init || v->sparse) || !wml_value_is_unused(v)) continue;
        wml_value_remove(v);
        ++*dropped;
    }
    return true;
}

size_t wml_model_drop_unused(struct wml_model *m)
{
    size_t dropped = 0;
    wml_model_each_graph(m, drop_unused, &dropped);
    return dropped;
}

static bool measure_graph(void *arg, struct wml_graph *g)
{
    struct wml_model_size *s = arg;
    s->all_nodes += g->n_nodes;
    for (const struct wml_value *v = g->first_value; v; v = v->next) {
        uint64_t n = 0, bytes = 0;
        if (!v->init) continue;
        s->tensors++;
        if (wml_tensor_count(v->init, &n, NULL)) s->params += n;
        if (wml_tensor_size(v->init, &bytes, NULL)) s->bytes += bytes;
    }
    return true;
}

void wml_model_measure(struct wml_model *m, struct wml_model_size *out)
{
    *out = (struct wml_model_size){.nodes = m->graph->n_nodes};
    wml_model_each_graph(m, measure_graph, out);
}

static bool add_nodes(void *arg, struct wml_graph *g)
{
    *(size_t *)arg += g->n_nodes;
    return true;
}

size_t wml_model_count_nodes(struct wml_model *m)
{
    size_t n = 0;
    wml_model_each_graph(m, add_nodes, &n);
    return n;
}
