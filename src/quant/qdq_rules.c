/* Which values an operator wants as integers. An operator without a row takes the default: every float input and output,
 * with the type of activations.
 *
 * The first mark of a value decides on its type, as in ONNX Runtime's quantizer: a constant that an Add and a MatMul share
 * has the type that the earlier of the two gives it. Channels are the exception: they overrule. */
#include "quant/qdq_internal.h"

#include <inttypes.h>

#include "graph/graph.h"

struct rule {
    const char *op; /* of the ONNX domain */
    void (*mark)(struct wml_qdq *q, struct wml_node *n, const struct rule *r);
    int64_t since; /* left alone in older opsets */
    int64_t axis;  /* of the channels of the weight, input 1 */
};

static void list(struct wml_qdq *q, struct wml_qdq_tensor *t)
{
    t->marked = true;
    if (!t->listed) WML_PUSH_IN(q->arena, &q->order, t);
    t->listed = true;
}

static bool is_marked(const struct wml_qdq_tensor *t)
{
    return t && (t->marked || t->bias);
}

static void mark_as(struct wml_qdq *q, const struct wml_value *v, bool weight)
{
    struct wml_qdq_tensor *t = wml_qdq_of(q, v);
    if (!t || !t->real || t->marked) return;
    t->weight = weight && t->constant;
    t->axis = -1;
    t->through = NULL;
    list(q, t);
}

static void mark_activation(struct wml_qdq *q, const struct wml_value *v)
{
    mark_as(q, v, false);
}

static void mark_all(struct wml_qdq *q, struct wml_value *const *v, size_t n)
{
    for (size_t i = 0; i < n; i++) mark_activation(q, v[i]);
}

/* v has the scale of input 0 of n. */
static void mark_moved(struct wml_qdq *q, const struct wml_value *v, struct wml_node *n)
{
    struct wml_qdq_tensor *t = wml_qdq_of(q, v);
    if (!t || !t->real) return;
    t->through = n;
    list(q, t);
}

/* Whether constant t has a scale per channel, and along which axis. */
static bool has_channels(const struct wml_qdq *q, const struct wml_qdq_tensor *t, int64_t *axis)
{
    int64_t rank = wml_value_rank(t->value);
    if (!t->constant || (t->asked.n && !t->asked.channel->has_axis) || (!t->asked.n && !q->opts->per_channel)) return false;
    if (t->asked.n) *axis = t->asked.channel->axis;
    if (*axis < 0) *axis += rank;
    return *axis >= 0 && *axis < rank; /* the vectors of normalisations have none */
}

static void mark_weight(struct wml_qdq *q, const struct wml_node *n, const struct wml_value *v, int64_t axis)
{
    struct wml_qdq_tensor *t = wml_qdq_of(q, v);
    if (!t || !t->real) return;
    if (n) wml_qdq_ask_weight(q, n, t, axis);
    if (!has_channels(q, t, &axis)) {
        mark_as(q, v, true);
        return;
    }
    t->weight = true;
    t->axis = axis;
    list(q, t);
}

/* The second node with the same bias gets a copy, since the scale of a bias depends on the node. ORT names it by the
 * number that follows the largest one behind that name. */
static struct wml_str copy_name(struct wml_qdq *q, struct wml_str name)
{
    int64_t largest = -1;
    for (const struct wml_value *v = q->graph->first_value; v; v = v->next) {
        int64_t n = 0;
        if (!v->init || v->name.len <= name.len || !wml_str_eq(wml_str_sub(v->name, 0, name.len), name)) continue;
        for (size_t i = name.len; n >= 0 && i < v->name.len; i++)
            n = v->name.ptr[i] >= '0' && v->name.ptr[i] <= '9' && n < 1000000 ? 10 * n + v->name.ptr[i] - '0' : -1;
        largest = WML_MAX(largest, n);
    }
    for (size_t i = 0; i < q->bias.len; i++)
        largest += wml_str_eq(q->bias.at[i].node->in[2]->name, name);
    return wml_arena_fmt(q->arena, "%.*s%" PRId64, WML_ARG(name), largest);
}

