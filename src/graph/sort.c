/* graph/sort.c - stable topological order. A graph that is in order already, the usual case, costs one
 * walk. Else the ready node that stood first in the old order comes next. A node waits for what it
 * reads itself and for what nodes in its sub-graphs read from this graph. Uses node marks. */
#include "graph/graph.h"

#include "graph/edit.h"
#include "graph/internal.h"
#include "graph/store.h"

struct sorter {
    struct wml_graph *g;
    struct wml_node **node; /* in the old order; a node's mark is its index */
    size_t *waits;          /* for how many reads node i still waits */
    size_t *heap, n_heap;   /* ready nodes, smallest index on top */
    size_t n_done;
};

struct wml_node *wml_node_ancestor_in(struct wml_node *n, const struct wml_graph *g)
{
    while (n && n->graph != g) n = n->graph->owner;
    return n;
}

/* Numbers the nodes; true when every read of a value of g comes after its definition. */
static bool is_sorted(struct wml_graph *g)
{
    uint64_t index = 0;
    for (struct wml_node *n = g->first; n; n = n->next) n->mark = index++;
    for (struct wml_value *v = g->first_value; v; v = v->next) {
        if (!v->def) continue;
        for (struct wml_use *u = v->uses; u; u = u->next) {
            struct wml_node *reader = wml_node_ancestor_in(u->node, g);
            if (reader && reader->mark <= v->def->mark) return false;
        }
    }
    return true;
}

static void push_ready(struct sorter *s, size_t index)
{
    size_t at = s->n_heap++;
    for (; at && s->heap[(at - 1) / 2] > index; at = (at - 1) / 2) s->heap[at] = s->heap[(at - 1) / 2];
    s->heap[at] = index;
}

static size_t pop_ready(struct sorter *s)
{
    const size_t top = s->heap[0], last = s->heap[--s->n_heap];
    size_t at = 0;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child + 1 < s->n_heap && s->heap[child + 1] < s->heap[child]) child++;
        if (child >= s->n_heap || s->heap[child] >= last) break;
        s->heap[at] = s->heap[child];
        at = child;
    }
    s->heap[at] = last;
    return top;
}

/* Adds `by` to the waits of every reader of n's outputs; pushes those that reach zero. */
static void change_waits(struct sorter *s, const struct wml_node *n, int by)
{
    for (size_t k = 0; k < n->n_out; k++) {
        if (!n->out[k]) continue;
        for (struct wml_use *u = n->out[k]->uses; u; u = u->next) {
            struct wml_node *reader = wml_node_ancestor_in(u->node, s->g);
            if (!reader) continue;
            if (by > 0)
                s->waits[reader->mark]++;
            else if (--s->waits[reader->mark] == 0)
                push_ready(s, reader->mark);
        }
    }
}

/* Names the nodes of one cycle: from a node that never became ready, back through what it waits for. */
static bool name_cycle(struct sorter *s, struct wml_err *err)
{
    size_t start = 0, steps = 0;
    char text[512];
    int len = 0;
    while (!s->waits[start]) start++;
    struct wml_node *n = s->node[start], *back = n;
    for (; steps <= s->g->n_nodes && back; steps++) {
        n = back;
        back = NULL;
        for (size_t i = 0; i < n->n_in && !back; i++) {
            struct wml_node *def = wml_node_producer(n, i);
            if (def && def->graph == s->g && s->waits[def->mark]) back = def;
        }
    }
    /* After n_nodes steps n lies on the cycle. Now once around. */
    const struct wml_node *first = n;
    for (int shown = 0; shown < 4; shown++) {
        int k = snprintf(text + len, sizeof text - (size_t)len, "%s%s", shown ? ", " : "",
                         wml_node_label(n));
        if (k < 0 || (size_t)k >= sizeof text - (size_t)len) break;
        len += k;
        back = NULL;
        for (size_t i = 0; i < n->n_in && !back; i++) {
            struct wml_node *def = wml_node_producer(n, i);
            if (def && def->graph == s->g && s->waits[def->mark]) back = def;
        }
        if (!back || back == first) break;
        n = back;
    }
    return wml_fail(err, WML_E_FORMAT, "graph '%.*s' has a cycle through %.*s",
                    WML_ARG(s->g->name), len, text);
}

static void rechain(struct wml_graph *g, struct wml_node *const *order, size_t n)
{
    g->first = g->last = NULL;
    g->n_nodes = 0;
    for (size_t i = 0; i < n; i++) wml_node_chain(g, order[i], NULL);
}

bool wml_graph_sort_one(struct wml_graph *g, struct wml_err *err)
{
    if (is_sorted(g)) return true;
    g->model->store->was_sorted = false;
    const size_t n = g->n_nodes;
    struct wml_arena scratch = {0};
    struct sorter s = {
        .g = g,
        .node = WML_NEW_ARRAY(&scratch, struct wml_node *, n),
        .waits = WML_NEW_ARRAY(&scratch, size_t, n),
        .heap = WML_NEW_ARRAY(&scratch, size_t, n),
    };
    struct wml_node **order = WML_NEW_ARRAY(&scratch, struct wml_node *, n);
    for (struct wml_node *at = g->first; at; at = at->next) {
        s.node[at->mark] = at;
        change_waits(&s, at, 1);
    }
    for (size_t i = 0; i < n; i++)
        if (!s.waits[i]) push_ready(&s, i);
    while (s.n_heap) {
        order[s.n_done] = s.node[pop_ready(&s)];
        change_waits(&s, order[s.n_done++], -1);
    }
    bool ok = s.n_done == n || name_cycle(&s, err);
    if (ok) rechain(g, order, n);
    wml_arena_release(&scratch);
    return ok;
}

bool wml_graph_sort(struct wml_graph *g, struct wml_err *err)
{
    if (!wml_graph_sort_one(g, err)) return false;
    for (const struct wml_node *n = g->first; n; n = n->next) {
        struct wml_graph *sub;
        for (size_t k = 0; (sub = wml_node_subgraph(n, k)); k++)
            if (!wml_graph_sort(sub, err)) return false;
    }
    return true;
}
