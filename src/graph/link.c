/* graph/link.c - from names to pointers. Per graph: values for inputs, initializers and node outputs,
 * then the reads of every node (names of outer graphs included), then outputs, annotations and types.
 * Refuses what has no single meaning: two definitions of a name, a name without definition, a cycle. */
#include "graph/graph.h"

#include "graph/attr.h"
#include "graph/edit.h"
#include "graph/internal.h"
#include "graph/parts.h"
#include "graph/store.h"

struct linker {
    struct wml_model *m;
    struct wml_err *err;
    bool lenient; /* training graphs may name things that only exist while training */
};

static bool link_graph(struct linker *l, struct wml_graph *g);

static const char *short_label(const struct wml_node *n)
{
    if (!n->name.len) return wml_node_label(n);
    return wml_arena_fmt(&n->graph->model->arena, "node '%.*s'", WML_ARG(n->name)).ptr;
}

static bool clash(struct linker *l, const struct wml_value *v, const struct wml_node *second)
{
    const char *how = "a graph input";
    if (v->init || v->sparse) how = "an initializer";
    if (v->def) how = short_label(v->def);
    return wml_fail(l->err, WML_E_FORMAT, "value '%.*s' is produced by %s and %s", WML_ARG(v->name),
                    how, short_label(second));
}

static bool define_inputs(struct linker *l, struct wml_graph *g)
{
    for (size_t i = 0; i < g->input.len; i++) {
        struct wml_value_info *info = g->input.at[i];
        if (!info->name.len)
            return wml_fail(l->err, WML_E_FORMAT, "graph '%.*s': input %zu has no name",
                            WML_ARG(g->name), i);
        if (wml_map_has(&g->by_name, info->name))
            return wml_fail(l->err, WML_E_FORMAT, "graph '%.*s' lists the input '%.*s' twice",
                            WML_ARG(g->name), WML_ARG(info->name));
        struct wml_value *v = wml_value_new(g, info->name);
        v->n_inputs = 1;
        v->type = info->type;
        info->value = v;
        WML_PUSH_IN(&l->m->arena, &g->inputs, v);
    }
    return true;
}

static struct wml_value *constant_value(struct linker *l, struct wml_graph *g, struct wml_str name,
                                        size_t index)
{
    if (!name.len) {
        wml_fail(l->err, WML_E_FORMAT, "graph '%.*s': initializer %zu has no name", WML_ARG(g->name),
                 index);
        return NULL;
    }
    struct wml_value *v = wml_map_get(&g->by_name, name);
    if (!v) return wml_value_new(g, name);
    if (!v->init && !v->sparse) return v;
    wml_fail(l->err, WML_E_FORMAT, "graph '%.*s' has two initializers named '%.*s'",
             WML_ARG(g->name), WML_ARG(name));
    return NULL;
}

static bool define_constants(struct linker *l, struct wml_graph *g)
{
    for (size_t i = 0; i < g->initializer.len; i++) {
        struct wml_tensor *t = g->initializer.at[i];
        struct wml_value *v = constant_value(l, g, t->name, i);
        if (!v) return false;
        v->init = t;
        t->value = v;
    }
    for (size_t i = 0; i < g->sparse_initializer.len; i++) {
        struct wml_sparse_tensor *s = g->sparse_initializer.at[i];
        struct wml_value *v =
            constant_value(l, g, s->values ? s->values->name : WML_NO_STR, i);
        if (!v) return false;
        v->sparse = s;
        s->values->value = v;
    }
    return true;
}

/* Chains the nodes in file order and defines what they produce. */
static bool define_nodes(struct linker *l, struct wml_graph *g)
{
    struct wml_arena *a = &l->m->arena;
    for (size_t i = 0; i < g->node.len; i++) {
        struct wml_node *n = g->node.at[i];
        wml_node_chain(g, n, NULL);
        n->n_out = n->cap_out = n->output.len;
        n->out = WML_NEW_ARRAY(a, struct wml_value *, n->n_out);
        n->n_in = n->cap_in = n->input.len;
        n->in = WML_NEW_ARRAY(a, struct wml_value *, n->n_in);
        n->use = WML_NEW_ARRAY(a, struct wml_use, n->n_in);
    }
    for (struct wml_node *n = g->first; n; n = n->next) {
        for (size_t k = 0; k < n->n_out; k++) {
            struct wml_str name = n->output.at[k];
            if (!name.len) continue;
            struct wml_value *v = wml_map_get(&g->by_name, name);
            if (v) return clash(l, v, n);
            v = n->out[k] = wml_value_new(g, name);
            v->def = n;
            v->def_slot = k;
        }
    }
    return true;
}

static struct wml_value *missing_value(struct linker *l, struct wml_graph *g, struct wml_str name)
{
    return l->lenient ? wml_value_new(g, name) : NULL;
}

