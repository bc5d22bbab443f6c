/* graph/inline.c - the content of a sub-graph becomes part of the graph around it: values and nodes move, uses stay. */
#include <assert.h>

#include "graph/edit.h"
#include "graph/graph.h"
#include "graph/internal.h"

bool wml_graph_can_inline(const struct wml_graph *sub)
{
    if (!sub->owner || sub->inputs.len || sub->annotation.len) return false;
    for (const struct wml_value *v = sub->first_value; v; v = v->next)
        if (v->sparse || v->pinned) return false;
    return true;
}

/* Another graph may have a value of the same name: branches of one If often do. */
static void move_value(struct wml_value *v, struct wml_graph *to)
{
    wml_value_unlink(v);
    v->name = wml_model_unique(to->model, v->name);
    v->graph = to;
    v->prev = to->last_value;
    *(v->prev ? &v->prev->next : &to->first_value) = v;
    to->last_value = v;
    wml_map_put(&to->by_name, v->name, v);
    v->type_changed = v->type_changed || (v->type && !v->init); /* what sub says of it is to be said there */
}

void wml_graph_inline(struct wml_graph *sub, struct wml_node *before)
{
    struct wml_graph *to = before->graph, *inner;
    assert(wml_graph_can_inline(sub) && sub->outer == to);
    for (size_t i = 0; i < sub->outputs.len; i++) sub->outputs.at[i]->n_outputs--;
    sub->outputs.len = 0;
    while (sub->first_value) move_value(sub->first_value, to);
    while (sub->first) {
        struct wml_node *n = sub->first;
        wml_node_unchain(n);
        wml_node_chain(to, n, before);
        for (size_t k = 0; (inner = wml_node_subgraph(n, k)); k++) inner->outer = to;
    }
}
