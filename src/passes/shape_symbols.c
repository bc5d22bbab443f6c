/* Arithmetic on shapes before the graph runs. */
#include "passes/shape_symbols.h"

#include <inttypes.h>

#include "passes/slice_info.h"

struct wml_sym wml_sym_number(int64_t v)
{
    return (struct wml_sym){.kind = WML_SYM_NUMBER, .v = v};
}

static struct wml_sym symbol(struct wml_str s)
{
    return s.len ? (struct wml_sym){.kind = WML_SYM_SYMBOL, .s = s} : (struct wml_sym){0};
}

static struct wml_sym plain_axis(const struct wml_value *v, size_t axis)
{
    struct wml_axis a = wml_value_axis(v, axis);
    return a.size >= 0 ? wml_sym_number(a.size) : symbol(a.symbol);
}

struct wml_sym wml_sym_axis(const struct wml_symbols *c, const struct wml_value *v, size_t axis)
{
    struct wml_sym a = plain_axis(v, axis);
    for (size_t i = 0; a.kind == WML_SYM_SYMBOL && i < c->sum.len; i++)
        if (wml_str_eq(a.s, c->declared.at[i])) return symbol(c->sum.at[i]);
    return a;
}

struct wml_str wml_sym_name(const struct wml_symbols *c, struct wml_sym a)
{
    for (size_t i = 0; i < c->sum.len; i++)
        if (wml_str_eq(a.s, c->sum.at[i])) return c->declared.at[i];
    return a.s;
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

struct wml_sym wml_sym_least(struct wml_model *m, struct wml_sym a, struct wml_sym b)
{
    if (a.kind == WML_SYM_SYMBOL) {
        struct wml_sym t = a;
        a = b, b = t;
    }
    if (a.kind != WML_SYM_NUMBER || a.v < 1 || b.kind != WML_SYM_SYMBOL) return (struct wml_sym){0};
    return (struct wml_sym){.kind = WML_SYM_SYMBOL, .s = wml_arena_fmt(&m->arena, "min(%" PRId64 ", %.*s)", a.v, WML_ARG(b.s))};
}

/* a is the smaller of b and some number. */
static bool is_least_of(struct wml_sym a, struct wml_sym b)
{
    size_t tail = b.s.len + 1;
    if (a.kind != WML_SYM_SYMBOL || b.kind != WML_SYM_SYMBOL || a.s.len < tail + 2 || !wml_str_starts(a.s, "min(")) return false;
    struct wml_str end = wml_str_sub(a.s, a.s.len - tail, a.s.len - 1), before = wml_str_sub(a.s, a.s.len - tail - 2, a.s.len - tail);
    return wml_str_eq(end, b.s) && wml_str_is(before, ", ");
}

/* "min(n, a)" fits a where it is a, or 1: either way the result is a. */
struct wml_sym wml_sym_broadcast(struct wml_sym a, struct wml_sym b)
{
    if (is_least_of(a, b)) return b;
    if (is_least_of(b, a)) return a;
    if (wml_sym_is(a, 1) || wml_sym_eq(a, b)) return b;
    if (wml_sym_is(b, 1)) return a;
    if (a.kind == WML_SYM_NUMBER && b.kind != WML_SYM_NUMBER) return a; /* above 1: the other fits it */
    if (b.kind == WML_SYM_NUMBER && a.kind != WML_SYM_NUMBER) return b;
    return (struct wml_sym){0};
}

/* -- vectors -- */

/* The sums that graph outputs have other names for. */
static void note_names(struct wml_symbols *c, const struct wml_node *concat)
{
    const struct wml_value *out = concat->out[0];
    int64_t rank = wml_value_rank(out), axis = wml_attr_int(concat, "axis", 0);
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank || !wml_value_axis(out, (size_t)axis).symbol.len) return;
    struct wml_sym sum = wml_sym_number(0);
    for (size_t i = 0; i < concat->n_in; i++) {
        if (wml_value_rank(concat->in[i]) != rank) return;
        sum = wml_sym_sum(c->r->model, sum, plain_axis(concat->in[i], (size_t)axis));
    }
    struct wml_str declared = wml_value_axis(out, (size_t)axis).symbol;
    if (sum.kind != WML_SYM_SYMBOL || !wml_str_has(sum.s, " + ") || wml_str_eq(sum.s, declared)) return;
    for (size_t i = 0; i < c->sum.len; i++)
        if (wml_str_eq(c->sum.at[i], sum.s) || wml_str_eq(c->declared.at[i], declared)) return;
    WML_PUSH_IN(c->r->scratch, &c->sum, sum.s);
    WML_PUSH_IN(c->r->scratch, &c->declared, declared);
}