static bool link_reads(struct linker *l, struct wml_graph *g)
{
    for (struct wml_node *n = g->first; n; n = n->next) {
        for (size_t k = 0; k < n->n_in; k++) {
            struct wml_str name = n->input.at[k];
            if (!name.len) continue;
            struct wml_value *v = wml_graph_resolve(g, name);
            if (!v) v = missing_value(l, g, name);
            if (!v)
                return wml_fail(l->err, WML_E_FORMAT,
                                "%s reads '%.*s', which nothing defines", wml_node_label(n),
                                WML_ARG(name));
            n->in[k] = v;
            n->use[k] = (struct wml_use){.node = n, .slot = k};
            wml_use_add(&n->use[k], v);
        }
        struct wml_graph *sub;
        for (size_t i = 0; (sub = wml_node_subgraph(n, i)); i++) {
            wml_graph_init(sub, l->m, n, g);
            if (!link_graph(l, sub)) return false;
        }
    }
    return true;
}

static bool link_outputs(struct linker *l, struct wml_graph *g)
{
    for (size_t i = 0; i < g->output.len; i++) {
        struct wml_value_info *info = g->output.at[i];
        struct wml_value *v = info->name.len ? wml_graph_resolve(g, info->name) : NULL;
        if (!v && info->name.len) v = missing_value(l, g, info->name);
        if (!v)
            return wml_fail(l->err, WML_E_FORMAT,
                            "graph '%.*s': output %zu ('%.*s') is produced by nothing",
                            WML_ARG(g->name), i, WML_ARG(info->name));
        v->n_outputs++;
        info->value = v;
        if (!v->type) v->type = info->type;
        WML_PUSH_IN(&l->m->arena, &g->outputs, v);
    }
    return true;
}

static void pin(struct wml_graph *g, struct wml_str name)
{
    struct wml_value *v = wml_graph_resolve(g, name);
    if (v) v->pinned = true;
}

static void link_notes(struct wml_graph *g)
{
    for (size_t i = 0; i < g->value_info.len; i++) {
        struct wml_value_info *info = g->value_info.at[i];
        info->value = wml_map_get(&g->by_name, info->name);
        if (info->value && !info->value->type) info->value->type = info->type;
    }
    for (size_t i = 0; i < g->annotation.len; i++) {
        struct wml_annotation *a = g->annotation.at[i];
        a->value = wml_map_get(&g->by_name, a->tensor_name);
        for (size_t k = 0; k < a->param.len; k++) pin(g, a->param.at[k].value);
    }
}

static bool link_graph(struct linker *l, struct wml_graph *g)
{
    if (!define_inputs(l, g) || !define_constants(l, g) || !define_nodes(l, g)) return false;
    if (!link_reads(l, g) || !link_outputs(l, g)) return false;
    link_notes(g);
    return wml_graph_sort_one(g, l->err);
}

static bool link_function(struct linker *l, struct wml_function *f)
{
    struct wml_graph *g = &f->body;
    wml_graph_init(g, l->m, NULL, NULL);
    g->name = f->name;
    for (size_t i = 0; i < f->input.len; i++) {
        struct wml_str name = f->input.at[i];
        if (wml_map_has(&g->by_name, name))
            return wml_fail(l->err, WML_E_FORMAT, "it lists the input '%.*s' twice", WML_ARG(name));
        struct wml_value *v = wml_value_new(g, name);
        v->n_inputs = 1;
        WML_PUSH_IN(&l->m->arena, &g->inputs, v);
    }
    if (!define_nodes(l, g) || !link_reads(l, g)) return false;
    for (size_t i = 0; i < f->output.len; i++) {
        struct wml_value *v = wml_graph_find(g, f->output.at[i]);
        if (!v)
            return wml_fail(l->err, WML_E_FORMAT, "its output '%.*s' is produced by nothing",
                            WML_ARG(f->output.at[i]));
        v->n_outputs++;
        WML_PUSH_IN(&l->m->arena, &g->outputs, v);
    }
    link_notes(g);
    return wml_graph_sort_one(g, l->err);
}

static bool link_training(struct linker *l, struct wml_training *t)
{
    struct wml_graph *graph[] = {t->initialization, t->algorithm};
    l->lenient = true;
    for (size_t i = 0; i < WML_COUNT(graph); i++) {
        if (!graph[i]) continue;
        wml_graph_init(graph[i], l->m, NULL, l->m->graph);
        if (!link_graph(l, graph[i])) return false;
    }
    l->lenient = false;
    struct wml_entries *binding[] = {&t->initialization_binding, &t->update_binding};
    for (size_t i = 0; i < WML_COUNT(binding); i++) {
        for (size_t k = 0; k < binding[i]->len; k++) {
            pin(l->m->graph, binding[i]->at[k].key);
            if (graph[i]) pin(graph[i], binding[i]->at[k].value);
        }
    }
    return true;
}

bool wml_model_link(struct wml_model *m, struct wml_err *err)
{
    struct wml_err local = {0};
    struct linker l = {m, err ? err : &local, false};
    if (!m->graph)
        return wml_fail(err, WML_E_FORMAT, "the model has no graph");
    m->store->was_sorted = true;
    wml_graph_init(m->graph, m, NULL, NULL);
    if (!link_graph(&l, m->graph)) return false;
    for (size_t i = 0; i < m->function.len; i++)
        if (!link_function(&l, m->function.at[i]))
            return wml_wrap(err, "function %.*s", WML_ARG(m->function.at[i]->name));
    for (size_t i = 0; i < m->training.len; i++)
        if (!link_training(&l, m->training.at[i]))
            return wml_wrap(err, "training_info[%zu]", i);
    return true;
}
