/* Transposes are moved behind what does not care about the order of axes, where that makes them fewer: from a
 * Transpose a region of such operators grows; where it ends at the inverse Transpose both go, where it ends at
 * something else a Transpose is put in. A region is rewritten only when more go than come. */
#include "passes/match.h"

enum { MAX_RANK = 8, MAX_REGION = 4096, MAX_CONST_BYTES = 1 << 20 };
enum { REGION = 0x7472616e }; /* mark of values that lose their Transpose */

struct region {
    struct wml_pass_run *r;
    struct wml_graph *graph;
    int64_t perm[MAX_RANK];
    size_t rank;
    WML_VEC(struct wml_node *) source; /* Transposes whose result is in the region */
    WML_VEC(struct wml_value *) value; /* their results first met, then those of moved nodes */
    WML_VEC(struct wml_node *) moved;
    WML_VEC(struct wml_node *) fence; /* Transposes put in at the border */
};

static bool perm_of(const struct wml_node *n, int64_t *perm, size_t *rank)
{
    const int64_t *p = wml_node_is(n, "Transpose") ? wml_attr_ints(n, "perm", rank) : NULL;
    uint32_t seen = 0;
    if (!p || !wml_node_in(n, 0) || !wml_node_out(n, 0) || *rank > MAX_RANK || n->out[0]->pinned) return false;
    for (size_t i = 0; i < *rank; i++) {
        if (p[i] < 0 || p[i] >= (int64_t)*rank || (seen >> p[i] & 1)) return false;
        seen |= 1u << p[i];
        perm[i] = p[i];
    }
    return true;
}

static bool is_source(const struct region *g, const struct wml_node *n)
{
    int64_t perm[MAX_RANK];
    size_t rank;
    return n && n->graph == g->graph && perm_of(n, perm, &rank) && rank == g->rank && memcmp(perm, g->perm, rank * sizeof *perm) == 0;
}

static bool is_in(const struct wml_value *v)
{
    return v->mark == REGION;
}

static bool is_movable_constant(const struct region *g, const struct wml_value *v)
{
    const struct wml_tensor *t = wml_constant_of(v);
    uint64_t bytes = 0;
    if (!t || t->dims.len > g->rank || t->dtype == WML_STRING || wml_dtype_info(t->dtype)->bits % 8) return false;
    return wml_tensor_size(t, &bytes, NULL) && bytes <= MAX_CONST_BYTES;
}

static bool reduces(struct wml_pass_run *r, const struct wml_node *n, const int64_t **axes, size_t *len)
{
    return wml_str_starts(n->op_type, "Reduce") && wml_attr_int(n, "keepdims", 1) == 1 && wml_axes_of(r, n, axes, len) && *len &&
           *len <= MAX_RANK;
}

/* The kinds of operators that can be moved: by one axis attribute, by a list of axes, or elementwise. */
static bool is_kind(struct region *g, const struct wml_node *n)
{
    const int64_t *axes;
    size_t len;
    int64_t opset = wml_model_opset(g->r->model, "");
    if (n->domain.len && !wml_str_is(n->domain, "ai.onnx")) return false;
    if (wml_node_is(n, "Concat") || wml_node_is(n, "Split")) return true;
    if (wml_node_is(n, "Softmax") || wml_node_is(n, "LogSoftmax") || wml_node_is(n, "Hardmax")) return opset >= 13;
    if (reduces(g->r, n, &axes, &len)) return true;
    return n->n_out == 1 && opset >= 7 && wml_op_has(n, WML_OP_ELEMENTWISE) && !wml_op_has(n, WML_OP_QUANT);
}

/* Every operand is in the region, comes from such a Transpose, or is a constant that can be turned. */
static bool is_movable(struct region *g, const struct wml_node *n)
{
    bool reduce = wml_str_starts(n->op_type, "Reduce"), split = wml_node_is(n, "Split");
    if (n->graph != g->graph || !is_kind(g, n)) return false;
    for (size_t i = 0; i < n->n_out; i++)
        if (!n->out[i] || n->out[i]->pinned || wml_value_rank(n->out[i]) != (int64_t)g->rank) return false;
    for (size_t i = 0; i < n->n_in; i++) {
        const struct wml_value *v = n->in[i];
        if (!v || ((reduce || split) && i > 0)) continue; /* axes, sizes */
        if (is_in(v) || is_source(g, v->def)) continue;
        if (!is_movable_constant(g, v)) return false;
        if (wml_node_is(n, "Concat") && wml_constant_of(v)->dims.len != g->rank) return false;
    }
    return true;
}

