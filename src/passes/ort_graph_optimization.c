/* ONNX Runtime's own optimiser as one pass. It would turn float16 into float32 with Casts, Q/DQ into QLinear
 * operators, and import operator sets, so a guard stands before and after it: models with such parts are not given
 * to it, and a result in which a type, a domain, an input or an output differs is thrown away. What winml does by
 * itself, without copying weights, is left out of ORT's list. */
#include "passes/match.h"

#include "graph/parts.h"

/* Above these it takes longer than all our passes: its time grows with the square of the readers of one value. */
enum { MAX_NODES = 10000, MAX_READERS = 1000, MAX_LOOKS = 64 };

/* Left out at every level: zeros in the pads of a MaxPool never win there; a Dropout that an input switches on works. */
#define WRONG "Pad_Fusion;EliminateDropout"
/* Names of ORT's optimisers: done by our passes, tuned for one kind of CPU, or adding nodes for higher ranks. */
#define OURS \
    "ConvBNFusion;ConvMulFusion;ConvAddFusion;MatMulAddFusion;MatMul_BatchNormalization_Fusion;" \
    "ConstantSharing;TransposeOptimizer;TransposeOptimizer_CPUExecutionProvider;" \
    "NchwcTransformer;NhwcTransformer;GemmTransposeFusion;GeluFusionL1;LayerNormFusionL1;" WRONG
/* Weights that stay in their files are not computed with: what comes of them would have to be written. */
static const char disabled[] = OURS, weights_stay[] = OURS ";ConstantFolding";

struct guard {
    const char *reason; /* NULL: fine */
    struct wml_str what;
    bool contrib; /* operators of com.microsoft are fine */
    bool lean;    /* what is asked for beside our passes */
};

static void found(struct guard *g, const char *reason, struct wml_str what)
{
    g->reason = reason;
    g->what = what;
}

static bool is_onnx(struct wml_str d)
{
    return !d.len || wml_str_is(d, "ai.onnx");
}

/* Depends on constants and on sizes that are known. *left: nodes that may still be looked at. */
static bool is_known(const struct wml_value *v, size_t *left)
{
    if (!v || wml_constant_of(v)) return true;
    const struct wml_node *n = v->def;
    if (!n || !*left || wml_node_subgraph(n, 0) || !wml_op_is_pure(n)) return false;
    --*left;
    if ((wml_node_is(n, "Shape") || wml_node_is(n, "Size")) && n->in[0] && wml_type_is_static(n->in[0]->type)) return true;
    for (size_t i = 0; i < n->n_in; i++)
        if (!is_known(n->in[i], left)) return false;
    return true;
}

static bool look_node(void *arg, struct wml_node *n)
{
    struct guard *g = arg;
    size_t left = MAX_LOOKS;
    bool known = g->lean && wml_node_is(n, "If") && is_known(wml_node_in(n, 0), &left);
    bool fine = is_onnx(n->domain) || (g->contrib && wml_str_is(n->domain, "com.microsoft"));
    if (!fine) found(g, "an operator of another domain: ", n->op_type);
    else if (wml_op_has(n, WML_OP_QUANT)) found(g, "quantisation: ", n->op_type);
    else if (known) found(g, "a condition that is known: ", n->op_type);
    return !g->reason;
}

/* Operators at which ORT's basic level may find something where none of our passes ran before. */
static bool is_dull(void *arg, struct wml_node *n)
{
    static const char *const found[] = {"Shape", "Gather", "Slice", "Concat", "Reshape", "Split", "Pad", "Where", "Not", "ReduceMean",
                                        "Erf", "Tanh", "Clip", "Cast", "Unsqueeze", "Squeeze", "Expand", "Sum", "Pow", "Sqrt", "If"};
    (void)arg;
    for (size_t i = 0; i < WML_COUNT(found); i++)
        if (wml_str_is(n->op_type, found[i])) return false;
    return true;
}

static bool is_reshape(const struct wml_node *n)
{
    return wml_node_is(n, "Reshape") || wml_node_is(n, "Squeeze") || wml_node_is(n, "Unsqueeze");
}

/* Folding left it alone: its result is a graph output, or large. */
static bool is_constant(const struct wml_node *n)
{
    for (size_t i = 0; i < n->n_in; i++)
        if (n->in[i] && !wml_constant_of(n->in[i])) return false;
    return wml_op_is_pure(n) && !wml_node_subgraph(n, 0);
}