static void mark_bias(struct wml_qdq *q, struct wml_node *n, float beta)
{
    struct wml_value *v = wml_node_in(n, 2);
    struct wml_qdq_tensor *t = wml_qdq_of(q, v);
    if (!t || !t->real || t->given) return;
    if (!t->constant) {
        wml_quant_note(q->run, wml_str(wml_node_label(n)), "its bias '%.*s' is no constant and stays float", WML_ARG(v->name));
        return;
    }
    if (t->asked.n) {
        mark_weight(q, NULL, v, 0);
        return;
    }
    struct wml_qdq_bias b = {.node = n, .name = t->bias ? copy_name(q, v->name) : v->name, .beta = beta};
    t->bias = true;
    WML_PUSH_IN(q->arena, &q->bias, b);
}

static void mark_default(struct wml_qdq *q, struct wml_node *n, const struct rule *r)
{
    (void)r;
    mark_all(q, n->in, n->n_in);
    mark_all(q, n->out, n->n_out);
}

static void mark_conv(struct wml_qdq *q, struct wml_node *n, const struct rule *r)
{
    mark_activation(q, wml_node_in(n, 0));
    mark_activation(q, wml_node_out(n, 0));
    mark_weight(q, n, wml_node_in(n, 1), r->axis);
    mark_bias(q, n, 1);
}

static void mark_gemm(struct wml_qdq *q, struct wml_node *n, const struct rule *r)
{
    (void)r;
    mark_activation(q, wml_node_in(n, 0));
    mark_activation(q, wml_node_out(n, 0));
    mark_weight(q, n, wml_node_in(n, 1), wml_attr_int(n, "transB", 0) ? 0 : 1);
    mark_bias(q, n, wml_attr_float(n, "beta", 1));
}

static void mark_matmul(struct wml_qdq *q, struct wml_node *n, const struct rule *r)
{
    for (size_t i = 0; i < n->n_in; i++) mark_weight(q, n, n->in[i], r->axis);
    mark_all(q, n->out, n->n_out);
}

static void mark_norm(struct wml_qdq *q, struct wml_node *n, const struct rule *r)
{
    mark_activation(q, wml_node_in(n, 0));
    mark_weight(q, n, wml_node_in(n, 1), r->axis);
    mark_bias(q, n, 1);
    mark_all(q, n->out, n->n_out);
}

static void mark_move(struct wml_qdq *q, struct wml_node *n, const struct rule *r)
{
    (void)r;
    if (q->force) mark_activation(q, wml_node_in(n, 0));
    if (q->force || is_marked(wml_qdq_of(q, wml_node_in(n, 0)))) mark_moved(q, wml_node_out(n, 0), n);
}

static void mark_gather(struct wml_qdq *q, struct wml_node *n, const struct rule *r)
{
    const struct wml_qdq_tensor *t = wml_qdq_of(q, wml_node_in(n, 0));
    if (t && t->constant) mark_activation(q, t->value);
    mark_move(q, n, r);
}

static void mark_split(struct wml_qdq *q, struct wml_node *n, const struct rule *r)
{
    (void)r;
    if (!is_marked(wml_qdq_of(q, wml_node_in(n, 0)))) mark_activation(q, wml_node_in(n, 0));
    for (size_t i = 0; i < n->n_out; i++) mark_moved(q, n->out[i], n);
}

/* Padding with 0, which every scale knows, or with elements of the input. */
static bool pads_with_known(const struct wml_qdq *q, const struct wml_node *n)
{
    struct wml_str mode = wml_attr_str(n, "mode", WML_STR("constant"));
    struct wml_value *v = wml_node_in(n, 2);
    struct wml_span bytes;
    if (wml_str_is(mode, "reflect") || wml_str_is(mode, "edge") || wml_str_is(mode, "wrap")) return true;
    if (!wml_str_is(mode, "constant")) return false;
    if (q->opset < 11) return wml_attr_float(n, "value", 0) == 0;
    if (!v) return true;
    struct wml_tensor *t = wml_value_tensor(v);
    uint64_t count;
    return t && wml_dtype_is_float(t->dtype) && wml_tensor_count(t, &count, NULL) && count == 1 &&
           wml_tensor_bytes(q->model, t, &bytes, NULL) && wml_dtype_load(t->dtype, bytes.ptr, 0) == 0;
}