static void add_value(struct region *g, struct wml_value *v)
{
    v->mark = REGION;
    WML_PUSH(&g->value, v);
}

static void add_source(struct region *g, struct wml_node *n)
{
    if (is_in(n->out[0])) return;
    WML_PUSH(&g->source, n);
    add_value(g, n->out[0]);
}

static void move(struct region *g, struct wml_node *n)
{
    n->mark = REGION;
    WML_PUSH(&g->moved, n);
    for (size_t i = 0; i < n->n_in; i++)
        if (n->in[i] && n->in[i]->def && is_source(g, n->in[i]->def)) add_source(g, n->in[i]->def);
    for (size_t i = 0; i < n->n_out; i++) add_value(g, n->out[i]);
}

/* A node with several operands may become movable only when the last of them is in: until nothing changes. */
static bool grow(struct region *g)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t i = 0; i < g->value.len; i++)
            for (struct wml_use *u = g->value.at[i]->uses; u; u = u->next) {
                struct wml_node *n = u->node;
                if (n->mark == REGION || wml_node_is(n, "Transpose") || !is_movable(g, n)) continue;
                move(g, n);
                changed = true;
                if (g->value.len > MAX_REGION) return false;
            }
    }
    return true;
}

/* What a use of a region value is: inside, at a Transpose that takes the permutation over, or at the border. */
static bool is_border(const struct region *g, const struct wml_use *u)
{
    int64_t perm[MAX_RANK];
    size_t rank;
    if (u->node->graph == g->graph && u->node->mark == REGION) return false;
    return u->node->graph != g->graph || !perm_of(u->node, perm, &rank) || rank != g->rank;
}

static bool has_border(const struct region *g, const struct wml_value *v)
{
    if (v->n_outputs) return true;
    for (const struct wml_use *u = v->uses; u; u = u->next)
        if (is_border(g, u)) return true;
    return false;
}

static bool is_inverse(const struct region *g, const struct wml_node *n)
{
    int64_t perm[MAX_RANK];
    size_t rank;
    if (!perm_of(n, perm, &rank) || rank != g->rank) return false;
    for (size_t i = 0; i < rank; i++)
        if (g->perm[perm[i]] != (int64_t)i) return false;
    return true;
}

/* Transposes that go minus those that come. */
static int64_t gain(const struct region *g)
{
    int64_t sum = 0;
    for (size_t i = 0; i < g->value.len; i++) {
        const struct wml_value *v = g->value.at[i];
        bool source = is_source(g, v->def);
        if (has_border(g, v)) sum -= source ? 0 : 1;
        else sum += source ? 1 : 0;
        for (const struct wml_use *u = v->uses; u; u = u->next)
            if (u->node->graph == g->graph && wml_node_is(u->node, "Transpose") && is_inverse(g, u->node) &&
                wml_can_bypass(u->node, v))
                sum++;
    }
    return sum;
}

/* -- rewriting -- */

/* The constant as the region sees it: its axis for result axis i becomes axis perm[i]. */
static struct wml_value *turned_constant(struct region *g, struct wml_value *v)
{
    struct wml_tensor *t = wml_constant_of(v);
    int64_t old[MAX_RANK], dims[MAX_RANK], stride[MAX_RANK], at = 1;
    size_t rank = g->rank, lead = rank - t->dims.len, wide = 0, count = 1, width = wml_dtype_info(t->dtype)->bits / 8;
    struct wml_span src;
    for (size_t i = 0; i < rank; i++) {
        old[i] = i < lead ? 1 : t->dims.at[i - lead];
        wide += old[i] != 1;
        count *= (size_t)old[i];
        dims[g->perm[i]] = old[i];
    }
    if (!wide) return v;
    if (wide == 1) return wml_reshaped_constant(g->r, v, rank, dims);
    if (!wml_tensor_bytes(g->r->model, t, &src, NULL)) return v; /* asked before: constants_readable */
    for (size_t i = rank; i-- > 0;) {
        stride[g->perm[i]] = at; /* of the source, along the new axis */
        at *= old[i];
    }
    unsigned char *bytes = wml_arena_alloc(g->r->scratch, count * width + 1);
    for (size_t i = 0; i < count; i++) {
        size_t rest = i, from = 0;
        for (size_t k = rank; k-- > 0;) {
            from += rest % (size_t)dims[k] * (size_t)stride[k];
            rest /= (size_t)dims[k];
        }
        memcpy(bytes + i * width, src.ptr + from * width, width);
    }
    return wml_graph_add_init(v->graph, v->name, wml_tensor_copy(g->r->model, (enum wml_dtype)t->dtype, rank, dims, bytes, count * width, NULL));
}