static bool start(void *arg, struct wml_graph *g)
{
    for (struct wml_value *v = g->first_value; v; v = v->next) v->mark = 0;
    for (const struct wml_node *n = g->first; n; n = n->next)
        if (wml_node_is(n, "Concat") && wml_node_out(n, 0) && n->out[0]->n_outputs) note_names(arg, n);
    return true;
}

struct wml_symbols *wml_symbols_new(struct wml_pass_run *r)
{
    struct wml_symbols *c = WML_NEW(r->scratch, struct wml_symbols);
    c->r = r;
    wml_model_each_graph(r->model, start, c);
    return c;
}

static void keep(struct wml_symbols *c, struct wml_value *v, const struct wml_syms *s)
{
    struct wml_syms *copy = WML_NEW(c->r->scratch, struct wml_syms);
    *copy = *s;
    v->mark = (uint64_t)(uintptr_t)copy;
}

const struct wml_syms *wml_syms_of(struct wml_symbols *c, struct wml_value *v)
{
    struct wml_syms s = {0};
    int64_t *at;
    uint64_t count;
    const struct wml_tensor *t = v ? wml_constant_of(v) : NULL;
    if (!v) return NULL;
    if (!v->mark && t && t->dims.len <= 1 && (wml_dtype_is_integer(t->dtype) || t->dtype == WML_BOOL) && wml_tensor_count(t, &count, NULL) &&
        count <= WML_SYMS && wml_constant_ints(c->r, v, &at, &s.n)) {
        for (size_t i = 0; i < s.n; i++) s.at[i] = wml_sym_number(at[i]);
        keep(c, v, &s);
    }
    return (const struct wml_syms *)(uintptr_t)v->mark;
}

static bool of_shape(const struct wml_symbols *c, const struct wml_node *n, struct wml_syms *out)
{
    int64_t rank = wml_value_rank(n->in[0]), from = wml_attr_int(n, "start", 0), to = wml_attr_int(n, "end", rank);
    if (rank < 0 || rank > WML_SYMS) return false;
    from = WML_MAX(from < 0 ? from + rank : from, 0);
    to = WML_MIN(to < 0 ? to + rank : to, rank);
    for (int64_t i = from; i < to; i++) out->at[out->n++] = wml_sym_axis(c, n->in[0], (size_t)i);
    return true;
}

static bool of_gather(struct wml_symbols *c, const struct wml_node *n, const struct wml_syms *x, struct wml_syms *out)
{
    const struct wml_syms *at = wml_syms_of(c, wml_node_in(n, 1));
    if (!at || !wml_constant_of(n->in[1]) || wml_attr_int(n, "axis", 0) != 0) return false;
    for (size_t i = 0; i < at->n; i++) {
        int64_t k = at->at[i].v < 0 ? at->at[i].v + (int64_t)x->n : at->at[i].v;
        if (k < 0 || k >= (int64_t)x->n) return false;
        out->at[out->n++] = x->at[k];
    }
    return true;
}

static bool of_slice(struct wml_symbols *c, const struct wml_node *n, const struct wml_syms *x, struct wml_syms *out)
{
    struct wml_slice s;
    if (!wml_slice_of(c->r, n, &s) || s.n != 1 || s.size[0] != (int64_t)x->n) return false;
    for (int64_t i = 0; i < s.count[0]; i++) out->at[out->n++] = x->at[s.start[0] + i * s.step[0]];
    return true;
}

