/* Linear layers over [.., C] with known sizes become Gemm over rows [N, C], together with all that lies between them
 * and works row by row as well: normalisation, activations, residual sums. A region of such nodes grows from every
 * MatMul + Add; at its borders a Reshape is put in, unless one is there that can say the new shape. A region is
 * rewritten only when more Adds go than Reshapes come. */
#include "base/num.h"
#include "passes/match.h"
#include "passes/matmul_gemm.h"

enum { MAX_RANK = 8, MAX_LEAD = MAX_RANK - 1, MAX_SWEEPS = 32 };
enum { OUT, TRIED, IN }; /* marks of nodes */
enum { ENTRY = 1 };      /* mark of values that come from outside, once met */

struct region {
    struct wml_pass_run *r;
    struct wml_graph *graph;
    int64_t lead[MAX_LEAD], rows; /* the axes that become one */
    size_t n_lead;
    WML_VEC(struct wml_node *) node;
};

static int64_t width(const struct region *g, const struct wml_value *v)
{
    return wml_value_axis(v, g->n_lead).size;
}

static bool is_rows(const struct region *g, const struct wml_value *v)
{
    if (!v || wml_value_rank(v) != (int64_t)g->n_lead + 1 || width(g, v) < 1) return false;
    for (size_t i = 0; i < g->n_lead; i++)
        if (wml_value_axis(v, i).size != g->lead[i]) return false;
    return true;
}

/* How a constant operand looks beside rows: one number, one row, or all rows. false: none of these. */
static bool constant_dims(const struct region *g, const struct wml_tensor *t, int64_t *dims, size_t *rank)
{
    size_t n = t->dims.len, lead = 1;
    if (n > g->n_lead + 1) return false;
    for (size_t i = 0; i + 1 < n; i++) lead *= t->dims.at[i] == 1;
    *rank = n ? 1 : 0;
    dims[0] = n ? t->dims.at[n - 1] : 1;
    if (n < 2 || lead) return true;
    for (size_t i = 0; i < g->n_lead; i++) {
        size_t missing = g->n_lead + 1 - n;
        if (g->lead[i] != (i < missing ? 1 : t->dims.at[i - missing])) return false;
    }
    *rank = 2;
    dims[0] = g->rows;
    dims[1] = t->dims.at[n - 1];
    return true;
}

static bool is_softmax(const struct wml_node *n)
{
    return wml_node_is(n, "Softmax") || wml_node_is(n, "LogSoftmax");
}

static bool is_norm(const struct wml_node *n)
{
    return wml_node_is(n, "LayerNormalization") || wml_node_is(n, "RMSNormalization");
}

static bool is_reduce(const struct wml_node *n)
{
    return wml_str_starts(n->op_type, "Reduce");
}

/* Operands from slot 1 on are no rows, whatever their shape is. */
static bool has_one_operand(const struct wml_node *n)
{
    return wml_node_is(n, "MatMul") || is_norm(n) || is_reduce(n);
}

static bool works_on_last_axis(const struct region *g, const struct wml_node *n)
{
    int64_t opset = wml_model_opset(g->r->model, ""), last = (int64_t)g->n_lead, first;
    if (wml_node_is(n, "MatMul")) {
        const struct wml_tensor *w = wml_constant_of(wml_node_in(n, 1));
        return w && w->dims.len == 2;
    }
    if (is_softmax(n) || is_norm(n)) {
        int64_t axis = wml_attr_int(n, "axis", -1);
        for (size_t i = 1; i < n->n_in; i++)
            if (n->in[i] && wml_value_rank(n->in[i]) != 1) return false;
        return opset >= 13 && (axis == -1 || axis == last);
    }
    if (is_reduce(n)) return wml_reduces_tail(g->r, n, &first) && (first == -1 || first == last);
    return opset >= 7 && wml_op_has(n, WML_OP_ELEMENTWISE) && !wml_op_has(n, WML_OP_QUANT);
}

/* The node works row by row, on rows and constants. */
static bool fits(const struct region *g, const struct wml_node *n)
{
    int64_t dims[2];
    size_t rank, n_rows = 0;
    if (n->graph != g->graph || !wml_node_out(n, 0) || !is_rows(g, n->out[0]) || n->out[0]->pinned) return false;
    for (size_t i = 1; i < n->n_out; i++)
        if (n->out[i] && !wml_value_is_unused(n->out[i])) return false;
    if (!works_on_last_axis(g, n)) return false;
    for (size_t i = 0; i < (has_one_operand(n) ? 1 : n->n_in); i++) {
        const struct wml_value *v = n->in[i];
        const struct wml_tensor *t = wml_constant_of(v);
        if (t ? !constant_dims(g, t, dims, &rank) : v && !is_rows(g, v)) return false;
        n_rows += v && !t;
    }
    return n_rows > 0;
}