static void turn_axes(struct region *g, struct wml_node *n)
{
    int64_t rank = (int64_t)g->rank, axis, mapped[MAX_RANK];
    const int64_t *axes;
    size_t len;
    if (wml_str_starts(n->op_type, "Reduce")) {
        if (!wml_axes_of(g->r, n, &axes, &len)) return;
        for (size_t i = 0; i < len; i++) mapped[i] = g->perm[axes[i] < 0 ? axes[i] + rank : axes[i]];
        if (wml_attr_find(n, "axes")) wml_attr_set_ints(n, "axes", len, mapped);
        else wml_node_set_input(n, 1, wml_graph_add_init(n->graph, n->in[1]->name, wml_tensor_i64s(g->r->model, len, mapped)));
        return;
    }
    bool split = wml_node_is(n, "Split");
    if (!split && !wml_node_is(n, "Concat") && !wml_node_is(n, "Softmax") && !wml_node_is(n, "LogSoftmax") && !wml_node_is(n, "Hardmax"))
        return;
    axis = wml_attr_int(n, "axis", split ? 0 : -1);
    wml_attr_set_int(n, "axis", g->perm[axis < 0 ? axis + rank : axis]);
}

static void turn_type(struct region *g, struct wml_value *v)
{
    struct wml_axis axis[MAX_RANK];
    for (size_t i = 0; i < g->rank; i++) axis[g->perm[i]] = wml_value_axis(v, i);
    wml_value_set_type(v, wml_type_tensor(g->r->model, wml_value_elem(v), (int64_t)g->rank, axis));
}

static void turn_node(struct region *g, struct wml_node *n)
{
    bool more = wml_str_starts(n->op_type, "Reduce") || wml_node_is(n, "Split");
    for (size_t i = 0; i < (more ? 1 : n->n_in); i++) {
        struct wml_value *v = n->in[i];
        if (!v) continue;
        if (is_source(g, v->def)) wml_node_set_input(n, i, v->def->in[0]);
        else if (!is_in(v)) wml_node_set_input(n, i, turned_constant(g, v));
    }
    turn_axes(g, n);
}

/* Readers at the border get the value in its old order, by a Transpose of its own. */
static void fence(struct region *g, struct wml_value *v)
{
    struct wml_node *next = v->def->next, *t = next ? wml_node_new(next, "", "Transpose") : wml_graph_append(g->graph, "", "Transpose");
    t->name = wml_model_unique(g->r->model, WML_STR("transpose"));
    t->mark = REGION;
    WML_PUSH(&g->fence, t);
    wml_attr_set_ints(t, "perm", g->rank, g->perm);
    struct wml_value *turned = wml_node_add_output(t, v->name);
    struct wml_type *type = v->type;
    WML_VEC(struct wml_use) keep = {0};
    for (struct wml_use *u = v->uses; u; u = u->next)
        if (!is_border(g, u)) WML_PUSH(&keep, *u);
    if (v->n_outputs) wml_value_replace(v, turned);
    else wml_value_replace_uses(v, turned);
    for (size_t i = 0; i < keep.len; i++) wml_node_set_input(keep.at[i].node, keep.at[i].slot, v);
    wml_node_set_input(t, 0, v);
    wml_value_set_type(turned, type);
    WML_VEC_RELEASE(&keep);
}