static void mark_pad(struct wml_qdq *q, struct wml_node *n, const struct rule *r)
{
    (void)r;
    mark_all(q, n->in, n->n_in);
    if (pads_with_known(q, n)) mark_moved(q, wml_node_out(n, 0), n);
    else mark_activation(q, wml_node_out(n, 0));
}

static void mark_where(struct wml_qdq *q, struct wml_node *n, const struct rule *r)
{
    struct wml_value *x = wml_node_in(n, 1), *y = wml_node_in(n, 2);
    (void)r;
    if (!q->force && !(is_marked(wml_qdq_of(q, x)) && is_marked(wml_qdq_of(q, y)))) return;
    if (!is_marked(wml_qdq_of(q, x))) mark_activation(q, x);
    if (!is_marked(wml_qdq_of(q, y))) mark_activation(q, y);
    mark_all(q, n->out, n->n_out);
}

/* Whether the integers of `out` cut off what n cuts off, and nothing else sees what n reads. */
static bool is_superfluous(const struct wml_qdq *q, const struct wml_node *n, const struct wml_qdq_tensor *in, const struct wml_qdq_tensor *out)
{
    const struct wml_value *v = in->value;
    const struct wml_qdq_asked *a = &out->asked;
    if (q->ep && q->ep->strips_wide && wml_dtype_info((int)wml_qdq_asked_type(q, out))->bits == 16) return false;
    if (q->symmetric || !in->marked || in->constant || in->given || in->asked.converts || a->converts) return false;
    if (a->n && (a->channel->symmetric == 1 || a->channel->has_scale || a->channel->has_low)) return false;
    return v->def && v->def->graph == n->graph && v->n_uses == 1 && !v->n_inputs && !v->n_outputs && !v->pinned;
}

static void mark_cut(struct wml_qdq *q, struct wml_node *n, const struct rule *r)
{
    struct wml_qdq_tensor *in = wml_qdq_of(q, wml_node_in(n, 0)), *out = wml_qdq_of(q, wml_node_out(n, 0));
    (void)r;
    if (!is_marked(in) || !out || !out->real) return;
    if (is_superfluous(q, n, in, out)) {
        in->marked = false;
        WML_PUSH_IN(q->arena, &q->merged, n);
    } else {
        mark_activation(q, in->value);
    }
    mark_activation(q, out->value);
}

/* An exponent a little off 2 makes NaN of negative numbers. */
static void mark_power(struct wml_qdq *q, struct wml_node *n, const struct rule *r)
{
    struct wml_qdq_tensor *e = wml_qdq_of(q, wml_node_in(n, 1));
    mark_default(q, n, r);
    if (e) e->exact = e->constant;
}

static void mark_first(struct wml_qdq *q, struct wml_node *n, const struct rule *r)
{
    (void)r;
    mark_activation(q, wml_node_in(n, 0));
    mark_activation(q, wml_node_out(n, 0));
}

static void mark_nothing(struct wml_qdq *q, struct wml_node *n, const struct rule *r)
{
    (void)q, (void)n, (void)r;
}

