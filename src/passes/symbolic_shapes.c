/* Sizes that inference leaves open because they go through arithmetic on shapes: symbols are followed through Shape,
 * Gather, Concat, Where, ... into what Reshape, Expand, Range make of them, and on through the operators behind.
 * Graph outputs keep the type they declare. Then the targets of Reshape and Expand that only say "as it was" become
 * constants, and the arithmetic is left over. */
#include "passes/shape_symbols.h"

struct dims {
    size_t n;
    struct wml_sym at[WML_SYMS];
};

static bool of_value(const struct wml_symbols *c, const struct wml_value *v, struct dims *d)
{
    int64_t rank = v ? wml_value_rank(v) : -1;
    *d = (struct dims){0};
    if (rank < 0 || rank > WML_SYMS) return false;
    for (int64_t i = 0; i < rank; i++) d->at[d->n++] = wml_sym_axis(c, v, (size_t)i);
    return true;
}

static bool broadcast(struct dims *a, const struct dims *b)
{
    struct dims out = {.n = WML_MAX(a->n, b->n)};
    for (size_t i = 0; i < out.n; i++) {
        struct wml_sym one = wml_sym_number(1);
        struct wml_sym x = i + a->n < out.n ? one : a->at[i + a->n - out.n], y = i + b->n < out.n ? one : b->at[i + b->n - out.n];
        out.at[i] = wml_sym_broadcast(x, y);
    }
    *a = out;
    return true;
}

/* -- one operator each: the dims of output 0 -- */

static bool of_reshape(struct wml_symbols *c, const struct wml_node *n, struct dims *d)
{
    const struct wml_syms *to = wml_syms_of(c, wml_node_in(n, 1));
    bool copies = !wml_attr_int(n, "allowzero", 0);
    struct dims x;
    size_t open = 0, at = 0;
    if (!to || !of_value(c, n->in[0], &x)) return false;
    d->n = to->n;
    for (size_t i = 0; i < to->n; i++) {
        d->at[i] = wml_sym_is(to->at[i], 0) && copies && i < x.n ? x.at[i] : to->at[i];
        if (!wml_sym_is(d->at[i], -1)) continue;
        d->at[i] = (struct wml_sym){0};
        open++, at = i;
    }
    if (open != 1) return true;
    /* What is left when equal sizes are taken from both sides: numbers, or one symbol. */
    struct wml_sym rest = wml_sym_number(1);
    int64_t up = 1, down = 1;
    bool used[WML_SYMS] = {0};
    for (size_t i = 0; i < d->n; i++) {
        size_t k = 0;
        if (i == at) continue;
        if (d->at[i].kind == WML_SYM_OPEN) return true;
        if (d->at[i].kind == WML_SYM_NUMBER) {
            if (d->at[i].v < 1 || d->at[i].v > INT32_MAX / down) return true;
            down *= d->at[i].v;
            continue;
        }
        while (k < x.n && (used[k] || !wml_sym_eq(x.at[k], d->at[i]))) k++;
        if (k == x.n) return true;
        used[k] = true;
    }
    for (size_t k = 0; k < x.n; k++) {
        if (used[k]) continue;
        if (x.at[k].kind == WML_SYM_NUMBER && x.at[k].v > 0 && x.at[k].v <= INT32_MAX / up) up *= x.at[k].v;
        else if (x.at[k].kind == WML_SYM_SYMBOL && wml_sym_is(rest, 1)) rest = x.at[k];
        else return true;
    }
    if (wml_sym_is(rest, 1) && up % down == 0) d->at[at] = wml_sym_number(up / down);
    else if (up == down) d->at[at] = rest;
    return true;
}

static bool of_expand(struct wml_symbols *c, const struct wml_node *n, struct dims *d)
{
    const struct wml_syms *to = wml_syms_of(c, wml_node_in(n, 1));
    struct dims shape = {0};
    if (!to || !of_value(c, n->in[0], d)) return false;
    for (; shape.n < to->n; shape.n++) shape.at[shape.n] = to->at[shape.n];
    return broadcast(d, &shape);
}