/* Transposes that read the region: the inverse goes, others take the permutation over. */
static void join(struct region *g, struct wml_value *v, struct wml_value *plain)
{
    WML_VEC(struct wml_node *) reader = {0};
    for (struct wml_use *u = v->uses; u; u = u->next)
        if (u->node->graph == g->graph && wml_node_is(u->node, "Transpose") && u->node->mark != REGION && !is_border(g, u))
            WML_PUSH(&reader, u->node);
    for (size_t i = 0; i < reader.len; i++) {
        struct wml_node *n = reader.at[i];
        int64_t perm[MAX_RANK];
        size_t rank;
        wml_node_set_input(n, 0, plain);
        if (is_inverse(g, n) && wml_bypass(n, plain)) continue;
        if (!perm_of(n, perm, &rank)) continue;
        for (size_t k = 0; k < rank; k++) perm[k] = g->perm[perm[k]];
        wml_attr_set_ints(n, "perm", rank, perm);
    }
    WML_VEC_RELEASE(&reader);
}

static void rewrite(struct region *g, const struct wml_node *first)
{
    wml_pass_applied(g->r, first->op_type, first->name);
    for (size_t i = 0; i < g->value.len; i++)
        if (!is_source(g, g->value.at[i]->def) && has_border(g, g->value.at[i])) fence(g, g->value.at[i]);
    for (size_t i = 0; i < g->moved.len; i++) turn_node(g, g->moved.at[i]);
    for (size_t i = 0; i < g->value.len; i++) {
        struct wml_value *v = g->value.at[i];
        if (is_source(g, v->def)) join(g, v, v->def->in[0]);
        else {
            turn_type(g, v);
            join(g, v, v);
        }
    }
}

/* The input of a source must keep its meaning. */
static bool sources_outside(const struct region *g)
{
    for (size_t i = 0; i < g->source.len; i++)
        if (is_in(g->source.at[i]->in[0])) return false;
    return true;
}

static bool constants_readable(const struct region *g)
{
    for (size_t i = 0; i < g->moved.len; i++)
        for (size_t k = 0; k < g->moved.at[i]->n_in; k++) {
            struct wml_span bytes;
            struct wml_tensor *t = wml_constant_of(g->moved.at[i]->in[k]);
            if (t && !wml_tensor_bytes(g->r->model, t, &bytes, NULL)) return false;
        }
    return true;
}

/* A region without a moved node is what transpose-elimination does. */
static void try_from(struct wml_pass_run *r, struct wml_node *n)
{
    struct region g = {.r = r, .graph = n->graph};
    if (!perm_of(n, g.perm, &g.rank) || wml_value_rank(n->in[0]) != (int64_t)g.rank || !n->out[0]->n_uses) return;
    add_source(&g, n);
    if (grow(&g) && g.moved.len && sources_outside(&g) && gain(&g) > 0 && constants_readable(&g))
        rewrite(&g, n);
    for (size_t i = 0; i < g.value.len; i++) g.value.at[i]->mark = 0;
    for (size_t i = 0; i < g.moved.len; i++) g.moved.at[i]->mark = 0;
    for (size_t i = 0; i < g.fence.len; i++) g.fence.at[i]->mark = 0;
    WML_VEC_RELEASE(&g.source);
    WML_VEC_RELEASE(&g.value);
    WML_VEC_RELEASE(&g.moved);
    WML_VEC_RELEASE(&g.fence);
}

static bool each_graph(void *arg, struct wml_graph *g)
{
    struct wml_pass_run *r = arg;
    for (struct wml_value *v = g->first_value; v; v = v->next) v->mark = 0;
    for (struct wml_node *n = g->first; n; n = n->next) n->mark = 0;
    for (struct wml_node *n = g->first; n; n = n->next)
        if (wml_node_is(n, "Transpose")) try_from(r, n); /* n stays: it is a source, removed as dead code */
    return true;
}

static bool run(struct wml_pass_run *r, struct wml_err *err)
{
    if (!wml_model_each_graph(r->model, each_graph, r)) return false;
    return !r->applied || wml_graph_sort(r->model->graph, err);
}

const struct wml_pass wml_pass_transpose_optimizer = {
    .name = "transpose-optimizer", .category = "layout", .pipe = "ort_graph", .ort_name = "TransposeOptimizer", .level = 1, .on = true,
    .run = run, .summary = "Move Transposes behind operators that do not care, where that makes them fewer",
};
