/* Arithmetic on shapes before the graph runs. */
#include "passes/shape_symbols.h"

#include "passes/slice_info.h"

struct wml_sym wml_sym_number(int64_t v)
{
    return (struct wml_sym){.kind = WML_SYM_NUMBER, .v = v};
}

struct wml_sym wml_sym_axis(const struct wml_value *v, size_t axis)
{
    struct wml_axis a = wml_value_axis(v, axis);
    if (a.size >= 0) return wml_sym_number(a.size);
    return a.symbol.len ? (struct wml_sym){.kind = WML_SYM_SYMBOL, .s = a.symbol} : (struct wml_sym){0};
}

bool wml_sym_eq(struct wml_sym a, struct wml_sym b)
{
    if (a.kind != b.kind || a.kind == WML_SYM_OPEN) return false;
    return a.kind == WML_SYM_NUMBER ? a.v == b.v : wml_str_eq(a.s, b.s);
}

bool wml_sym_is(struct wml_sym a, int64_t v)
{
    return a.kind == WML_SYM_NUMBER && a.v == v;
}

/* Two numbers whose sum, difference and product do not overflow. */
static bool are_numbers(struct wml_sym a, struct wml_sym b)
{
    return a.kind == WML_SYM_NUMBER && b.kind == WML_SYM_NUMBER && a.v < INT32_MAX && a.v > -INT32_MAX && b.v < INT32_MAX && b.v > -INT32_MAX;
}

struct wml_sym wml_sym_sum(struct wml_model *m, struct wml_sym a, struct wml_sym b)
{
    if (wml_sym_is(a, 0)) return b;
    if (wml_sym_is(b, 0)) return a;
    if (are_numbers(a, b)) return wml_sym_number(a.v + b.v);
    if (a.kind != WML_SYM_SYMBOL || b.kind != WML_SYM_SYMBOL || wml_str_has(a.s, " ") || wml_str_has(b.s, " ")) return (struct wml_sym){0};
    if (wml_str_cmp(a.s, b.s) > 0) { /* one name whichever way it is written */
        struct wml_sym t = a;
        a = b, b = t;
    }
    return (struct wml_sym){.kind = WML_SYM_SYMBOL, .s = wml_arena_fmt(&m->arena, "%.*s + %.*s", WML_ARG(a.s), WML_ARG(b.s))};
}

struct wml_sym wml_sym_difference(struct wml_sym a, struct wml_sym b)
{
    if (wml_sym_is(b, 0)) return a;
    if (wml_sym_eq(a, b)) return wml_sym_number(0);
    if (are_numbers(a, b)) return wml_sym_number(a.v - b.v);
    if (a.kind != WML_SYM_SYMBOL || b.kind != WML_SYM_SYMBOL || a.s.len < b.s.len + 4) return (struct wml_sym){0};
    size_t rest = a.s.len - b.s.len - 3;
    struct wml_str head = wml_str_sub(a.s, 0, b.s.len), tail = wml_str_sub(a.s, rest + 3, a.s.len);
    struct wml_str after = wml_str_sub(a.s, b.s.len, a.s.len), before = wml_str_sub(a.s, 0, rest);
    if (wml_str_eq(head, b.s) && wml_str_starts(after, " + ")) return (struct wml_sym){.kind = WML_SYM_SYMBOL, .s = wml_str_sub(after, 3, after.len)};
    if (wml_str_eq(tail, b.s) && wml_str_is(wml_str_sub(a.s, rest, rest + 3), " + ")) return (struct wml_sym){.kind = WML_SYM_SYMBOL, .s = before};
    return (struct wml_sym){0};
}

struct wml_sym wml_sym_broadcast(struct wml_sym a, struct wml_sym b)
{
    if (wml_sym_is(a, 1) || wml_sym_eq(a, b)) return b;
    if (wml_sym_is(b, 1)) return a;
    if (a.kind == WML_SYM_NUMBER && b.kind != WML_SYM_NUMBER) return a; /* above 1: the other fits it */
    if (b.kind == WML_SYM_NUMBER && a.kind != WML_SYM_NUMBER) return b;
    return (struct wml_sym){0};
}

/* -- vectors -- */

static bool forget(void *arg, struct wml_graph *g)
{
    (void)arg;
    for (struct wml_value *v = g->first_value; v; v = v->next) v->mark = 0;
    return true;
}

void wml_syms_begin(struct wml_pass_run *r)
{
    wml_model_each_graph(r->model, forget, NULL);
}