static bool is_number(struct wml_pass_run *r, const struct wml_node *n, size_t slot, double want)
{
    double k = want + 1;
    return wml_constant_scalar(r, wml_node_in(n, slot), &k) && k == want;
}

/* Adds 0 or multiplies by 1, where the sizes were not known well enough; 1 / x, which a product may take in. */
static bool is_neutral(struct wml_pass_run *r, const struct wml_node *n)
{
    if (wml_node_is(n, "Add")) return is_number(r, n, 0, 0) || is_number(r, n, 1, 0);
    if (wml_node_is(n, "Sub")) return is_number(r, n, 1, 0);
    return (wml_node_is(n, "Mul") || wml_node_is(n, "Div")) && (is_number(r, n, 0, 1) || is_number(r, n, 1, 1));
}

/* What ORT's basic level finds and our passes do not, or may have refused: it is asked where such a node is left. */
static bool may_find(struct wml_pass_run *r, const struct wml_node *n)
{
    const struct wml_node *x = wml_node_producer(n, 0), *shape = wml_node_producer(n, 1);
    struct wml_value *in = wml_node_in(n, 0);
    if (is_constant(n) || is_neutral(r, n)) return true;
    if (!in) return false;
    if (wml_node_is(n, "Identity")) return x && x->graph == n->graph && !in->n_outputs;
    if (wml_node_is(n, "Slice") || wml_node_is(n, "Cast")) return wml_value_rank(in) < 0; /* ours want to know */
    if (wml_node_is(n, "If")) return wml_constant_of(in) != NULL;
    if (wml_node_is(n, "Shape")) return wml_node_is(x, "Cast") || (in->type && wml_type_is_static(in->type));
    if (wml_node_is(n, "Clip")) return wml_node_is(x, "Relu");
    if (wml_node_is(n, "Reshape") && wml_node_is(shape, "Concat")) return true;
    return is_reshape(n) && x && is_reshape(x) && wml_value_only_user(in);
}

static bool finds_nothing(void *arg, struct wml_node *n)
{
    return !may_find(arg, n);
}

/* There is nothing to ask for. By name: the others may be off. */
static bool is_settled(struct wml_pass_run *r)
{
    return wml_graph_walk(r->model->graph, r->asked ? is_dull : finds_nothing, r);
}

static bool is_plain(int dtype)
{
    return dtype == WML_UNDEFINED || dtype == WML_F32 || dtype == WML_F64 || dtype == WML_STRING || dtype == WML_BOOL ||
           (wml_dtype_is_integer(dtype) && wml_dtype_info(dtype)->bits >= 8);
}

static bool look_graph(void *arg, struct wml_graph *graph)
{
    struct guard *g = arg;
    for (const struct wml_value *v = graph->first_value; v && !g->reason; v = v->next)
        if (!is_plain((int)wml_value_elem(v))) found(g, "a type that ORT's CPU kernels convert: ", wml_str(wml_dtype_name((int)wml_value_elem(v))));
    return !g->reason;
}

static bool few_readers(void *arg, struct wml_graph *graph)
{
    (void)arg;
    for (const struct wml_value *v = graph->first_value; v; v = v->next)
        if (v->n_uses > MAX_READERS) return false;
    return true;
}

static bool same_signature(const struct wml_graph *a, const struct wml_graph *b)
{
    if (a->outputs.len != b->outputs.len) return false;
    for (size_t i = 0; i < a->outputs.len; i++) {
        const struct wml_value *x = a->outputs.at[i], *y = b->outputs.at[i];
        if (!wml_str_eq(x->name, y->name) || wml_types_disagree(x, y)) return false;
    }
    for (size_t i = 0; i < a->inputs.len; i++) {
        const struct wml_value *x = a->inputs.at[i];
        const struct wml_value *y = wml_graph_find(b, x->name);
        if (!y || !y->n_inputs || wml_value_elem(x) != wml_value_elem(y)) return false;
    }
    return a->inputs.len == b->inputs.len;
}

/* Values that survived under their names keep their types. */
static const char *compare(const struct wml_model *before, struct wml_model *after, bool contrib)
{
    struct guard g = {.contrib = contrib};
    if (!same_signature(before->graph, after->graph)) return "its inputs or outputs differ";
    wml_graph_walk(after->graph, look_node, &g);
    if (g.reason) return "it holds operators that the model had not";
    for (const struct wml_value *v = before->graph->first_value; v; v = v->next) {
        const struct wml_value *now = wml_graph_find(after->graph, v->name);
        if (now && wml_types_disagree(v, now)) return "a value changed its type";
    }
    return NULL;
}