static void add(struct region *g, struct wml_node *n)
{
    if (n->mark != OUT || !fits(g, n)) return;
    n->mark = IN;
    WML_PUSH(&g->node, n);
}

static void grow(struct region *g)
{
    for (size_t k = 0; k < g->node.len; k++) {
        struct wml_node *n = g->node.at[k];
        for (size_t i = 0; i < n->n_in; i++)
            if (n->in[i] && n->in[i]->def) add(g, n->in[i]->def);
        for (struct wml_use *u = n->out[0]->uses; u; u = u->next) add(g, u->node);
    }
}

static bool is_in(const struct wml_node *n)
{
    return n && n->mark == IN;
}

static struct wml_node *pair_of(const struct wml_node *n)
{
    struct wml_value *bias;
    struct wml_node *mm = is_in(n) ? wml_matmul_before_bias(n, &bias) : NULL;
    return is_in(mm) ? mm : NULL;
}

/* -- what it costs, in nodes -- */

/* A Reshape whose shape copies sizes of its input: they must be written out. */
static bool copies_sizes(struct region *g, const struct wml_node *n)
{
    int64_t *shape;
    size_t len;
    if (!wml_constant_ints(g->r, wml_node_in(n, 1), &shape, &len)) return true;
    for (size_t i = 0; i < len; i++)
        if (shape[i] == 0) return true;
    return false;
}

static bool output_dims(const struct wml_node *n, int64_t *dims, size_t *rank)
{
    const struct wml_value *out = wml_node_out(n, 0);
    *rank = SIZE_MAX;
    return out && wml_value_rank(out) <= MAX_RANK && wml_static_dims(out, 0, dims, rank);
}

/* A Reshape outside takes the flat value as it is. */
static bool absorbs(struct region *g, const struct wml_use *u)
{
    int64_t dims[MAX_RANK];
    size_t rank;
    if (u->node->graph != g->graph || u->slot != 0 || !wml_node_is(u->node, "Reshape")) return false;
    return !copies_sizes(g, u->node) || output_dims(u->node, dims, &rank);
}

static int exit_cost(struct region *g, const struct wml_value *v)
{
    if (v->n_outputs) return 1;
    for (const struct wml_use *u = v->uses; u; u = u->next)
        if (!is_in(u->node) && !absorbs(g, u)) return 1;
    return 0;
}

/* The Reshape that makes v and has no other readers; -1: it makes v of rows, so it goes. */
static bool is_own_reshape(const struct region *g, const struct wml_value *v)
{
    if (!v->def || !wml_node_is(v->def, "Reshape") || v->def->graph != g->graph || v->n_outputs || v->pinned) return false;
    for (const struct wml_use *u = v->uses; u; u = u->next)
        if (!is_in(u->node)) return false;
    return true;
}

static int entry_cost(const struct region *g, const struct wml_value *v)
{
    if (!is_own_reshape(g, v)) return 1;
    const struct wml_value *from = v->def->in[0];
    return wml_value_rank(from) == 2 && wml_value_axis(from, 0).size == g->rows && wml_value_axis(from, 1).size == width(g, v) ? -1 : 0;
}

static bool is_operand(const struct wml_node *n, size_t slot)
{
    const struct wml_value *v = wml_node_in(n, slot);
    if (!v || wml_constant_of(v) || (slot && has_one_operand(n))) return false;
    for (size_t i = 0; i < slot; i++)
        if (n->in[i] == v) return false; /* counted already */
    return true;
}

static bool has_reader_in(const struct wml_value *v, const struct wml_node *but)
{
    for (const struct wml_use *u = v->uses; u; u = u->next)
        if (u->node != but && is_in(u->node)) return true;
    return false;
}

/* The change of the cost when n leaves the region. */
static int cost_without(struct region *g, const struct wml_node *n)
{
    int change = (has_reader_in(n->out[0], NULL) ? 1 : 0) - exit_cost(g, n->out[0]);
    for (size_t i = 0; i < n->n_in; i++) {
        if (!is_operand(n, i)) continue;
        if (is_in(n->in[i]->def)) change += 1 - exit_cost(g, n->in[i]);
        else change += (has_reader_in(n->in[i], n) ? 1 : 0) - entry_cost(g, n->in[i]);
    }
    return change;
}