static bool of_range(struct wml_symbols *c, const struct wml_node *n, struct dims *d)
{
    const struct wml_syms *v[3];
    for (size_t i = 0; i < 3; i++)
        if (!(v[i] = wml_syms_of(c, wml_node_in(n, i))) || v[i]->n != 1) return false;
    if (!wml_sym_is(v[2]->at[0], 1)) return false;
    d->n = 1;
    d->at[0] = wml_sym_difference(v[1]->at[0], v[0]->at[0]);
    return d->at[0].kind == WML_SYM_SYMBOL;
}

static bool of_matmul(const struct wml_symbols *c, const struct wml_node *n, struct dims *d)
{
    struct dims b;
    if (!of_value(c, n->in[0], d) || !of_value(c, wml_node_in(n, 1), &b) || d->n < 2 || b.n < 2) return false;
    struct wml_sym rows = d->at[d->n - 2], columns = b.at[b.n - 1];
    d->n -= 2, b.n -= 2;
    broadcast(d, &b);
    d->at[d->n++] = rows;
    d->at[d->n++] = columns;
    return d->n <= WML_SYMS;
}

static bool of_gemm(const struct wml_symbols *c, const struct wml_node *n, struct dims *d)
{
    struct dims a, b;
    if (!of_value(c, n->in[0], &a) || !of_value(c, wml_node_in(n, 1), &b) || a.n != 2 || b.n != 2) return false;
    d->n = 2;
    d->at[0] = a.at[wml_attr_int(n, "transA", 0) ? 1 : 0];
    d->at[1] = b.at[wml_attr_int(n, "transB", 0) ? 0 : 1];
    return true;
}

static bool of_transpose(const struct wml_symbols *c, const struct wml_node *n, struct dims *d)
{
    struct dims x;
    size_t len;
    const int64_t *perm = wml_attr_ints(n, "perm", &len);
    if (!of_value(c, n->in[0], &x) || !perm || len != x.n) return false;
    d->n = len;
    for (size_t i = 0; i < len; i++) {
        if (perm[i] < 0 || perm[i] >= (int64_t)len) return false;
        d->at[i] = x.at[perm[i]];
    }
    return true;
}

/* Unsqueeze, Squeeze, Reduce*: axes go, come, or become one. */
static bool of_axes(struct wml_symbols *c, const struct wml_node *n, struct dims *d)
{
    struct dims x;
    const int64_t *axes;
    size_t len, from = 0;
    bool adds = wml_node_is(n, "Unsqueeze"), keeps = !adds && !wml_node_is(n, "Squeeze") && wml_attr_int(n, "keepdims", 1) == 1;
    uint32_t at = 0;
    if (!of_value(c, n->in[0], &x) || !wml_axes_of(c->r, n, &axes, &len) || !len) return false;
    int64_t rank = (int64_t)(adds ? x.n + len : x.n);
    if (rank > WML_SYMS) return false;
    for (size_t i = 0; i < len; i++) {
        int64_t a = axes[i] < 0 ? axes[i] + rank : axes[i];
        if (a < 0 || a >= rank || (at >> a & 1)) return false;
        at |= 1u << a;
    }
    for (int64_t i = 0; i < rank; i++) {
        bool named = at >> i & 1;
        struct wml_sym s = named && adds ? wml_sym_number(1) : x.at[from++];
        if (!named || adds) d->at[d->n++] = s;
        else if (keeps) d->at[d->n++] = wml_sym_number(1);
    }
    return true;
}