/* What ORT does not carry over comes from the model as it was. */
static void keep_head(struct wml_model *to, const struct wml_model *from)
{
    struct wml_arena *a = &to->arena;
    to->ir_version = from->ir_version;
    to->model_version = from->model_version;
    to->msg.has = from->msg.has;
    to->producer_name = wml_arena_str(a, from->producer_name);
    to->producer_version = wml_arena_str(a, from->producer_version);
    to->domain = wml_arena_str(a, from->domain);
    to->doc = wml_arena_str(a, from->doc);
    to->graph->name = wml_arena_str(a, from->graph->name);
    to->metadata.len = 0;
    for (size_t i = 0; i < from->metadata.len; i++) {
        struct wml_entry e = {.key = wml_arena_str(a, from->metadata.at[i].key), .value = wml_arena_str(a, from->metadata.at[i].value)};
        WML_PUSH_IN(a, &to->metadata, e);
    }
    to->opset.len = 0;
    for (size_t i = 0; i < from->opset.len; i++) {
        struct wml_opset o = {.msg.has = from->opset.at[i].msg.has, .version = from->opset.at[i].version,
                              .domain = wml_arena_str(a, from->opset.at[i].domain)};
        WML_PUSH_IN(a, &to->opset, o);
    }
}

static bool uses_contrib(void *arg, struct wml_node *n)
{
    (void)arg;
    return !wml_str_is(n->domain, "com.microsoft");
}

static bool run(struct wml_pass_run *r, struct wml_err *err)
{
    struct wml_model *m = r->model, *out = NULL;
    struct guard g = {0};
    struct wml_err why = {0};
    (void)err;
    if (r->before) return true; /* once: what is left afterwards is for our passes */
    if (!r->env->ort_optimise) return wml_pass_skip(r, "ONNX Runtime is not at hand");
    if (m->graph->n_nodes > MAX_NODES) return wml_pass_skip(r, "more than %d nodes", MAX_NODES);
    if (!wml_model_each_graph(m, few_readers, NULL)) return wml_pass_skip(r, "a value has more than %d readers", MAX_READERS);
    if (m->function.len || m->training.len) return wml_pass_skip(r, "the model has functions or training parts");
    if (m->ir_version < WML_IR_SEPARATE_WEIGHTS) return wml_pass_skip(r, "its weights are inputs (IR below 4)");
    enum wml_ort_level level = r->env->ort_level;
    bool extended = level == WML_ORT_LEVEL_EXTENDED, whole = level != WML_ORT_LEVEL_LEAN;
    if (!whole && is_settled(r)) return true;
    g = (struct guard){.contrib = extended, .lean = !whole};
    wml_graph_walk(m->graph, look_node, &g);
    if (!g.reason) wml_model_each_graph(m, look_graph, &g);
    if (g.reason) return wml_pass_skip(r, "the model holds %s%.*s", g.reason, WML_ARG(g.what));
    if (!r->env->ort_optimise(r->env->arg, m, extended, whole ? WRONG : r->env->weights_stay ? weights_stay : disabled, &out, &why))
        return wml_pass_skip(r, "ORT cannot: %.200s", why.msg);
    const char *differs = compare(m, out, extended);
    size_t before = wml_model_count_nodes(m), after = wml_model_count_nodes(out);
    bool fewer = after < before;
    if (differs || (!fewer && !whole)) {
        wml_model_free(out);
        return !differs || wml_pass_skip(r, "ORT's result was thrown away: %s", differs);
    }
    keep_head(out, m);
    if (!wml_model_opset(out, "com.microsoft") && !wml_graph_walk(out->graph, uses_contrib, NULL))
        wml_model_set_opset(out, "com.microsoft", 1);
    r->applied = fewer ? before - after : 1;
    r->replacement = out;
    return true;
}

const struct wml_pass wml_pass_ort_graph_optimization = {
    .name = "ort-graph-optimization", .category = "graph", .pipe = "ort_graph", .on = true, .reference_on = true, .late = true,
    .run = run,
    .summary = "ORT's own optimiser, basic level (--ort-level names another), on the CPU, under a guard",
};
