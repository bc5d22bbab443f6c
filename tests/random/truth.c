/* Whether a graph keeps what it says: types that it declares may be wrong, and ONNX Runtime runs it all the same. What is
 * made of it by them then proves nothing. */
#include "check.h"

#include <inttypes.h>

#include "graph/graph.h"

struct bound { /* a symbol and its size */
    struct wml_str symbol;
    int64_t size;
};

struct truth {
    struct bound bound[64];
    size_t n;
    char *why;
    size_t size;
};

/* A symbol is one size everywhere. */
static bool agrees(struct truth *t, struct wml_axis said, int64_t size)
{
    if (said.size >= 0 || !said.symbol.len) return said.size < 0 || said.size == size;
    for (size_t i = 0; i < t->n; i++)
        if (wml_str_eq(t->bound[i].symbol, said.symbol)) return t->bound[i].size == size;
    if (t->n < WML_COUNT(t->bound)) t->bound[t->n++] = (struct bound){said.symbol, size};
    return true;
}

static bool is_as_said(struct truth *t, const struct wml_value *v, const struct rc_tensor *is)
{
    int64_t rank = wml_value_rank(v);
    enum wml_dtype elem = wml_value_elem(v);
    if (!is->is_tensor || elem == WML_UNDEFINED) return true;
    bool same = elem == is->t && (rank < 0 || rank == (int64_t)is->rank);
    for (size_t i = 0; same && rank >= 0 && i < is->rank; i++) same = agrees(t, wml_value_axis(v, i), is->dim[i]);
    if (!same) snprintf(t->why, t->size, "%.*s is not what the graph says", WML_ARG(v->name));
    return same;
}

static bool all_as_said(struct truth *t, struct wml_model *m, const struct rc_tensors *are)
{
    for (size_t i = 0; i < are->n; i++) {
        const struct wml_value *v = wml_graph_find(m->graph, wml_str(are->at[i].name));
        if (v && !is_as_said(t, v, &are->at[i])) return false;
    }
    return true;
}

bool rc_is_true(const struct rc_env *e, const struct rc_case *c, size_t feed, char *why, size_t size)
{
    struct wml_model *m = NULL;
    struct rc_tensors are;
    struct truth t = {.why = why, .size = size};
    struct wml_err err = {0};
    struct wml_str bytes;
    bool ok = true;
    if (!rc_load(c->bytes, &m, &err)) return true;
    for (struct wml_value *v = m->graph->first_value; v; v = v->next)
        if (v->def && !v->n_outputs && wml_value_elem(v) != WML_UNDEFINED) wml_graph_add_output(m->graph, v);
    if (rc_encode(e, m, &bytes, &err) && rc_run(e, bytes, &c->feed[feed], &are, &err))
        ok = all_as_said(&t, m, &c->feed[feed]) && all_as_said(&t, m, &are);
    wml_model_free(m);
    return ok;
}