/* The border moves inwards wherever that costs nothing. */
static void trim(struct region *g)
{
    bool changed = true;
    for (int sweep = 0; changed && sweep < MAX_SWEEPS; sweep++) {
        changed = false;
        for (size_t k = 0; k < g->node.len; k++) {
            struct wml_node *n = g->node.at[sweep % 2 ? g->node.len - 1 - k : k];
            struct wml_node *user = wml_value_only_user(n->out[0]);
            if (!is_in(n) || pair_of(n) || (user && pair_of(user) == n) || cost_without(g, n) > 0) continue;
            n->mark = TRIED;
            changed = true;
        }
    }
}

static int64_t gain(struct region *g)
{
    int64_t sum = 0;
    for (size_t k = 0; k < g->node.len; k++) {
        struct wml_node *n = g->node.at[k];
        if (!is_in(n)) continue;
        sum += (pair_of(n) ? 1 : 0) - exit_cost(g, n->out[0]);
        for (size_t i = 0; i < n->n_in; i++) {
            if (!is_operand(n, i) || is_in(n->in[i]->def) || n->in[i]->mark == ENTRY) continue;
            n->in[i]->mark = ENTRY;
            sum -= entry_cost(g, n->in[i]);
        }
    }
    return sum;
}

/* -- rewriting -- */

static struct wml_value *shape_value(struct region *g, size_t n, const int64_t *dims)
{
    return wml_graph_add_init(g->graph, WML_STR("shape"), wml_tensor_i64s(g->r->model, n, dims));
}

static void flat_type(struct region *g, struct wml_value *v)
{
    wml_value_set_type(v, wml_type_static(g->r->model, wml_value_elem(v), 2, (int64_t[]){g->rows, width(g, v)}));
}

/* All readers in the region read the flat value. */
static void enter(struct region *g, struct wml_value *v, struct wml_node *first)
{
    int64_t dims[2] = {-1, width(g, v)};
    if (is_own_reshape(g, v)) {
        wml_node_set_input(v->def, 1, shape_value(g, 2, dims));
        flat_type(g, v);
        return;
    }
    struct wml_node *t = wml_node_new(first, "", "Reshape");
    t->name = wml_model_unique(g->r->model, WML_STR("rows"));
    struct wml_value *flat = wml_node_add_output(t, v->name);
    wml_value_set_type(flat, v->type);
    flat_type(g, flat);
    WML_VEC(struct wml_use) use = {0};
    for (struct wml_use *u = v->uses; u; u = u->next)
        if (is_in(u->node)) WML_PUSH(&use, *u);
    for (size_t i = 0; i < use.len; i++) wml_node_set_input(use.at[i].node, use.at[i].slot, flat);
    wml_node_set_input(t, 0, v);
    wml_node_set_input(t, 1, shape_value(g, 2, dims));
    WML_VEC_RELEASE(&use);
}

/* Readers outside get the value in its old shape, by a Reshape of their own or one put in. */
static void leave(struct region *g, struct wml_value *v)
{
    WML_VEC(struct wml_use) keep = {0};
    int64_t dims[MAX_RANK];
    bool put_in = exit_cost(g, v);
    for (struct wml_use *u = v->uses; u; u = u->next)
        if (is_in(u->node) || absorbs(g, u)) WML_PUSH(&keep, *u);
    if (put_in) {
        struct wml_node *next = v->def->next, *t = next ? wml_node_new(next, "", "Reshape") : wml_graph_append(g->graph, "", "Reshape");
        t->name = wml_model_unique(g->r->model, WML_STR("unrows"));
        struct wml_value *old = wml_node_add_output(t, v->name);
        for (size_t i = 0; i < g->n_lead; i++) dims[i] = g->lead[i];
        dims[g->n_lead] = width(g, v);
        wml_value_set_type(old, v->type);
        if (v->n_outputs) wml_value_replace(v, old);
        else wml_value_replace_uses(v, old);
        for (size_t i = 0; i < keep.len; i++) wml_node_set_input(keep.at[i].node, keep.at[i].slot, v);
        wml_node_set_input(t, 0, v);
        wml_node_set_input(t, 1, shape_value(g, g->n_lead + 1, dims));
    }
    for (size_t i = 0; i < keep.len; i++) {
        size_t rank;
        struct wml_node *n = keep.at[i].node;
        if (!is_in(n) && copies_sizes(g, n) && output_dims(n, dims, &rank))
            wml_node_set_input(n, 1, shape_value(g, rank, dims));
    }
    WML_VEC_RELEASE(&keep);
}

