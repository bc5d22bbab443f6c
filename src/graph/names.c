/* graph/names.c - names unique in the whole model, whatever they name, so that a new one never meets a
 * value, node or sub-graph of the user. The table is filled when the first name is asked for. */
#include "graph/edit.h"
#include "graph/graph.h"
#include "graph/internal.h"
#include "graph/parts.h"
#include "graph/store.h"

/* The map's pointer is the next suffix to try for that name. */
static void *suffix(uintptr_t n)
{
    return (void *)n; /* NOLINT: a number, never followed */
}

static void note(struct wml_map *names, struct wml_str name)
{
    if (name.len && !wml_map_has(names, name)) wml_map_put(names, name, suffix(1));
}

static void note_graph(struct wml_map *names, const struct wml_graph *g)
{
    note(names, g->name);
    for (const struct wml_value *v = g->first_value; v; v = v->next) note(names, v->name);
    for (const struct wml_node *n = g->first; n; n = n->next) {
        note(names, n->name);
        const struct wml_graph *sub;
        for (size_t k = 0; (sub = wml_node_subgraph(n, k)); k++) note_graph(names, sub);
    }
}

static struct wml_map *table_of(struct wml_model *m)
{
    struct wml_store *s = m->store;
    if (s->names_ready) return &s->names;
    s->names_ready = true;
    note_graph(&s->names, m->graph);
    for (size_t i = 0; i < m->function.len; i++) note_graph(&s->names, &m->function.at[i]->body);
    for (size_t i = 0; i < m->training.len; i++) {
        if (m->training.at[i]->initialization) note_graph(&s->names, m->training.at[i]->initialization);
        if (m->training.at[i]->algorithm) note_graph(&s->names, m->training.at[i]->algorithm);
    }
    return &s->names;
}

void wml_model_note_name(struct wml_model *m, struct wml_str name)
{
    if (m->store->names_ready) note(&m->store->names, name);
}

struct wml_str wml_model_unique(struct wml_model *m, struct wml_str base)
{
    struct wml_map *names = table_of(m);
    if (!base.len) base = WML_STR("value");
    base = wml_arena_str(&m->arena, base);
    uintptr_t n = (uintptr_t)wml_map_get(names, base);
    struct wml_str name = base;
    if (n) {
        do {
            name = wml_arena_fmt(&m->arena, "%.*s_%zu", WML_ARG(base), (size_t)n++);
        } while (wml_map_has(names, name));
        wml_map_put(names, base, suffix(n));
    }
    wml_map_put(names, name, suffix(1));
    return name;
}

struct renamer {
    struct wml_model *m;
    struct wml_map seen;
    size_t changed;
};

static bool unique_node_name(void *arg, struct wml_node *n)
{
    struct renamer *r = arg;
    if (!n->name.len) {
        n->name = wml_model_unique(r->m, n->op_type);
    } else if (wml_map_has(&r->seen, n->name)) {
        n->name = wml_model_unique(r->m, n->name);
        r->changed++;
    }
    wml_map_put(&r->seen, n->name, n);
    return true;
}

/* Bodies of functions are inlined under the caller's name: equal names inside one body would meet. */
size_t wml_model_unique_node_names(struct wml_model *m)
{
    struct renamer r = {.m = m};
    wml_graph_walk(m->graph, unique_node_name, &r);
    for (size_t i = 0; i < m->function.len; i++) {
        wml_map_release(&r.seen);
        wml_graph_walk(&m->function.at[i]->body, unique_node_name, &r);
    }
    wml_map_release(&r.seen);
    return r.changed;
}