static bool of_concat(struct wml_symbols *c, const struct wml_node *n, struct wml_syms *out)
{
    for (size_t i = 0; i < n->n_in; i++) {
        const struct wml_syms *x = wml_syms_of(c, n->in[i]);
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

static bool of_pairs(struct wml_symbols *c, const struct wml_node *n, const struct wml_syms *a, struct wml_syms *out)
{
    const struct wml_syms *b = wml_syms_of(c, wml_node_in(n, 1));
    if (!b || (a->n != b->n && a->n != 1 && b->n != 1)) return false;
    out->n = WML_MAX(a->n, b->n);
    for (size_t i = 0; i < out->n; i++) {
        struct wml_sym x = a->at[a->n == 1 ? 0 : i], y = b->at[b->n == 1 ? 0 : i];
        if (wml_node_is(n, "Add")) out->at[i] = wml_sym_sum(c->r->model, x, y);
        else if (wml_node_is(n, "Sub")) out->at[i] = wml_sym_difference(x, y);
        else if (wml_node_is(n, "Mul")) out->at[i] = product(x, y);
        else if (wml_node_is(n, "Div")) out->at[i] = quotient(x, y);
        else if (wml_node_is(n, "Equal")) out->at[i] = equal(x, y);
        else return false;
    }
    return true;
}

static bool of_where(struct wml_symbols *c, const struct wml_node *n, const struct wml_syms *is, struct wml_syms *out)
{
    const struct wml_syms *a = wml_syms_of(c, wml_node_in(n, 1)), *b = wml_syms_of(c, wml_node_in(n, 2));
    if (!a || !b) return false;
    out->n = WML_MAX(is->n, WML_MAX(a->n, b->n));
    if ((is->n != out->n && is->n != 1) || (a->n != out->n && a->n != 1) || (b->n != out->n && b->n != 1)) return false;
    for (size_t i = 0; i < out->n; i++) {
        struct wml_sym so = is->at[is->n == 1 ? 0 : i], x = a->at[a->n == 1 ? 0 : i], y = b->at[b->n == 1 ? 0 : i];
        if (so.kind == WML_SYM_NUMBER) out->at[i] = so.v ? x : y;
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

static void note_split(struct wml_symbols *c, const struct wml_node *n, const struct wml_syms *x)
{
    size_t at = 0;
    for (size_t i = 0; i < n->n_out; i++) {
        struct wml_syms s = {0};
        int64_t size = n->out[i] && wml_value_rank(n->out[i]) == 1 ? wml_value_axis(n->out[i], 0).size : -1;
        if (size < 0 || at + (size_t)size > x->n) return;
        for (int64_t k = 0; k < size; k++) s.at[s.n++] = x->at[at++];
        keep(c, n->out[i], &s);
    }
}

void wml_syms_note(struct wml_symbols *c, const struct wml_node *n)
{
    struct wml_syms s = {0};
    struct wml_value *out = wml_node_out(n, 0);
    bool known = false;
    if (!out || !wml_node_in(n, 0)) return;
    if (wml_node_is(n, "Shape")) {
        known = of_shape(c, n, &s);
    } else if (wml_node_is(n, "Concat")) {
        known = (wml_value_elem(out) == WML_I64 || wml_value_elem(out) == WML_I32) && wml_value_rank(out) == 1 && of_concat(c, n, &s);
    } else {
        const struct wml_syms *x = wml_syms_of(c, n->in[0]);
        if (!x) return;
        if (wml_node_is(n, "Split")) note_split(c, n, x);
        else if (wml_node_is(n, "Gather")) known = of_gather(c, n, x, &s);
        else if (wml_node_is(n, "Slice")) known = of_slice(c, n, x, &s);
        else if (wml_node_is(n, "Where")) known = of_where(c, n, x, &s);
        else if (passes_on(n)) s = *x, known = true;
        else known = n->n_in == 2 && of_pairs(c, n, x, &s);
    }
    if (known && s.n <= WML_SYMS) keep(c, out, &s);
}
