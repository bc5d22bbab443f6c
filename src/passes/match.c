/* Questions about nodes and constants. */
#include "passes/match.h"

#include <math.h>

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

bool wml_types_disagree(const struct wml_value *a, const struct wml_value *b)
{
    enum wml_dtype x = wml_value_elem(a), y = wml_value_elem(b);
    int64_t rank = wml_value_rank(a), other = wml_value_rank(b);
    if ((x != WML_UNDEFINED && y != WML_UNDEFINED && x != y) || (rank >= 0 && other >= 0 && rank != other)) return true;
    for (int64_t i = 0; rank == other && i < rank; i++) {
        int64_t n = wml_value_axis(a, (size_t)i).size, k = wml_value_axis(b, (size_t)i).size;
        if (n >= 0 && k >= 0 && n != k) return true;
    }
    return false;
}

bool wml_same_axis(const struct wml_value *a, size_t i, const struct wml_value *b, size_t j)
{
    struct wml_axis x = wml_value_axis(a, i), y = wml_value_axis(b, j);
    if (x.size >= 0 || y.size >= 0) return x.size == y.size;
    return (a == b && i == j) || (x.symbol.len && wml_str_eq(x.symbol, y.symbol));
}

bool wml_constant_scalar(struct wml_pass_run *r, const struct wml_value *v, double *out)
{
    struct wml_tensor *t = wml_constant_of(v);
    struct wml_span bytes;
    uint64_t n = 0;
    if (!t || !wml_tensor_count(t, &n, NULL) || n != 1) return false;
    if (!wml_dtype_is_float(t->dtype) && !wml_dtype_is_integer(t->dtype)) return false;
    if (!wml_tensor_bytes(r->model, t, &bytes, NULL)) return false;
    *out = wml_dtype_load(t->dtype, bytes.ptr, 0);
    return true;
}

bool wml_constant_beside(struct wml_pass_run *r, const struct wml_value *v, const struct wml_value *x, double *out)
{
    const struct wml_tensor *t = wml_constant_of(v);
    if (!t || (t->dims.len && wml_value_rank(x) < (int64_t)t->dims.len)) return false;
    return wml_constant_scalar(r, v, out) && isfinite(*out);
}

bool wml_axes_of(struct wml_pass_run *r, const struct wml_node *n, const int64_t **axes, size_t *len)
{
    int64_t *v;
    *axes = wml_attr_ints(n, "axes", len);
    if (*axes) return true;
    if (!wml_node_in(n, 1) || !wml_constant_of(n->in[1]) || !wml_constant_ints(r, n->in[1], &v, len)) return false;
    *axes = v;
    return true;
}

bool wml_reduces_tail(struct wml_pass_run *r, const struct wml_node *n, int64_t *first)
{
    const int64_t *axes;
    size_t len;
    int64_t rank = wml_node_in(n, 0) ? wml_value_rank(n->in[0]) : -1;
    uint64_t seen = 0;
    if (wml_attr_int(n, "keepdims", 1) != 1 || !wml_axes_of(r, n, &axes, &len) || !len) return false;
    if (rank < 0 && len == 1 && axes[0] == -1) { /* the last one, whatever the rank */
        *first = -1;
        return true;
    }
    if (rank < (int64_t)len || rank > 32) return false;
    for (size_t i = 0; i < len; i++) {
        int64_t a = axes[i] < 0 ? axes[i] + rank : axes[i];
        if (a < rank - (int64_t)len || a >= rank || (seen >> a & 1)) return false;
        seen |= UINT64_C(1) << a;
    }
    *first = rank - (int64_t)len;
    return true;
}

bool wml_static_dims(const struct wml_value *v, size_t from, int64_t *dims, size_t *n)
{
    int64_t rank = wml_value_rank(v);
    if (rank < 0 || (size_t)rank < from || (*n != SIZE_MAX && (size_t)rank < from + *n)) return false;
    if (*n == SIZE_MAX) *n = (size_t)rank - from;
    for (size_t i = 0; i < *n; i++) {
        dims[i] = wml_value_axis(v, from + i).size;
        if (dims[i] < 0) return false;
    }
    return true;
}

bool wml_is_float(const struct wml_value *v)
{
    return v && wml_dtype_is_float((int)wml_value_elem(v));
}