static bool of_concat(struct wml_symbols *c, const struct wml_node *n, struct dims *d)
{
    struct dims x;
    int64_t axis = wml_attr_int(n, "axis", 0);
    if (!of_value(c, n->in[0], d)) return false;
    if (axis < 0) axis += (int64_t)d->n;
    if (axis < 0 || axis >= (int64_t)d->n) return false;
    for (size_t i = 1; i < n->n_in; i++) {
        if (!of_value(c, n->in[i], &x) || x.n != d->n) return false;
        for (size_t k = 0; k < d->n; k++)
            if ((int64_t)k == axis) d->at[k] = wml_sym_sum(c->r->model, d->at[k], x.at[k]);
            else if (d->at[k].kind == WML_SYM_OPEN || x.at[k].kind == WML_SYM_NUMBER) d->at[k] = x.at[k];
    }
    return true;
}

/* Every element of a constant, or of an input that is not there, is x. */
static bool all_are(struct wml_symbols *c, struct wml_value *v, int64_t x)
{
    const struct wml_syms *s = v ? wml_syms_of(c, v) : NULL;
    for (size_t i = 0; s && i < s->n; i++)
        if (!wml_sym_is(s->at[i], x)) return false;
    return s || !v;
}

/* The first elements of an axis, up to a size that is told: tables of positions are cut so. */
static struct wml_sym cut_at(struct wml_symbols *c, struct wml_sym size, struct wml_sym end)
{
    if (wml_sym_eq(size, end)) return size;
    if (end.kind == WML_SYM_NUMBER && end.v >= INT32_MAX) return size;
    return wml_sym_least(c->r->model, size, end);
}

/* Slice, Split: other cut axes are left to inference. */
static bool of_cut(struct wml_symbols *c, const struct wml_node *n, struct dims *d)
{
    int64_t axis = wml_attr_int(n, "axis", 0), *axes = &axis;
    const struct wml_syms *end = NULL;
    size_t len = 1;
    if (!of_value(c, n->in[0], d)) return false;
    if (wml_node_is(n, "Slice") && (!wml_constant_of(wml_node_in(n, 3)) || !wml_constant_ints(c->r, n->in[3], &axes, &len))) return false;
    if (wml_node_is(n, "Slice") && n->in[1] && all_are(c, n->in[1], 0) && all_are(c, wml_node_in(n, 4), 1)) end = wml_syms_of(c, n->in[2]);
    if (end && end->n != len) return false;
    for (size_t i = 0; i < len; i++) {
        int64_t a = axes[i] < 0 ? axes[i] + (int64_t)d->n : axes[i];
        if (a < 0 || a >= (int64_t)d->n) return false;
        d->at[a] = end ? cut_at(c, d->at[a], end->at[i]) : (struct wml_sym){0};
    }
    return true;
}

static bool of_gather(const struct wml_symbols *c, const struct wml_node *n, struct dims *d)
{
    struct dims x, at;
    int64_t axis = wml_attr_int(n, "axis", 0);
    if (!of_value(c, n->in[0], &x) || !of_value(c, wml_node_in(n, 1), &at)) return false;
    if (axis < 0) axis += (int64_t)x.n;
    if (axis < 0 || axis >= (int64_t)x.n || x.n + at.n - 1 > WML_SYMS) return false;
    for (size_t i = 0; i < (size_t)axis; i++) d->at[d->n++] = x.at[i];
    for (size_t i = 0; i < at.n; i++) d->at[d->n++] = at.at[i];
    for (size_t i = (size_t)axis + 1; i < x.n; i++) d->at[d->n++] = x.at[i];
    return true;
}

static bool is_like_first(const struct wml_node *n)
{
    static const char *const onnx[] = {"Cast", "CastLike", "Softmax", "LogSoftmax", "LayerNormalization", "RMSNormalization", "Identity", "IsNaN", "Not",
                                       "RotaryEmbedding", "Gelu", "Clip", "Trilu", "CumSum", "LpNormalization"};
    static const char *const contrib[] = {"RotaryEmbedding", "QuickGelu", "Gelu", "FastGelu", "SkipSimplifiedLayerNormalization", "SkipLayerNormalization"};
    for (size_t i = 0; i < WML_COUNT(onnx); i++)
        if (wml_node_is(n, onnx[i])) return true;
    for (size_t i = 0; i < WML_COUNT(contrib); i++)
        if (wml_node_is_in(n, "com.microsoft", contrib[i])) return true;
    return false;
}

