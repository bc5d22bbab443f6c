/* graph/node.c - nodes: chain, inputs, outputs. */
#include <assert.h>
#include <inttypes.h>

#include "graph/edit.h"
#include "graph/graph.h"
#include "graph/internal.h"
#include "graph/store.h"

bool wml_domain_eq(struct wml_str a, struct wml_str b)
{
    if (wml_str_is(a, "ai.onnx")) a = WML_STR("");
    if (wml_str_is(b, "ai.onnx")) b = WML_STR("");
    return a.len == b.len && (!a.len || !memcmp(a.ptr, b.ptr, a.len));
}

bool wml_node_is_in(const struct wml_node *n, const char *domain, const char *op_type)
{
    return n && wml_str_is(n->op_type, op_type) && wml_domain_eq(n->domain, wml_str(domain));
}

void wml_node_chain(struct wml_graph *g, struct wml_node *n, struct wml_node *before)
{
    n->graph = g;
    n->next = before;
    n->prev = before ? before->prev : g->last;
    *(n->prev ? &n->prev->next : &g->first) = n;
    *(before ? &before->prev : &g->last) = n;
    g->n_nodes++;
    if (wml_node_subgraph(n, 0)) g->holds_graphs = true;
}

void wml_node_unchain(struct wml_node *n)
{
    struct wml_graph *g = n->graph;
    *(n->prev ? &n->prev->next : &g->first) = n->next;
    *(n->next ? &n->next->prev : &g->last) = n->prev;
    n->prev = n->next = NULL;
    n->graph = NULL;
    g->n_nodes--;
}

static struct wml_arena *arena_of(const struct wml_node *n)
{
    return &n->graph->model->arena;
}

void wml_node_set_op(struct wml_node *n, const char *domain, const char *op_type)
{
    struct wml_arena *a = arena_of(n);
    n->op_type = wml_arena_str(a, wml_str(op_type));
    n->domain = *domain ? wml_arena_str(a, wml_str(domain)) : WML_NO_STR;
    n->overload = WML_NO_STR;
}

static struct wml_node *new_node(struct wml_graph *g, struct wml_node *before, const char *domain,
                                 const char *op_type)
{
    struct wml_node *n = WML_NEW(&g->model->arena, struct wml_node);
    wml_node_chain(g, n, before);
    wml_node_set_op(n, domain, op_type);
    return n;
}

struct wml_node *wml_node_new(struct wml_node *before, const char *domain, const char *op_type)
{
    return new_node(before->graph, before, domain, op_type);
}

struct wml_node *wml_graph_append(struct wml_graph *g, const char *domain, const char *op_type)
{
    return new_node(g, NULL, domain, op_type);
}

static void drop_reads(struct wml_node *n)
{
    for (size_t i = 0; i < n->n_in; i++)
        if (n->in[i]) wml_use_drop(&n->use[i], n->in[i]);
    n->n_in = 0;
}

/* Nodes of a removed sub-graph no longer read outer values. */
static void drop_subgraphs(struct wml_node *n)
{
    struct wml_graph *sub;
    for (size_t k = 0; (sub = wml_node_subgraph(n, k)); k++) {
        for (size_t i = 0; i < sub->outputs.len; i++) sub->outputs.at[i]->n_outputs--;
        sub->outputs.len = 0;
        for (struct wml_node *inner = sub->first; inner; inner = inner->next) {
            drop_reads(inner);
            drop_subgraphs(inner);
        }
    }
}

void wml_node_remove(struct wml_node *n)
{
    for (size_t k = 0; k < n->n_out; k++) {
        struct wml_value *v = n->out[k];
        if (!v) continue;
        assert(!v->n_uses && !v->n_outputs);
        wml_value_unlink(v);
        v->def = NULL;
    }
    n->n_out = 0;
    drop_reads(n);
    drop_subgraphs(n);
    wml_node_unchain(n);
}

void wml_node_move(struct wml_node *n, struct wml_node *before)
{
    struct wml_graph *g = n->graph;
    assert(!before || before->graph == g);
    if (n == before) return;
    wml_node_unchain(n);
    wml_node_chain(g, n, before);
}

/* Uses are links of the values' lists, so those move along. */
static void grow_inputs(struct wml_node *n, size_t cap)
{
    struct wml_value **in = WML_NEW_ARRAY(arena_of(n), struct wml_value *, cap);
    struct wml_use *use = WML_NEW_ARRAY(arena_of(n), struct wml_use, cap);
    for (size_t i = 0; i < n->n_in; i++) {
        struct wml_value *v = in[i] = n->in[i];
        use[i] = n->use[i];
        if (!v) continue;
        *(use[i].prev ? &use[i].prev->next : &v->uses) = &use[i];
        *(use[i].next ? &use[i].next->prev : &v->last_use) = &use[i];
    }
    n->in = in;
    n->use = use;
    n->cap_in = cap;
}

