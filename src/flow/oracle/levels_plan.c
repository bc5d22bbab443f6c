/* Which value is made in which part, and how long it is needed. */
#include "flow/oracle/levels_internal.h"
#include "graph/edit.h"
#include "graph/graph.h"

static const uint64_t CORRECTION = UINT64_MAX; /* mark of the constants that sums add */

static bool is_sum(const struct wml_node *n)
{
    return n->n_in == 2 && n->in[1] && n->in[1]->mark == CORRECTION;
}

static void put_sum(struct wml_levels *l, struct wml_value *v)
{
    struct wml_graph *g = v->graph;
    struct wml_node *n = v->def->next ? wml_node_new(v->def->next, "", "Add") : wml_graph_append(g, "", "Add");
    struct wml_value *zero = wml_graph_add_init(g, WML_STR("correction"), wml_tensor_f32(l->model, 0));
    struct wml_value *sum = wml_node_add_output(n, WML_STR("corrected"));
    zero->mark = CORRECTION;
    wml_value_replace_uses(v, sum);
    wml_node_add_input(n, v);
    wml_node_add_input(n, zero);
}

static bool is_dead(const struct wml_node *n)
{
    for (size_t i = 0; i < n->n_out; i++)
        if (n->out[i] && !wml_value_is_unused(n->out[i])) return false;
    return true;
}

/* Inputs stay, so that samples stay the same. */
static void keep_only(struct wml_graph *g, const struct wml_channels *c, size_t n)
{
    struct wml_node *previous;
    while (g->outputs.len) wml_graph_remove_output(g, g->outputs.len - 1);
    for (size_t i = 0; i < n; i++) wml_graph_add_output(g, c[i].value);
    for (struct wml_node *node = g->last; node; node = previous) {
        previous = node->prev;
        if (is_dead(node)) wml_node_remove(node);
    }
}

/* The node of g that reads, where the reader lies in one of its branches. */
static struct wml_node *reader_in(const struct wml_graph *g, struct wml_node *n)
{
    while (n && n->graph != g) n = n->graph->owner;
    return n;
}

static void reach_readers(struct wml_value *v, uint64_t level)
{
    v->mark = level;
    for (struct wml_use *u = v->uses; u; u = u->next) {
        struct wml_node *n = reader_in(v->graph, u->node);
        if (n) n->mark = WML_MAX(n->mark, level);
    }
}

/* Marks: the level of every node and value; 0: made of constants alone, in each part anew. */
static uint64_t mark_levels(struct wml_graph *g)
{
    uint64_t most = 0;
    for (struct wml_node *n = g->first; n; n = n->next) n->mark = 0;
    for (struct wml_value *v = g->first_value; v; v = v->next)
        if (v->mark != CORRECTION) v->mark = 0;
    for (size_t i = 0; i < g->inputs.len; i++)
        if (!g->inputs.at[i]->init) reach_readers(g->inputs.at[i], 1);
    for (struct wml_node *n = g->first; n; n = n->next)
        for (size_t i = 0; i < n->n_out; i++) {
            if (!n->out[i] || !n->mark) continue;
            reach_readers(n->out[i], n->mark + is_sum(n));
            most = WML_MAX(most, n->out[i]->mark);
        }
    return most;
}

static uint64_t last_reader(const struct wml_value *v)
{
    uint64_t last = 0;
    for (struct wml_use *u = v->uses; u; u = u->next) {
        struct wml_node *n = reader_in(v->graph, u->node);
        if (n) last = WML_MAX(last, n->mark + is_sum(n));
    }
    return last;
}

static struct wml_level_value *add_value(struct wml_levels *l, struct wml_value *v, struct wml_channels *c)
{
    struct wml_level_value *to = &l->value[l->n++];
    struct wml_node *reader = c ? wml_value_only_user(v) : NULL;
    for (struct wml_use *u = c ? v->uses : NULL; u; u = u->next)
        if (is_sum(u->node)) reader = u->node;
    *to = (struct wml_level_value){.value = v, .level = (size_t)v->mark, .last = (size_t)last_reader(v), .channels = c,
                                   .sum = reader && is_sum(reader) ? reader : NULL};
    wml_map_put(&l->by_name, v->name, to);
    return to;
}

bool wml_levels_plan(struct wml_levels *l, struct wml_channels *c, size_t n, struct wml_err *err)
{
    struct wml_graph *g = l->model->graph;
    size_t n_values = 0;
    for (struct wml_value *v = g->first_value; v; v = v->next) v->mark = 0;
    for (size_t i = 0; i < n; i++)
        if (wml_value_elem(c[i].value) == WML_F32) put_sum(l, c[i].value);
    if (!wml_graph_sort(g, err)) return false;
    keep_only(g, c, n);
    wml_model_drop_unused(l->model);
    l->levels = (size_t)mark_levels(g);
    for (struct wml_value *v = g->first_value; v; v = v->next) n_values++;
    l->value = WML_NEW_ARRAY(&l->arena, struct wml_level_value, n_values + 1);
    l->of = WML_NEW_ARRAY(&l->arena, struct wml_level_value *, n + 1);
    for (size_t i = 0; i < n; i++)
        if (c[i].value->mark) l->of[i] = add_value(l, c[i].value, &c[i]);
    for (struct wml_value *v = g->first_value; v; v = v->next)
        if (v->def && v->mark && v->mark != CORRECTION && !wml_map_has(&l->by_name, v->name) && last_reader(v) > v->mark) add_value(l, v, NULL);
    return true;
}

size_t wml_levels_of(const struct wml_levels *l, size_t i)
{
    return l->of[i] ? l->of[i]->level : 0;
}

bool wml_levels_correct(struct wml_levels *l, size_t i, const double *delta, struct wml_err *err)
{
    const struct wml_level_value *v = l->of[i];
    int64_t dim[WML_LEVELS_RANK];
    size_t rank = 1;
    if (!v || !v->sum) return true;
    if (v->channels->axis >= 0) rank = v->rank - (size_t)v->channels->axis;
    if (rank > WML_LEVELS_RANK) return wml_fail(err, WML_E_UNSUPPORTED, "value '%.*s' has %zu axes", WML_ARG(v->value->name), v->rank);
    for (size_t k = 0; k < rank; k++) dim[k] = k ? 1 : (int64_t)v->channels->n;
    float *x = WML_NEW_ARRAY(&l->model->arena, float, v->channels->n);
    for (size_t k = 0; k < v->channels->n; k++) x[k] = (float)delta[k];
    struct wml_tensor *t = wml_tensor_copy(l->model, WML_F32, rank, dim, x, v->channels->n * sizeof *x, err);
    if (t) wml_value_set_init(v->sum->in[1], t);
    return t != NULL;
}
