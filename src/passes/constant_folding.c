/* Everything that depends on constants only is computed once, by ONNX Runtime on the CPU. All of a graph is
 * asked in one question: the values where its constant part ends. Never computed: operators
 * that are random or do more than compute, quantisation (weights stay small, scales stay bits), types below
 * a byte, and results that would make the file grow. Weights seen with other sizes are shared, not computed; results
 * of more than a gigabyte in all, and anything large where weights stay in their files, are left to the runtime. */
#include "passes/folding.h"

enum { GROW_BYTES = 1 << 16, GROW_FACTOR = 2 };
enum { LARGE = 1 << 20, QUESTION = 1 << 26, OPERATOR = 1 << 28, ALL = 1 << 30 }; /* bytes */
enum { FOLDABLE = 0x666f6c64 }; /* mark on nodes */

struct fold {
    struct wml_pass_run *r;
    bool integers_only;
    uint64_t bytes; /* of large results so far */
    size_t n, failed;
    struct wml_err why;
};

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

static bool pays(const struct fold *f, const struct wml_node *n)
{
    uint64_t in = 0, out = 0;
    for (size_t i = 0; i < n->n_in; i++) in += bytes_of(n->in[i]);
    for (size_t i = 0; i < n->n_out; i++) out += bytes_of(n->out[i]);
    if (out > GROW_BYTES && out > GROW_FACTOR * in) return false;
    if (WML_MAX(in, out) <= (f->r->env->weights_stay ? LARGE : OPERATOR)) return true;
    wml_pass_refuse(f->r, n, "its operands or results are too large to compute beforehand");
    return false;
}

static bool is_whole(const struct wml_value *v)
{
    return !v || wml_value_elem(v) == WML_BOOL || wml_dtype_is_integer((int)wml_value_elem(v));
}

static bool is_foldable(const struct fold *f, const struct wml_node *n)
{
    const bool integers_only = f->integers_only;
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
    return pays(f, n);
}

struct frontier {
    WML_VEC(struct wml_value *) v;
};

/* Another shape of the same bytes: shared. */
static bool is_view(const struct wml_node *n)
{
    static const char *const op[] = {"Reshape", "Squeeze", "Unsqueeze", "Flatten"};
    const struct wml_value *out = wml_node_out(n, 0);
    if (!out || out->n_outputs || out->pinned || !n->n_in || !n->in[0] || n->in[0]->def || !is_constant_input(n->in[0])) return false;
    for (size_t i = 0; i < WML_COUNT(op); i++)
        if (wml_node_is(n, op[i])) return wml_value_rank(out) >= 0 && wml_type_is_static(out->type);
    return false;
}

static bool share_view(struct fold *f, struct wml_node *n)
{
    struct wml_value *out = n->out[0];
    struct wml_tensor *t = n->in[0]->init, *s;
    int64_t n_out = 0;
    uint64_t n_in = 0;
    if (bytes_of(out) <= LARGE || wml_value_elem(out) != (enum wml_dtype)t->dtype) return false;
    if (!wml_value_count(out, &n_out) || !wml_tensor_count(t, &n_in, NULL) || n_in != (uint64_t)n_out) return false;
    s = wml_tensor_share(f->r->model, t);
    s->dims.len = s->dims.cap = (size_t)wml_value_rank(out);
    s->dims.at = WML_NEW_ARRAY(&f->r->model->arena, int64_t, s->dims.len + 1);
    for (size_t i = 0; i < s->dims.len; i++) s->dims.at[i] = wml_value_axis(out, i).size;
    wml_value_replace_uses(out, wml_graph_add_init(out->graph, out->name, s));
    wml_pass_applied(f->r, n->op_type, n->name);
    return true;
}

static void find_frontier(struct fold *fold, struct wml_graph *g, struct frontier *f)
{
    for (struct wml_node *n = g->first; n; n = n->next) {
        n->mark = 0;
        if (is_view(n) && !fold->integers_only && share_view(fold, n)) continue;
        n->mark = is_foldable(fold, n) ? FOLDABLE : 0;
    }
    for (struct wml_node *n = g->first; n; n = n->next) {
        if (n->mark != FOLDABLE) continue;
        for (size_t i = 0; i < n->n_out; i++) {
            bool needed = false;
            for (struct wml_use *u = n->out[i] ? n->out[i]->uses : NULL; u; u = u->next)
                needed = needed || u->node->graph != n->graph || u->node->mark != FOLDABLE;
            if (!needed) continue;
            const uint64_t size = bytes_of(n->out[i]);
            if (size > LARGE && (fold->bytes += size) > ALL) {
                fold->bytes -= size;
                wml_pass_refuse(fold->r, n, "results of a gigabyte were computed already");
                continue;
            }
            WML_PUSH_IN(fold->r->scratch, &f->v, n->out[i]);
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

/* One value that cannot be computed must not cost the others: halves are tried. Large ones are asked about in parts. */
static void evaluate(struct fold *fold, const struct frontier *f, size_t from, size_t n)
{
    struct wml_pass_run *r = fold->r;
    struct wml_err err = {0};
    if (fold->why.code == WML_E_TIMEOUT || fold->why.code == WML_E_CANCELLED) { /* nor is waited for a second time */
        fold->failed += n;
        return;
    }
    struct wml_tensor **t = WML_NEW_ARRAY(r->scratch, struct wml_tensor *, n + 1);
    uint64_t bytes = 0;
    for (size_t i = 0; i < n; i++) bytes += bytes_of(f->v.at[from + i]);
    if ((n == 1 || bytes <= QUESTION) && r->env->evaluate(r->env->arg, r->model, f->v.at + from, n, t, &err)) {
        for (size_t i = 0; i < n; i++)
            if (t[i]) adopt(r, f->v.at[from + i], t[i]);
        return;
    }
    if (err.msg[0]) fold->why = err;
    if (n == 1) fold->failed++;
    else {
        evaluate(fold, f, from, n / 2);
        evaluate(fold, f, from + n / 2, n - n / 2);
    }
}

static bool fold_in(void *arg, struct wml_graph *g)
{
    struct fold *fold = arg;
    struct frontier f = {0};
    find_frontier(fold, g, &f);
    if (!f.v.len) return true;
    if (!fold->r->env->evaluate) return !wml_pass_skip(fold->r, "ONNX Runtime is not at hand");
    fold->n += f.v.len;
    evaluate(fold, &f, 0, f.v.len);
    return true;
}

bool wml_fold_constants(struct wml_pass_run *r, bool integers_only)
{
    struct fold f = {.r = r, .integers_only = integers_only};
    wml_model_each_graph(r->model, fold_in, &f);
    if (f.failed) wml_pass_skip(r, "%zu of %zu values cannot be computed: %.180s", f.failed, f.n, f.why.msg);
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