void wml_node_resize_inputs(struct wml_node *n, size_t n_in)
{
    if (n_in <= n->n_in) {
        for (size_t i = n_in; i < n->n_in; i++)
            if (n->in[i]) wml_use_drop(&n->use[i], n->in[i]);
        n->n_in = n_in;
        return;
    }
    if (n_in > n->cap_in) grow_inputs(n, n->cap_in ? WML_MAX(n_in, 2 * n->cap_in) : n_in);
    for (size_t i = n->n_in; i < n_in; i++) {
        n->in[i] = NULL;
        n->use[i] = (struct wml_use){.node = n, .slot = i};
    }
    n->n_in = n_in;
}

void wml_node_set_input(struct wml_node *n, size_t slot, struct wml_value *v)
{
    if (slot >= n->n_in) {
        if (!v) return;
        wml_node_resize_inputs(n, slot + 1);
    }
    if (n->in[slot] == v) return;
    if (n->in[slot]) wml_use_drop(&n->use[slot], n->in[slot]);
    n->in[slot] = v;
    if (v) {
        n->use[slot] = (struct wml_use){.node = n, .slot = slot};
        wml_use_add(&n->use[slot], v);
        return;
    }
    while (n->n_in && !n->in[n->n_in - 1]) n->n_in--;
}

void wml_node_add_input(struct wml_node *n, struct wml_value *v)
{
    size_t slot = n->n_in;
    wml_node_resize_inputs(n, slot + 1);
    if (v) wml_node_set_input(n, slot, v);
}

void wml_node_remove_input(struct wml_node *n, size_t slot)
{
    assert(slot < n->n_in);
    for (size_t i = slot; i + 1 < n->n_in; i++) {
        struct wml_value *later = n->in[i + 1];
        if (n->in[i] == later) continue;
        if (n->in[i]) wml_use_drop(&n->use[i], n->in[i]);
        n->in[i] = later;
        n->use[i] = (struct wml_use){.node = n, .slot = i};
        if (later) wml_use_add(&n->use[i], later);
    }
    wml_node_resize_inputs(n, n->n_in - 1);
}

void wml_node_resize_outputs(struct wml_node *n, size_t n_out)
{
    if (n_out > n->cap_out) {
        const size_t cap = n->cap_out ? WML_MAX(n_out, 2 * n->cap_out) : n_out;
        struct wml_value **out = WML_NEW_ARRAY(arena_of(n), struct wml_value *, cap);
        for (size_t i = 0; i < n->n_out; i++) out[i] = n->out[i];
        n->out = out;
        n->cap_out = cap;
    }
    for (size_t i = n->n_out; i < n_out; i++) n->out[i] = NULL;
    n->n_out = n_out;
}

struct wml_value *wml_node_add_output(struct wml_node *n, struct wml_str name)
{
    struct wml_model *m = n->graph->model;
    struct wml_str base =
        name.len ? name : wml_arena_fmt(&m->arena, "%.*s_out", WML_ARG(n->op_type));
    size_t slot = n->n_out;
    wml_node_resize_outputs(n, slot + 1);
    struct wml_value *v = n->out[slot] = wml_value_new(n->graph, wml_model_unique(m, base));
    v->def = n;
    v->def_slot = slot;
    return v;
}

void wml_node_take_output(struct wml_node *n, size_t slot, struct wml_value *v)
{
    assert(v->def && v->graph == n->graph);
    struct wml_node *old = v->def;
    if (slot >= n->n_out) wml_node_resize_outputs(n, slot + 1);
    assert(!n->out[slot] || n->out[slot] == v);
    old->out[v->def_slot] = NULL;
    while (old->n_out && !old->out[old->n_out - 1]) old->n_out--;
    if (slot >= n->n_out) n->n_out = slot + 1; /* moved within one node */
    n->out[slot] = v;
    v->def = n;
    v->def_slot = slot;
}

void wml_node_drop_output(struct wml_node *n, size_t slot)
{
    struct wml_value *v = n->out[slot];
    if (!v) return;
    assert(wml_value_is_unused(v));
    wml_value_unlink(v);
    v->def = NULL;
    n->out[slot] = NULL;
    while (n->n_out && !n->out[n->n_out - 1]) n->n_out--;
}

struct wml_value *wml_node_in(const struct wml_node *n, size_t slot)
{
    return slot < n->n_in ? n->in[slot] : NULL;
}

struct wml_value *wml_node_out(const struct wml_node *n, size_t slot)
{
    return slot < n->n_out ? n->out[slot] : NULL;
}

struct wml_node *wml_node_producer(const struct wml_node *n, size_t slot)
{
    struct wml_value *v = wml_node_in(n, slot);
    return v ? v->def : NULL;
}

size_t wml_node_index(const struct wml_node *n)
{
    size_t i = 0;
    for (const struct wml_node *p = n->prev; p; p = p->prev) i++;
    return i;
}

const char *wml_node_label(const struct wml_node *n)
{
    struct wml_arena *a = arena_of(n);
    size_t i = wml_node_index(n);
    if (!n->name.len) return wml_arena_fmt(a, "node %zu (%.*s)", i, WML_ARG(n->op_type)).ptr;
    return wml_arena_fmt(a, "node '%.*s' (%.*s, index %zu)", WML_ARG(n->name), WML_ARG(n->op_type), i)
        .ptr;
}