static bool of_elementwise(const struct wml_symbols *c, const struct wml_node *n, struct dims *d)
{
    struct dims x;
    if (!of_value(c, n->in[0], d)) return false;
    for (size_t i = 1; i < n->n_in; i++)
        if (!n->in[i] || !of_value(c, n->in[i], &x) || !broadcast(d, &x)) return false;
    return true;
}

static bool dims_of(struct wml_symbols *c, const struct wml_node *n, struct dims *d)
{
    *d = (struct dims){0};
    if (!wml_node_in(n, 0)) return false;
    if (is_like_first(n)) return of_value(c, n->in[0], d);
    if (wml_op_has(n, WML_OP_ELEMENTWISE) || wml_node_is(n, "Where")) return of_elementwise(c, n, d);
    if (wml_node_is(n, "Reshape")) return of_reshape(c, n, d);
    if (wml_node_is(n, "Expand")) return of_expand(c, n, d);
    if (wml_node_is(n, "Range")) return of_range(c, n, d);
    if (wml_node_is(n, "MatMul")) return of_matmul(c, n, d);
    if (wml_node_is(n, "Gemm")) return of_gemm(c, n, d);
    if (wml_node_is(n, "Transpose")) return of_transpose(c, n, d);
    if (wml_node_is(n, "Concat")) return of_concat(c, n, d);
    if (wml_node_is(n, "Slice") || wml_node_is(n, "Split")) return of_cut(c, n, d);
    if (wml_node_is(n, "Gather")) return of_gather(c, n, d);
    if (wml_node_is(n, "Unsqueeze") || wml_node_is(n, "Squeeze") || wml_str_starts(n->op_type, "Reduce")) return of_axes(c, n, d);
    return false;
}

