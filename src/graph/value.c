/* graph/value.c - values: making, naming, using, replacing. */
#include "graph/edit.h"

#include <assert.h>

#include "graph/internal.h"
#include "graph/store.h"

struct wml_value *wml_value_new(struct wml_graph *g, struct wml_str name)
{
    struct wml_value *v = WML_NEW(&g->model->arena, struct wml_value);
    v->name = name;
    v->graph = g;
    v->prev = g->last_value;
    *(v->prev ? &v->prev->next : &g->first_value) = v;
    g->last_value = v;
    wml_map_put(&g->by_name, name, v);
    return v;
}

void wml_value_unlink(struct wml_value *v)
{
    struct wml_graph *g = v->graph;
    wml_map_remove(&g->by_name, v->name);
    *(v->prev ? &v->prev->next : &g->first_value) = v->next;
    *(v->next ? &v->next->prev : &g->last_value) = v->prev;
    v->prev = v->next = NULL;
    v->graph = NULL;
}

void wml_use_add(struct wml_use *u, struct wml_value *v)
{
    u->prev = v->last_use;
    u->next = NULL;
    *(u->prev ? &u->prev->next : &v->uses) = u;
    v->last_use = u;
    v->n_uses++;
}

void wml_use_drop(struct wml_use *u, struct wml_value *v)
{
    *(u->prev ? &u->prev->next : &v->uses) = u->next;
    *(u->next ? &u->next->prev : &v->last_use) = u->prev;
    u->prev = u->next = NULL;
    v->n_uses--;
}

struct wml_value *wml_graph_find(const struct wml_graph *g, struct wml_str name)
{
    return wml_map_get(&g->by_name, name);
}

struct wml_value *wml_graph_resolve(const struct wml_graph *g, struct wml_str name)
{
    for (; g; g = g->outer) {
        struct wml_value *v = wml_map_get(&g->by_name, name);
        if (v) return v;
    }
    return NULL;
}

bool wml_value_is_unused(const struct wml_value *v)
{
    return !v->n_uses && !v->n_outputs && !v->pinned;
}

bool wml_value_is_constant(const struct wml_value *v)
{
    if (!v || (!v->init && !v->sparse)) return false;
    return !v->n_inputs || v->graph->model->ir_version < WML_IR_SEPARATE_WEIGHTS;
}

struct wml_tensor *wml_value_tensor(const struct wml_value *v)
{
    if (!v) return NULL;
    if (v->init) return wml_value_is_constant(v) ? v->init : NULL;
    return v->def && wml_node_is(v->def, "Constant") ? wml_attr_tensor(v->def, "value") : NULL;
}

struct wml_node *wml_value_only_user(const struct wml_value *v)
{
    return v->n_uses == 1 && !v->n_outputs ? v->uses->node : NULL;
}

void wml_value_replace_uses(struct wml_value *from, struct wml_value *to)
{
    assert(from != to);
    while (from->uses) {
        struct wml_use *u = from->uses;
        wml_use_drop(u, from);
        u->node->in[u->slot] = to;
        wml_use_add(u, to);
    }
}

static size_t listed_outputs(const struct wml_value *v)
{
    size_t n = 0;
    for (size_t i = 0; i < v->graph->outputs.len; i++) n += v->graph->outputs.at[i] == v;
    return n;
}

bool wml_value_replace(struct wml_value *from, struct wml_value *to)
{
    struct wml_graph *g = from->graph;
    if (from == to) return true;
    if (from->n_outputs) {
        if (from->n_inputs || !from->def || !to->def || to->n_outputs || to->pinned || from->pinned ||
            to->graph != g || listed_outputs(from) != from->n_outputs)
            return false;
        const struct wml_str name = from->name, other = to->name;
        for (size_t i = 0; i < g->outputs.len; i++)
            if (g->outputs.at[i] == from) g->outputs.at[i] = to;
        to->n_outputs = from->n_outputs;
        from->n_outputs = 0;
        if (from->type) { /* the signature keeps what it says about the output */
            to->type = from->type;
            to->type_changed = true;
        }
        /* The two swap names: the signature keeps its own. */
        wml_map_put(&g->by_name, name, to);
        wml_map_put(&g->by_name, other, from);
        to->name = name;
        from->name = other;
    }
    wml_value_replace_uses(from, to);
    return true;
}

bool wml_value_rename(struct wml_value *v, struct wml_str name)
{
    struct wml_graph *g = v->graph;
    if (wml_str_eq(v->name, name)) return true;
    if (v->pinned || !name.len || wml_map_has(&g->by_name, name)) return false;
    name = wml_arena_str(&g->model->arena, name);
    wml_map_remove(&g->by_name, v->name);
    v->name = name;
    wml_map_put(&g->by_name, name, v);
    wml_model_note_name(g->model, name);
    return true;
}

void wml_value_remove(struct wml_value *v)
{
    assert(wml_value_is_unused(v) && !v->def && !v->n_inputs);
    if (v->init) v->init->value = NULL;
    wml_value_unlink(v);
}

struct wml_value *wml_graph_add_init(struct wml_graph *g, struct wml_str name, struct wml_tensor *t)
{
    assert(t && !t->value);
    struct wml_value *v = wml_value_new(g, wml_model_unique(g->model, name));
    v->init = t;
    t->value = v;
    return v;
}

void wml_value_set_init(struct wml_value *v, struct wml_tensor *t)
{
    assert(!v->def && (!t || !t->value));
    if (v->init) v->init->value = NULL;
    v->init = t;
    if (t) t->value = v;
}

void wml_value_set_type(struct wml_value *v, struct wml_type *t)
{
    v->type = t;
    v->type_changed = true;
}

struct wml_value *wml_graph_add_input(struct wml_graph *g, struct wml_str name, struct wml_type *t)
{
    struct wml_value *v = wml_map_get(&g->by_name, name);
    assert(!v);
    v = wml_value_new(g, wml_arena_str(&g->model->arena, name));
    wml_model_note_name(g->model, v->name);
    v->n_inputs = 1;
    v->type = t;
    v->type_changed = true;
    WML_PUSH_IN(&g->model->arena, &g->inputs, v);
    return v;
}

void wml_graph_remove_input(struct wml_graph *g, size_t i)
{
    struct wml_value *v = g->inputs.at[i];
    WML_REMOVE(&g->inputs, i);
    v->n_inputs--;
    if (wml_value_is_unused(v) && !v->init && !v->sparse) wml_value_unlink(v);
}

void wml_graph_add_output(struct wml_graph *g, struct wml_value *v)
{
    WML_PUSH_IN(&g->model->arena, &g->outputs, v);
    v->n_outputs++;
}

void wml_graph_remove_output(struct wml_graph *g, size_t i)
{
    g->outputs.at[i]->n_outputs--;
    WML_REMOVE(&g->outputs, i);
}

void wml_graph_set_output(struct wml_graph *g, size_t i, struct wml_value *v)
{
    v->n_outputs++;
    g->outputs.at[i]->n_outputs--;
    g->outputs.at[i] = v;
}