struct wml_value *wml_reshaped_constant(struct wml_pass_run *r, struct wml_value *v, size_t rank, const int64_t *dims)
{
    struct wml_tensor *t = wml_constant_of(v), *s;
    bool same = t->dims.len == rank;
    for (size_t i = 0; same && i < rank; i++) same = t->dims.at[i] == dims[i];
    if (same) return v;
    s = wml_tensor_share(r->model, t);
    s->dims.at = WML_NEW_ARRAY(&r->model->arena, int64_t, rank + 1);
    s->dims.len = s->dims.cap = rank;
    for (size_t i = 0; i < rank; i++) s->dims.at[i] = dims[i];
    return wml_graph_add_init(v->graph, v->name, s);
}

bool wml_constant_is_along(const struct wml_value *v, const struct wml_value *x, size_t axis)
{
    const struct wml_tensor *t = wml_constant_of(v);
    int64_t rank = wml_value_rank(x), shift;
    if (!t || rank <= (int64_t)axis || wml_value_elem(v) != wml_value_elem(x)) return false;
    shift = rank - (int64_t)t->dims.len;
    if (shift < 0 || (int64_t)axis < shift || wml_value_axis(x, axis).size < 0) return false;
    for (size_t i = 0; i < t->dims.len; i++)
        if (t->dims.at[i] != ((int64_t)i + shift == (int64_t)axis ? wml_value_axis(x, axis).size : 1)) return false;
    return true;
}

bool wml_can_bypass(const struct wml_node *n, const struct wml_value *v)
{
    const struct wml_value *out = wml_node_out(n, 0);
    if (!out || !v || out->pinned) return false;
    for (size_t i = 1; i < n->n_out; i++)
        if (n->out[i] && !wml_value_is_unused(n->out[i])) return false;
    return !out->n_outputs || (v->def && !v->n_outputs && !v->pinned && v->graph == out->graph && out->n_outputs == 1);
}

bool wml_bypass(struct wml_node *n, struct wml_value *v)
{
    struct wml_value *out = wml_node_out(n, 0);
    if (!out || !v || out->pinned) return false;
    for (size_t i = 1; i < n->n_out; i++)
        if (n->out[i] && !wml_value_is_unused(n->out[i])) return false;
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
    bool (*f)(struct wml_pass_run *r, struct wml_node *n);
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

bool wml_pass_each(struct wml_pass_run *r, bool (*f)(struct wml_pass_run *r, struct wml_node *n))
{
    struct each e = {r, f};
    return wml_model_each_graph(r->model, each_graph, &e);
}

void wml_pass_use_contrib(struct wml_pass_run *r)
{
    if (!wml_model_opset(r->model, "com.microsoft")) wml_model_set_opset(r->model, "com.microsoft", 1);
}

static bool is_unread(const struct wml_node *n)
{
    for (size_t i = 0; i < n->n_out; i++)
        if (n->out[i] && !wml_value_is_unused(n->out[i])) return false;
    return wml_op_is_removable(n);
}

bool wml_node_is_dead(const struct wml_node *n)
{
    return n->n_out > 0 && is_unread(n);
}

void wml_prune(struct wml_node *n)
{
    WML_VEC(struct wml_node *) todo = {0};
    WML_PUSH(&todo, n);
    while (todo.len) {
        n = todo.at[--todo.len];
        if (!is_unread(n)) continue; /* its outputs may have moved to another node */
        for (size_t i = 0; i < n->n_in; i++) {
            struct wml_node *p = n->in[i] && n->in[i]->graph == n->graph ? n->in[i]->def : NULL;
            bool listed = !p;
            for (size_t k = 0; k < todo.len && !listed; k++) listed = todo.at[k] == p;
            if (!listed) WML_PUSH(&todo, p);
        }
        wml_node_remove(n);
    }
    WML_VEC_RELEASE(&todo);
}

struct nodes {
    const char *op;
    struct wml_arena *arena;
    WML_VEC(struct wml_node *) v;
};

static bool collect(void *arg, struct wml_node *n)
{
    struct nodes *s = arg;
    if (wml_node_is(n, s->op)) WML_PUSH_IN(s->arena, &s->v, n);
    return true;
}

bool wml_pass_each_of(struct wml_pass_run *r, const char *op, void (*f)(void *arg, struct wml_node *n), void *arg, struct wml_err *err)
{
    struct nodes s = {.op = op, .arena = r->scratch};
    size_t before = r->applied;
    wml_graph_walk(r->model->graph, collect, &s);
    for (size_t i = 0; i < s.v.len; i++)
        if (s.v.at[i]->graph) f(arg, s.v.at[i]);
    return r->applied == before || wml_graph_sort(r->model->graph, err);
}
