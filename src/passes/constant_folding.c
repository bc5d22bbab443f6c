/* Everything that depends on constants only is computed once, by ONNX Runtime on the CPU. All of a round is
 * asked in one question: the values where the constant part of the graph ends. Never computed: operators
 * that are random or do more than compute, quantisation (weights stay small, scales stay bits), types below
 * a byte, and results that would make the file grow. */
#include "passes/folding.h"

enum { GROW_BYTES = 1 << 16, GROW_FACTOR = 2 };
enum { FOLDABLE = 0x666f6c64 }; /* mark on nodes */

static bool is_constant_input(const struct wml_value *v)
{
    if (!v) return true;
    if (v->def) return v->def->mark == FOLDABLE;
    struct wml_tensor *t = wml_constant_of(v);
    return t && t->dtype != WML_STRING && wml_dtype_info(t->dtype)->bits >= 8;
}

static uint64_t bytes_of(const struct wml_value *v)
{
    int64_t n = 0;
    uint64_t bytes = 0;
    if (v && wml_value_count(v, &n) && wml_dtype_bytes((int)wml_value_elem(v), (uint64_t)n, &bytes)) return bytes;
    return 0;
}

static bool grows(const struct wml_node *n)
{
    uint64_t in = 0, out = 0;
    for (size_t i = 0; i < n->n_in; i++) in += bytes_of(n->in[i]);
    for (size_t i = 0; i < n->n_out; i++) out += bytes_of(n->out[i]);
    return out > GROW_BYTES && out > GROW_FACTOR * in;
}

static bool is_whole(const struct wml_value *v)
{
    return !v || wml_value_elem(v) == WML_BOOL || wml_dtype_is_integer((int)wml_value_elem(v));
}

static bool is_foldable(const struct wml_node *n, bool integers_only)
{
    for (size_t i = 0; integers_only && i < n->n_in; i++)
        if (!is_whole(n->in[i])) return false;
    for (size_t i = 0; integers_only && i < n->n_out; i++)
        if (!is_whole(n->out[i])) return false;
    if (!n->n_out || wml_node_subgraph(n, 0) || !wml_op_is_pure(n) || wml_op_has(n, WML_OP_QUANT)) return false;
    if (wml_node_is(n, "Constant") || wml_node_is(n, "Identity")) return false;
    for (size_t i = 0; i < n->n_in; i++)
        if (!is_constant_input(n->in[i])) return false;
    for (size_t i = 0; i < n->n_out; i++)
        if (n->out[i] && (n->out[i]->n_outputs || n->out[i]->pinned)) return false;
    return !grows(n);
}

struct frontier {
    WML_VEC(struct wml_value *) v;
};

static void find_frontier(struct wml_pass_run *r, bool integers_only, struct frontier *f)
{
    for (struct wml_node *n = r->model->graph->first; n; n = n->next) n->mark = is_foldable(n, integers_only) ? FOLDABLE : 0;
    for (struct wml_node *n = r->model->graph->first; n; n = n->next) {
        if (n->mark != FOLDABLE) continue;
        for (size_t i = 0; i < n->n_out; i++) {
            bool needed = false;
            for (struct wml_use *u = n->out[i] ? n->out[i]->uses : NULL; u; u = u->next)
                needed = needed || u->node->graph != n->graph || u->node->mark != FOLDABLE;
            if (needed) WML_PUSH_IN(r->scratch, &f->v, n->out[i]);
        }
    }
}

/* Puts the result in the value's place. Its node goes when nothing else of it is read. */
static void adopt(struct wml_pass_run *r, struct wml_value *v, struct wml_tensor *t)
{
    struct wml_graph *g = v->graph;
    uint64_t size = 0, in = 0;
    for (size_t i = 0; i < v->def->n_in; i++) in += bytes_of(v->def->in[i]);
    if (wml_tensor_size(t, &size, NULL) && size > GROW_BYTES && size > GROW_FACTOR * WML_MAX(in, 1)) return;
    struct wml_value *constant = wml_graph_add_init(g, v->name, t);
    if (wml_types_disagree(v, constant)) { /* a kernel that does not do as its operator says */
        wml_value_remove(constant);
        wml_pass_refuse(r, v->def, "ONNX Runtime computes another type than the model says");
        return;
    }
    wml_value_replace_uses(v, constant);
    wml_pass_applied(r, v->def ? v->def->op_type : WML_STR("Constant"), v->name);
}

/* One value that cannot be computed must not cost the others: halves are tried. How many cannot. */
static size_t evaluate(struct wml_pass_run *r, const struct frontier *f, size_t from, size_t n, struct wml_err *why)
{
    struct wml_err err = {0};
    struct wml_tensor **t = WML_NEW_ARRAY(r->scratch, struct wml_tensor *, n + 1);
    if (r->env->evaluate(r->env->arg, r->model, f->v.at + from, n, t, &err)) {
        for (size_t i = 0; i < n; i++)
            if (t[i]) adopt(r, f->v.at[from + i], t[i]);
        return 0;
    }
    *why = err;
    if (n == 1) return 1;
    return evaluate(r, f, from, n / 2, why) + evaluate(r, f, from + n / 2, n - n / 2, why);
}

bool wml_fold_constants(struct wml_pass_run *r, bool integers_only)
{
    struct frontier f = {0};
    struct wml_err why = {0};
    find_frontier(r, integers_only, &f);
    if (!f.v.len) return true;
    if (!r->env->evaluate) return wml_pass_skip(r, "ONNX Runtime is not at hand");
    const size_t failed = evaluate(r, &f, 0, f.v.len, &why);
    if (failed) wml_pass_skip(r, "%zu of %zu values cannot be computed: %.180s", failed, f.v.len, why.msg);
    return true;
}

static bool run(struct wml_pass_run *r, struct wml_err *err)
{
    (void)err;
    return wml_fold_constants(r, false);
}

const struct wml_pass wml_pass_constant_folding = {
    .name = "constant-folding", .category = "graph", .pipe = "ort_graph", .ort_name = "ConstantFolding", .level = 1, .on = true,
    .reference_on = true, .run = run,
    .summary = "Compute what depends on constants only",
};
