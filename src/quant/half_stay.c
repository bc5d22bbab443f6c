/* Which nodes stay float: operators without a half form, operators that count or compare and so need the range or the
 * digits, what the user keeps, what is not ours (other domains, functions of the model), and what is quantised already,
 * whose scales are too fine for half floats. What lies inside a node that stays, stays as well. */
#include "quant/half.h"

#include "graph/graph.h"
#include "ops/ops.h"
#include "quant/select.h"

/* The list of model converters, and BitCast: the same bits as another type, which must have the same width. */
static const char *const op_stays[] = {
    "ArrayFeatureExtractor", "Binarizer", "CastMap", "CategoryMapper", "DictVectorizer", "FeatureVectorizer", "Imputer",
    "LabelEncoder", "LinearClassifier", "LinearRegressor", "Normalizer", "OneHotEncoder", "RandomUniformLike", "SVMClassifier",
    "SVMRegressor", "Scaler", "TreeEnsembleClassifier", "TreeEnsembleRegressor", "TreeEnsemble", "ZipMap", "NonMaxSuppression",
    "TopK", "RoiAlign", "Range", "CumSum", "Min", "Max", "Upsample", "BitCast",
};

static bool stays(const struct wml_node *n)
{
    return n->mark & WML_HALF_STAYS;
}

bool wml_half_reads_float(const struct wml_half *h, const struct wml_node *n, size_t slot)
{
    return stays(n) || wml_half_fixed(h, n).in >> WML_MIN(slot, (size_t)31) & 1;
}

bool wml_half_makes_float(const struct wml_half *h, const struct wml_node *n, size_t slot)
{
    return stays(n) || wml_half_fixed(h, n).out >> WML_MIN(slot, (size_t)31) & 1;
}

static bool is_foreign(const struct wml_node *n)
{
    return n->domain.len && !wml_str_is(n->domain, "ai.onnx") && !wml_str_is(n->domain, "com.microsoft");
}

/* Reads or makes floats, in a holder of that kind. */
static bool touches(const struct wml_node *n, uint64_t kind)
{
    for (size_t i = 0; i < n->n_in; i++)
        if (wml_half_is_float(n->in[i]) && (n->in[i]->mark & kind) == kind) return true;
    for (size_t i = 0; i < n->n_out; i++)
        if (wml_half_is_float(n->out[i]) && (n->out[i]->mark & kind) == kind) return true;
    return false;
}

static bool must_stay(const struct wml_half *h, const struct wml_node *n)
{
    const struct wml_quant_opts *o = h->run->opts;
    for (size_t i = 0; i < WML_COUNT(op_stays); i++)
        if (wml_str_is(n->op_type, op_stays[i])) return true;
    if (is_foreign(n) || wml_op_is_function(n)) return true;
    if (wml_node_is(n, "Constant") && wml_attr_find(n, "sparse_value")) return true;
    if (wml_node_is(n, "Cast") && wml_attr_int(n, "to", 0) == h->to) return true; /* it is what would stand in front of it */
    if (wml_str_is(n->domain, "com.microsoft") && wml_node_subgraph(n, 0)) return true; /* BeamSearch and the like: loops of their own */
    return wml_patterns_match(&o->keep, n->op_type) || !wml_quant_selects(o, n) || touches(n, WML_HALF_OPTIONAL);
}

static void mark_graph(const struct wml_half *h, struct wml_graph *g, bool inherited)
{
    struct wml_graph *sub;
    for (struct wml_node *n = g->first; n; n = n->next) {
        n->mark = inherited || must_stay(h, n) ? WML_HALF_STAYS : 0;
        for (size_t k = 0; (sub = wml_node_subgraph(n, k)); k++) mark_graph(h, sub, stays(n));
    }
}

static void keep(struct wml_node *n)
{
    struct wml_graph *sub;
    n->mark |= WML_HALF_STAYS;
    for (size_t k = 0; (sub = wml_node_subgraph(n, k)); k++)
        for (struct wml_node *inner = sub->first; inner; inner = inner->next) keep(inner);
}

/* --- what is quantised already --- */

static bool is_q(const struct wml_node *n, const char *op)
{
    return n && wml_str_is(n->op_type, op) && !is_foreign(n);
}

static bool only_quantized(const struct wml_value *v)
{
    for (const struct wml_use *u = v->uses; u; u = u->next)
        if (u->slot || !is_q(u->node, "QuantizeLinear")) return false;
    return v->uses && !v->n_outputs;
}

/* The activation between a node and QuantizeLinear, or NULL. */
static struct wml_node *activation_of(const struct wml_value *v)
{
    struct wml_node *n = wml_value_only_user(v);
    if (!n || !(wml_node_is(n, "Relu") || wml_node_is(n, "Clip")) || n->in[0] != v) return NULL;
    return only_quantized(n->out[0]) ? n : NULL;
}

/* All its floats come from DequantizeLinear or are constants, and go to QuantizeLinear: kernels compute it in integers. */
static bool is_quantized(const struct wml_node *n)
{
    size_t from_dq = 0;
    if (is_q(n, "QuantizeLinear") || is_q(n, "DequantizeLinear")) return false;
    for (size_t i = 0; i < n->n_in; i++) {
        const struct wml_value *v = n->in[i];
        if (!wml_half_is_float(v)) continue;
        if (is_q(v->def, "DequantizeLinear")) from_dq++;
        else if (!wml_value_tensor(v)) return false;
    }
    for (size_t i = 0; from_dq && i < n->n_out; i++)
        if (n->out[i] && !only_quantized(n->out[i]) && !activation_of(n->out[i])) return false;
    return from_dq > 0;
}