/* What inference says nothing of: for GreaterOrEqual ONNX Runtime knows no shape. */
static enum wml_dtype elem_of(const struct wml_node *n, const struct wml_value *out)
{
    static const char *const is[] = {"Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "And", "Or", "Xor", "Not", "IsNaN", "IsInf"};
    if (wml_value_elem(out) != WML_UNDEFINED) return wml_value_elem(out);
    for (size_t i = 0; i < WML_COUNT(is); i++)
        if (wml_node_is(n, is[i])) return WML_BOOL;
    if (wml_node_is(n, "Cast")) return (enum wml_dtype)wml_attr_int(n, "to", WML_UNDEFINED);
    return wml_value_elem(n->in[wml_node_is(n, "CastLike") || wml_node_is(n, "Where") ? 1 : 0]);
}

/* Open axes are filled in; what is known stays. */
static void refine(struct wml_symbols *c, struct wml_node *n, struct wml_value *out, const struct dims *d)
{
    struct wml_axis axis[WML_SYMS];
    int64_t rank = wml_value_rank(out);
    enum wml_dtype elem = elem_of(n, out);
    bool changed = rank < 0;
    if (out->n_outputs || elem == WML_UNDEFINED || (rank >= 0 && rank != (int64_t)d->n)) return;
    for (size_t i = 0; i < d->n; i++) {
        axis[i] = rank < 0 ? (struct wml_axis){.size = -1} : wml_value_axis(out, i);
        if (axis[i].size >= 0 || axis[i].symbol.len || d->at[i].kind == WML_SYM_OPEN) continue;
        if (d->at[i].kind == WML_SYM_NUMBER && d->at[i].v < 0) continue;
        if (d->at[i].kind == WML_SYM_NUMBER) axis[i].size = d->at[i].v;
        else axis[i].symbol = wml_sym_name(c, d->at[i]);
        changed = true;
    }
    if (!changed) return;
    bool untyped = wml_value_elem(out) == WML_UNDEFINED; /* learnt, not changed */
    wml_value_set_type(out, wml_type_tensor(c->r->model, elem, (int64_t)d->n, axis));
    if (!untyped) wml_pass_applied(c->r, n->op_type, n->name);
}

/* -- targets as constants -- */

static void set_target(struct wml_symbols *c, struct wml_node *n, size_t len, const int64_t *to)
{
    wml_node_set_input(n, 1, wml_graph_add_init(n->graph, WML_STR("shape"), wml_tensor_i64s(c->r->model, len, to)));
    wml_pass_applied(c->r, n->op_type, n->name);
}

/* Numbers, 0 where the size is that of the same axis before, -1 where it says so already. One size that is neither may
 * be left to -1 when none of the others can be 0: an empty tensor has no size to be told by. */
static void fix_reshape(struct wml_symbols *c, struct wml_node *n, const struct wml_syms *to)
{
    int64_t v[WML_SYMS];
    struct dims x;
    size_t others = 0, copied = 0, told = 0;
    bool zero = wml_attr_int(n, "allowzero", 0);
    if (!of_value(c, n->in[0], &x)) return;
    for (size_t i = 0; i < to->n; i++) {
        bool same = i < x.n && to->at[i].kind == WML_SYM_SYMBOL && wml_sym_eq(to->at[i], x.at[i]);
        if (to->at[i].kind == WML_SYM_NUMBER && !to->at[i].v && zero) return;
        others += !same && to->at[i].kind != WML_SYM_NUMBER;
        copied += same || wml_sym_is(to->at[i], 0);
        told += wml_sym_is(to->at[i], -1);
        v[i] = same ? 0 : to->at[i].kind == WML_SYM_NUMBER ? to->at[i].v : -1;
    }
    if (others && (others > 1 || copied || told)) return;
    if (zero) wml_attr_remove(n, "allowzero");
    set_target(c, n, to->n, v);
}

/* Behind another view it is a Reshape of what that one sees, when every size is a number or stands at the same place there. */
static void skip_view(struct wml_symbols *c, struct wml_node *n, const struct wml_syms *to)
{
    struct wml_node *view = wml_node_producer(n, 0);
    int64_t v[WML_SYMS];
    struct dims x;
    if (!view || view->graph != n->graph || !view->n_in) return;
    if (!wml_node_is(view, "Reshape") && !wml_node_is(view, "Flatten") && !wml_node_is(view, "Squeeze") && !wml_node_is(view, "Unsqueeze")) return;
    if (!of_value(c, view->in[0], &x)) return;
    for (size_t i = 0; i < to->n; i++) {
        bool same = i < x.n && wml_sym_eq(to->at[i], x.at[i]);
        if (!same && (to->at[i].kind != WML_SYM_NUMBER || to->at[i].v < 1)) return;
        v[i] = same && to->at[i].kind == WML_SYM_SYMBOL ? 0 : to->at[i].v;
        if (same && to->at[i].kind == WML_SYM_NUMBER && to->at[i].v < 1) return;
    }
    wml_node_set_input(n, 0, view->in[0]);
    if (wml_attr_int(n, "allowzero", 0)) wml_attr_remove(n, "allowzero");
    set_target(c, n, to->n, v);
    wml_prune(view);
}

/* 1 where the size is there already. */
static void fix_expand(struct wml_symbols *c, struct wml_node *n, const struct wml_syms *to)
{
    int64_t v[WML_SYMS];
    struct dims x;
    if (!of_value(c, n->in[0], &x)) return;
    for (size_t i = 0; i < to->n; i++) {
        bool same = i + x.n >= to->n && wml_sym_eq(to->at[i], x.at[i + x.n - to->n]);
        if (!same && to->at[i].kind != WML_SYM_NUMBER) return;
        v[i] = same ? 1 : to->at[i].v;
    }
    set_target(c, n, to->n, v);
}

/* Sums that were named by their parts before their declared name was known. */
static bool rename_axes(void *arg, struct wml_graph *g)
{
    struct wml_symbols *c = arg;
    struct wml_axis axis[WML_SYMS];
    for (struct wml_value *v = g->first_value; v; v = v->next) {
        int64_t rank = v->n_outputs || v->n_inputs ? -1 : wml_value_rank(v);
        bool changed = false;
        for (int64_t i = 0; i < rank && rank <= WML_SYMS; i++) {
            axis[i] = wml_value_axis(v, (size_t)i);
            for (size_t k = 0; k < c->sum.len; k++)
                if (axis[i].size < 0 && wml_str_eq(axis[i].symbol, c->sum.at[k])) {
                    axis[i].symbol = c->declared.at[k];
                    changed = true;
                }
        }
        if (changed) wml_value_set_type(v, wml_type_tensor(c->r->model, wml_value_elem(v), rank, axis));
        c->r->applied += changed;
    }
    return true;
}

/* Sizes of which every one is a number. */
static void fold_numbers(struct wml_symbols *c, const struct wml_node *n, struct wml_value *v)
{
    int64_t number[WML_SYMS], rank = v ? wml_value_rank(v) : -1;
    if (rank < 0 || rank > 1 || !v->n_uses || v->n_outputs || v->pinned || wml_value_elem(v) != WML_I64) return;
    const struct wml_syms *s = wml_syms_of(c, v);
    if (!s || (!rank && s->n != 1)) return;
    for (size_t i = 0; i < s->n; i++) {
        if (s->at[i].kind != WML_SYM_NUMBER) return;
        number[i] = s->at[i].v;
    }
    struct wml_tensor *t = rank ? wml_tensor_i64s(c->r->model, s->n, number)
                                : wml_tensor_copy(c->r->model, WML_I64, 0, NULL, number, sizeof *number, NULL);
    wml_value_replace_uses(v, wml_graph_add_init(n->graph, v->name, t));
    wml_pass_applied(c->r, n->op_type, n->name);
}

static void visit(struct wml_symbols *c, struct wml_node *n)
{
    struct dims d;
    const struct wml_syms *to;
    if (wml_node_out(n, 0) && dims_of(c, n, &d))
        for (size_t i = 0; i < (wml_node_is(n, "Split") ? n->n_out : 1); i++)
            if (n->out[i]) refine(c, n, n->out[i], &d);
    wml_syms_note(c, n);
    for (size_t i = 0; i < n->n_out; i++) fold_numbers(c, n, n->out[i]);
    bool reshape = wml_node_is(n, "Reshape"), expand = wml_node_is(n, "Expand");
    if ((!reshape && !expand) || !wml_node_in(n, 1) || wml_constant_of(n->in[1]) || !(to = wml_syms_of(c, n->in[1]))) return;
    if (expand) fix_expand(c, n, to);
    if (reshape) fix_reshape(c, n, to);
    if (reshape && !wml_constant_of(n->in[1])) skip_view(c, n, to);
}

static bool each_graph(void *arg, struct wml_graph *g)
{
    for (struct wml_node *n = g->first; n; n = n->next) visit(arg, n);
    return true;
}

static bool run(struct wml_pass_run *r, struct wml_err *err)
{
    (void)err;
    if (wml_model_opset(r->model, "") < 7) return wml_pass_skip(r, "operators broadcast in other ways below opset 7");
    struct wml_symbols *c = wml_symbols_new(r);
    if (c->sum.len) wml_model_each_graph(r->model, rename_axes, c);
    return wml_model_each_graph(r->model, each_graph, c);
}

const struct wml_pass wml_pass_symbolic_shapes = {
    .name = "symbolic-shapes", .category = "graph", .on = true, .run = run,
    .summary = "Follow symbolic sizes through arithmetic on shapes; make targets of Reshape and Expand constant where they say what was there",
};
