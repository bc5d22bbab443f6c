/* Questions about nodes and constants. */
#include "passes/match.h"

struct wml_tensor *wml_constant_of(const struct wml_value *v)
{
    return v && v->init && wml_value_is_constant(v) ? v->init : NULL;
}

bool wml_constant_ints(struct wml_pass_run *r, const struct wml_value *v, int64_t **out, size_t *n)
{
    struct wml_tensor *t = v ? wml_value_tensor(v) : NULL;
    return t && (wml_constant_of(v) || v->def) && wml_tensor_ints(r->model, t, out, n, NULL);
}

bool wml_constant_is(struct wml_pass_run *r, const struct wml_value *v, double x)
{
    struct wml_tensor *t = wml_constant_of(v);
    struct wml_span bytes;
    uint64_t n = 0;
    if (!t || !wml_tensor_count(t, &n, NULL) || !n || n > 65536) return false;
    if (!wml_dtype_is_float(t->dtype) && !wml_dtype_is_integer(t->dtype)) return false;
    if (!wml_tensor_bytes(r->model, t, &bytes, NULL)) return false;
    for (uint64_t i = 0; i < n; i++)
        if (wml_dtype_load(t->dtype, bytes.ptr, (size_t)i) != x) return false;
    return true;
}

bool wml_same_type(const struct wml_value *a, const struct wml_value *b)
{
    int64_t rank = wml_value_rank(a);
    if (rank < 0 || rank != wml_value_rank(b) || wml_value_elem(a) != wml_value_elem(b)) return false;
    if (wml_value_elem(a) == WML_UNDEFINED) return false;
    for (int64_t i = 0; i < rank; i++) {
        struct wml_axis x = wml_value_axis(a, (size_t)i), y = wml_value_axis(b, (size_t)i);
        if (x.size >= 0 && x.size == y.size) continue;
        if (x.size < 0 && y.size < 0 && x.symbol.len && wml_str_eq(x.symbol, y.symbol)) continue;
        return false;
    }
    return true;
}

bool wml_bypass(struct wml_node *n, struct wml_value *v)
{
    struct wml_value *out = wml_node_out(n, 0);
    if (!out || !v) return false;
    if (out->n_outputs) {
        /* The output's name must live on: v takes it over, unless v is bound to its own. */
        if (!wml_value_replace(out, v)) return false;
    } else {
        wml_value_replace_uses(out, v);
    }
    if (!wml_value_is_unused(out)) return false;
    wml_node_remove(n);
    return true;
}

struct each {
    struct wml_pass_run *r;
    bool (*f)(void *arg, struct wml_node *n);
};

static bool each_graph(void *arg, struct wml_graph *g)
{
    const struct each *e = arg;
    for (struct wml_node *n = g->first, *next; n; n = next) {
        next = n->next;
        if (!e->f(e->r, n)) return false;
    }
    return true;
}

bool wml_pass_each(struct wml_pass_run *r, bool (*f)(void *arg, struct wml_node *n))
{
    struct each e = {r, f};
    return wml_model_each_graph(r->model, each_graph, &e);
}