static void flatten(struct region *g, struct wml_node *n)
{
    int64_t dims[2];
    size_t rank;
    for (size_t i = 0; i < (has_one_operand(n) ? 1 : n->n_in); i++) {
        const struct wml_tensor *t = wml_constant_of(n->in[i]);
        if (t && constant_dims(g, t, dims, &rank)) wml_node_set_input(n, i, wml_reshaped_constant(g->r, n->in[i], rank, dims));
    }
    if (is_softmax(n) || is_norm(n)) wml_attr_set_int(n, "axis", -1);
    if (is_reduce(n) && wml_attr_find(n, "axes")) wml_attr_set_ints(n, "axes", 1, (int64_t[]){-1});
    else if (is_reduce(n)) wml_node_set_input(n, 1, shape_value(g, 1, (int64_t[]){-1}));
}

static void rewrite(struct region *g)
{
    for (size_t k = 0; k < g->node.len; k++) {
        struct wml_node *n = g->node.at[k];
        if (!is_in(n)) continue;
        for (size_t i = 0; i < n->n_in; i++)
            if (is_operand(n, i) && n->in[i]->mark == ENTRY) {
                n->in[i]->mark = 0;
                enter(g, n->in[i], n);
            }
    }
    for (size_t k = 0; k < g->node.len; k++)
        if (is_in(g->node.at[k])) leave(g, g->node.at[k]->out[0]);
    for (size_t k = 0; k < g->node.len; k++) {
        if (!is_in(g->node.at[k])) continue;
        flatten(g, g->node.at[k]);
        flat_type(g, g->node.at[k]->out[0]);
    }
    for (size_t k = 0; k < g->node.len; k++) {
        struct wml_value *bias;
        struct wml_node *n = g->node.at[k], *mm = pair_of(n) ? wml_matmul_before_bias(n, &bias) : NULL;
        if (!mm) continue;
        wml_pass_applied(g->r, mm->op_type, mm->name);
        wml_bias_to_gemm(n, mm, bias);
    }
}

/* n is the Add of a linear layer. */
static void try_from(struct wml_pass_run *r, struct wml_node *n, struct wml_node *mm)
{
    struct region g = {.r = r, .graph = n->graph, .n_lead = SIZE_MAX, .rows = 1};
    int64_t dims[MAX_RANK], rank = wml_value_rank(mm->in[0]);
    if (n->mark != OUT || rank < 3 || rank > MAX_RANK || !wml_static_dims(mm->in[0], 0, dims, &g.n_lead)) return;
    g.n_lead--;
    for (size_t i = 0; i < g.n_lead; i++) {
        g.lead[i] = dims[i];
        if (dims[i] < 1 || !wml_mul_i64(g.rows, dims[i], &g.rows)) return;
    }
    add(&g, n);
    grow(&g);
    trim(&g);
    if (gain(&g) > 0) rewrite(&g);
    for (size_t k = 0; k < g.node.len; k++) {
        g.node.at[k]->mark = TRIED;
        for (size_t i = 0; i < g.node.at[k]->n_in; i++)
            if (g.node.at[k]->in[i]) g.node.at[k]->in[i]->mark = 0;
    }
    WML_VEC_RELEASE(&g.node);
}

static bool unmark(void *arg, struct wml_graph *g)
{
    (void)arg;
    for (struct wml_value *v = g->first_value; v; v = v->next) v->mark = 0;
    for (struct wml_node *n = g->first; n; n = n->next) n->mark = OUT;
    return true;
}

static bool each_graph(void *arg, struct wml_graph *g)
{
    struct wml_pass_run *r = arg;
    for (struct wml_node *n = g->first, *next; n; n = next) {
        struct wml_value *bias;
        struct wml_node *mm = wml_matmul_before_bias(n, &bias);
        next = n->next;
        if (mm) try_from(r, n, mm);
    }
    return true;
}

static bool run(struct wml_pass_run *r, struct wml_err *err)
{
    if (!wml_model_each_graph(r->model, unmark, NULL) || !wml_model_each_graph(r->model, each_graph, r)) return false;
    return !r->applied || wml_graph_sort(r->model->graph, err);
}

const struct wml_pass wml_pass_linear_rows = {
    .name = "linear-rows", .category = "matmul", .on = true, .late = true, .run = run,
    .summary = "Flatten linear layers and what lies between them to rows, so that they become Gemm",
};