static void keep(struct wml_pass_run *r, struct wml_value *v, const struct wml_syms *s)
{
    struct wml_syms *copy = WML_NEW(r->scratch, struct wml_syms);
    *copy = *s;
    v->mark = (uint64_t)(uintptr_t)copy;
}

const struct wml_syms *wml_syms_of(struct wml_pass_run *r, struct wml_value *v)
{
    struct wml_syms s = {0};
    int64_t *at;
    uint64_t count;
    const struct wml_tensor *t = v ? wml_constant_of(v) : NULL;
    if (!v) return NULL;
    if (!v->mark && t && t->dims.len <= 1 && (wml_dtype_is_integer(t->dtype) || t->dtype == WML_BOOL) && wml_tensor_count(t, &count, NULL) &&
        count <= WML_SYMS && wml_constant_ints(r, v, &at, &s.n)) {
        for (size_t i = 0; i < s.n; i++) s.at[i] = wml_sym_number(at[i]);
        keep(r, v, &s);
    }
    return (const struct wml_syms *)(uintptr_t)v->mark;
}

static bool of_shape(const struct wml_node *n, struct wml_syms *out)
{
    int64_t rank = wml_value_rank(n->in[0]), from = wml_attr_int(n, "start", 0), to = wml_attr_int(n, "end", rank);
    if (rank < 0 || rank > WML_SYMS) return false;
    from = WML_MAX(from < 0 ? from + rank : from, 0);
    to = WML_MIN(to < 0 ? to + rank : to, rank);
    for (int64_t i = from; i < to; i++) out->at[out->n++] = wml_sym_axis(n->in[0], (size_t)i);
    return true;
}

static bool of_gather(struct wml_pass_run *r, const struct wml_node *n, const struct wml_syms *x, struct wml_syms *out)
{
    const struct wml_syms *at = wml_syms_of(r, wml_node_in(n, 1));
    if (!at || !wml_constant_of(n->in[1]) || wml_attr_int(n, "axis", 0) != 0) return false;
    for (size_t i = 0; i < at->n; i++) {
        int64_t k = at->at[i].v < 0 ? at->at[i].v + (int64_t)x->n : at->at[i].v;
        if (k < 0 || k >= (int64_t)x->n) return false;
        out->at[out->n++] = x->at[k];
    }
    return true;
}

static bool of_slice(struct wml_pass_run *r, const struct wml_node *n, const struct wml_syms *x, struct wml_syms *out)
{
    struct wml_slice s;
    if (!wml_slice_of(r, n, &s) || s.n != 1 || s.size[0] != (int64_t)x->n) return false;
    for (int64_t i = 0; i < s.count[0]; i++) out->at[out->n++] = x->at[s.start[0] + i * s.step[0]];
    return true;
}

static bool of_concat(struct wml_pass_run *r, const struct wml_node *n, struct wml_syms *out)
{
    for (size_t i = 0; i < n->n_in; i++) {
        const struct wml_syms *x = wml_syms_of(r, n->in[i]);
        if (!x) { /* one element that nothing is known of leaves the others their places */
            if (wml_value_rank(n->in[i]) != 1 || wml_value_axis(n->in[i], 0).size != 1 || out->n == WML_SYMS) return false;
            out->at[out->n++] = (struct wml_sym){0};
            continue;
        }
        if (out->n + x->n > WML_SYMS) return false;
        for (size_t k = 0; k < x->n; k++) out->at[out->n++] = x->at[k];
    }
    return true;
}

static struct wml_sym product(struct wml_sym a, struct wml_sym b)
{
    if (wml_sym_is(a, 1)) return b;
    if (wml_sym_is(b, 1)) return a;
    return are_numbers(a, b) ? wml_sym_number(a.v * b.v) : (struct wml_sym){0};
}

static struct wml_sym quotient(struct wml_sym a, struct wml_sym b)
{
    if (wml_sym_is(b, 1)) return a;
    if (a.kind != WML_SYM_NUMBER || b.kind != WML_SYM_NUMBER || a.v < 0 || b.v < 1) return (struct wml_sym){0};
    return wml_sym_number(a.v / b.v);
}

static struct wml_sym equal(struct wml_sym a, struct wml_sym b)
{
    if (wml_sym_eq(a, b)) return wml_sym_number(1);
    if (a.kind == WML_SYM_NUMBER && b.kind == WML_SYM_NUMBER) return wml_sym_number(0);
    if ((a.kind == WML_SYM_NUMBER && a.v < 0 && b.kind == WML_SYM_SYMBOL) || (b.kind == WML_SYM_NUMBER && b.v < 0 && a.kind == WML_SYM_SYMBOL))
        return wml_sym_number(0); /* a size is never negative */
    return (struct wml_sym){0};
}