static const struct rule rules[] = {
    {"Conv", mark_conv, 0, 0},
    {"ConvTranspose", mark_conv, 0, 1},
    {"Gemm", mark_gemm, 0, 0},
    {"MatMul", mark_matmul, 0, 1},
    {"BatchNormalization", mark_norm, 0, 1},
    {"InstanceNormalization", mark_norm, 0, 1},
    {"LayerNormalization", mark_norm, 0, 1},
    {"Clip", mark_cut, 0, 0},
    {"Relu", mark_cut, 0, 0},
    {"AveragePool", mark_move, 0, 0},
    {"Flatten", mark_move, 0, 0},
    {"MaxPool", mark_move, 12, 0},
    {"Reshape", mark_move, 0, 0},
    {"Resize", mark_move, 11, 0},
    {"Slice", mark_move, 0, 0},
    {"Squeeze", mark_move, 0, 0},
    {"TopK", mark_move, 0, 0},
    {"Transpose", mark_move, 0, 0},
    {"Unsqueeze", mark_move, 0, 0},
    {"Gather", mark_gather, 0, 0},
    {"GatherElements", mark_gather, 0, 0},
    {"Pad", mark_pad, 0, 0},
    {"Pow", mark_power, 0, 0},
    {"Split", mark_split, 0, 0},
    {"Where", mark_where, 0, 0},
    /* Numbers that say how much or how many, not what: as integers of a scale they would change shapes and choices. */
    {"Dropout", mark_first, 0, 0},
    {"Upsample", mark_first, 0, 0},
    {"NonMaxSuppression", mark_nothing, 0, 0},
    /* No integer is NaN or infinite. */
    {"IsInf", mark_nothing, 0, 0},
    {"IsNaN", mark_nothing, 0, 0},
    {"Range", mark_nothing, 0, 0},
};

static void mark_node(struct wml_qdq *q, struct wml_node *n)
{
    static const struct rule by_default = {"", mark_default, 0, 0};
    const struct rule *r = &by_default;
    for (size_t i = 0; i < WML_COUNT(rules); i++)
        if (wml_node_is(n, rules[i].op)) r = &rules[i];
    if (q->opset >= r->since) r->mark(q, n, r);
}

/* By one node, and it is no output; branches read it as it is. */
static bool is_read_by_one(const struct wml_value *v)
{
    size_t here = 0;
    for (const struct wml_use *u = v->uses; u; u = u->next) here += u->node->graph == v->graph;
    return here == 1 && !v->n_outputs;
}

/* Where a range is known better than it was measured. */
static void adjust_range(struct wml_qdq *q, struct wml_node *n)
{
    struct wml_qdq_tensor *in = wml_qdq_of(q, wml_node_in(n, 0)), *out = wml_qdq_of(q, wml_node_out(n, 0));
    if (wml_node_is(n, "Softmax") && out) {
        out->unit = true;
    } else if ((wml_node_is(n, "Relu") || wml_node_is(n, "Clip")) && in && out && is_read_by_one(in->value)) {
        in->unit = false;
        in->range_from = out;
    }
}

void wml_qdq_mark(struct wml_qdq *q)
{
    for (struct wml_node *n = q->graph->first; n; n = n->next) {
        if (!wml_qdq_takes(q, n)) continue;
        mark_node(q, n);
        adjust_range(q, n);
    }
}

struct wml_qdq_tensor *wml_qdq_provider(const struct wml_qdq *q, const struct wml_qdq_tensor *t)
{
    struct wml_qdq_tensor *p = t->through ? wml_qdq_of(q, wml_node_in(t->through, 0)) : NULL;
    if (!p || !p->marked || p->axis >= 0 || (p->asked.n && p->asked.channel->has_axis)) return NULL;
    return !p->given || (p->scale && p->scale->axis < 0) ? p : NULL;
}

const struct wml_qdq_tensor *wml_qdq_ranged(const struct wml_qdq *q, const struct wml_qdq_tensor *t)
{
    const struct wml_qdq_tensor *from = t->range_from ? t->range_from : t, *p;
    while (!from->range.dtype && !from->unit && (p = wml_qdq_provider(q, from)) != NULL) from = p->range_from ? p->range_from : p;
    return from;
}

bool wml_qdq_needs_range(const struct wml_qdq *q, const struct wml_qdq_tensor *t)
{
    const struct wml_qdq_asked *a = &t->asked;
    if (!t->marked || t->constant || t->given || t->unit) return false;
    if (a->converts && !a->convert.has_scale) return true;
    return !wml_qdq_provider(q, t) && !(a->n && a->channel->has_scale);
}