static bool keep_quantized(void *arg, struct wml_node *n)
{
    (void)arg;
    if (!is_quantized(n)) return true;
    keep(n);
    for (size_t i = 0; i < n->n_out; i++)
        if (n->out[i] && activation_of(n->out[i])) keep(activation_of(n->out[i]));
    return true;
}

/* Half floats hold the scales, nearly. */
static bool scales_fit(const struct wml_half *h, const struct wml_node *n)
{
    struct wml_tensor *t = wml_node_in(n, 1) ? wml_value_tensor(n->in[1]) : NULL;
    double *scale;
    size_t len;
    if (h->to != WML_F16 || !t || !wml_tensor_doubles(h->model, t, &scale, &len, NULL)) return false;
    for (size_t i = 0; i < len; i++)
        if (!(scale[i] >= 0x1p-14 && scale[i] <= 65504)) return false;
    return true;
}

static bool keep_scales(void *arg, struct wml_node *n)
{
    const struct wml_half *h = arg;
    const bool q = is_q(n, "QuantizeLinear"), dq = is_q(n, "DequantizeLinear");
    if (!q && !dq) return true;
    if (!scales_fit(h, n) || (q && n->in[0] && n->in[0]->def && stays(n->in[0]->def))) keep(n);
    for (const struct wml_use *u = dq ? n->out[0]->uses : NULL; u; u = u->next)
        if (stays(u->node)) keep(n);
    return true;
}

/* Sums of integers are far beyond half floats until they are scaled: MatMulInteger -> Cast -> Mul by scale * scale. */
static bool keep_sums(void *arg, struct wml_node *n)
{
    (void)arg;
    if (!wml_node_is(n, "MatMulInteger") && !wml_node_is(n, "ConvInteger")) return true;
    for (const struct wml_use *u = n->out[0]->uses; u; u = u->next) {
        if (!wml_node_is(u->node, "Cast")) continue;
        keep(u->node);
        for (const struct wml_use *w = u->node->out[0]->uses; w; w = w->next) {
            keep(w->node);
            for (size_t i = 0; wml_node_is(w->node, "Mul") && i < 2; i++) {
                struct wml_node *scale = wml_node_producer(w->node, i);
                if (scale && wml_node_is(scale, "Mul")) keep(scale);
            }
        }
    }
    return true;
}

/* --- sequences: Cast does not take them, so they are converted all or not at all --- */

static bool is_sequence(const struct wml_value *v)
{
    return wml_half_is_float(v) && v->mark & WML_HALF_SEQUENCE;
}

static bool stays_with_sequence(void *arg, struct wml_node *n)
{
    bool *found = arg;
    *found = stays(n) && touches(n, WML_HALF_SEQUENCE);
    return !*found;
}

static bool sequences_stay(const struct wml_half *h)
{
    const struct wml_graph *g = h->model->graph;
    bool found = false;
    for (size_t i = 0; !h->run->opts->convert_io && i < g->inputs.len; i++) found = found || is_sequence(g->inputs.at[i]);
    for (size_t i = 0; !h->run->opts->convert_io && i < g->outputs.len; i++) found = found || is_sequence(g->outputs.at[i]);
    if (!found) wml_graph_walk(h->model->graph, stays_with_sequence, &found);
    return found;
}

static bool keep_sequence(void *arg, struct wml_node *n)
{
    (void)arg;
    if (touches(n, WML_HALF_SEQUENCE)) keep(n);
    return true;
}

/* --- counting --- */

struct counted { struct wml_str op; size_t n; };
struct counting {
    struct wml_half *h;
    WML_VEC(struct counted) stay;
};

static bool count(void *arg, struct wml_node *n)
{
    struct counting *c = arg;
    if (!touches(n, 0) || wml_node_is(n, "Cast")) return true; /* Casts alone are nothing to convert */
    if (!stays(n)) {
        c->h->n_convert++;
        return true;
    }
    for (size_t i = 0; i < c->stay.len; i++)
        if (wml_str_eq(c->stay.at[i].op, n->op_type)) {
            c->stay.at[i].n++;
            return true;
        }
    WML_PUSH(&c->stay, ((struct counted){n->op_type, 1}));
    return true;
}

void wml_half_mark_nodes(struct wml_half *h)
{
    struct counting c = {.h = h};
    struct wml_graph *g = h->model->graph;
    mark_graph(h, g, false);
    wml_graph_walk(g, keep_quantized, NULL);
    wml_graph_walk(g, keep_scales, h);
    wml_graph_walk(g, keep_sums, NULL);
    if (sequences_stay(h)) wml_graph_walk(g, keep_sequence, NULL);
    wml_graph_walk(g, count, &c);
    for (size_t i = 0; h->n_convert && i < c.stay.len; i++)
        wml_quant_note(h->run, c.stay.at[i].op, "%zu node%s float", c.stay.at[i].n, c.stay.at[i].n == 1 ? " stays" : "s stay");
    WML_VEC_RELEASE(&c.stay);
}