static bool of_pairs(struct wml_pass_run *r, const struct wml_node *n, const struct wml_syms *a, struct wml_syms *out)
{
    const struct wml_syms *b = wml_syms_of(r, wml_node_in(n, 1));
    if (!b || (a->n != b->n && a->n != 1 && b->n != 1)) return false;
    out->n = WML_MAX(a->n, b->n);
    for (size_t i = 0; i < out->n; i++) {
        struct wml_sym x = a->at[a->n == 1 ? 0 : i], y = b->at[b->n == 1 ? 0 : i];
        if (wml_node_is(n, "Add")) out->at[i] = wml_sym_sum(r->model, x, y);
        else if (wml_node_is(n, "Sub")) out->at[i] = wml_sym_difference(x, y);
        else if (wml_node_is(n, "Mul")) out->at[i] = product(x, y);
        else if (wml_node_is(n, "Div")) out->at[i] = quotient(x, y);
        else if (wml_node_is(n, "Equal")) out->at[i] = equal(x, y);
        else return false;
    }
    return true;
}

static bool of_where(struct wml_pass_run *r, const struct wml_node *n, const struct wml_syms *c, struct wml_syms *out)
{
    const struct wml_syms *a = wml_syms_of(r, wml_node_in(n, 1)), *b = wml_syms_of(r, wml_node_in(n, 2));
    if (!a || !b) return false;
    out->n = WML_MAX(c->n, WML_MAX(a->n, b->n));
    if ((c->n != out->n && c->n != 1) || (a->n != out->n && a->n != 1) || (b->n != out->n && b->n != 1)) return false;
    for (size_t i = 0; i < out->n; i++) {
        struct wml_sym is = c->at[c->n == 1 ? 0 : i], x = a->at[a->n == 1 ? 0 : i], y = b->at[b->n == 1 ? 0 : i];
        if (is.kind == WML_SYM_NUMBER) out->at[i] = is.v ? x : y;
        else if (wml_sym_eq(x, y)) out->at[i] = x;
    }
    return true;
}

static bool passes_on(const struct wml_node *n)
{
    static const char *const op[] = {"Unsqueeze", "Squeeze", "Identity", "Cast", "Reshape"};
    const struct wml_value *out = n->out[0];
    for (size_t i = 0; i < WML_COUNT(op); i++)
        if (wml_node_is(n, op[i]))
            return (wml_dtype_is_integer((int)wml_value_elem(out)) || wml_value_elem(out) == WML_BOOL) && wml_value_rank(out) >= 0 &&
                   wml_value_rank(out) <= 1;
    return false;
}

static void note_split(struct wml_pass_run *r, const struct wml_node *n, const struct wml_syms *x)
{
    size_t at = 0;
    for (size_t i = 0; i < n->n_out; i++) {
        struct wml_syms s = {0};
        int64_t size = n->out[i] && wml_value_rank(n->out[i]) == 1 ? wml_value_axis(n->out[i], 0).size : -1;
        if (size < 0 || at + (size_t)size > x->n) return;
        for (int64_t k = 0; k < size; k++) s.at[s.n++] = x->at[at++];
        keep(r, n->out[i], &s);
    }
}

void wml_syms_note(struct wml_pass_run *r, const struct wml_node *n)
{
    struct wml_syms s = {0};
    struct wml_value *out = wml_node_out(n, 0);
    bool known = false;
    if (!out || !wml_node_in(n, 0)) return;
    if (wml_node_is(n, "Shape")) {
        known = of_shape(n, &s);
    } else if (wml_node_is(n, "Concat")) {
        known = (wml_value_elem(out) == WML_I64 || wml_value_elem(out) == WML_I32) && wml_value_rank(out) == 1 && of_concat(r, n, &s);
    } else {
        const struct wml_syms *x = wml_syms_of(r, n->in[0]);
        if (!x) return;
        if (wml_node_is(n, "Split")) note_split(r, n, x);
        else if (wml_node_is(n, "Gather")) known = of_gather(r, n, x, &s);
        else if (wml_node_is(n, "Slice")) known = of_slice(r, n, x, &s);
        else if (wml_node_is(n, "Where")) known = of_where(r, n, x, &s);
        else if (passes_on(n)) s = *x, known = true;
        else known = n->n_in == 2 && of_pairs(r, n, x, &s);
    }
    if (known && s.n <= WML_SYMS) keep(r, out, &s);
}
