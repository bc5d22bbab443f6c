/* What the options and the file of overrides ask of every node and value. A request that cannot be met is refused here,
 * before anything is calibrated. */
#include <inttypes.h>

#include "graph/graph.h"
#include "quant/qdq_internal.h"
#include "quant/select.h"

struct wml_override *wml_qdq_ask_one(struct wml_qdq *q, struct wml_qdq_tensor *t)
{
    if (!t->asked.n) {
        t->asked.n = 1;
        t->asked.channel = WML_NEW(q->arena, struct wml_override);
        *t->asked.channel = wml_override_none();
    }
    return t->asked.channel;
}

enum wml_dtype wml_qdq_asked_type(const struct wml_qdq *q, const struct wml_qdq_tensor *t)
{
    return t->asked.n && t->asked.channel->type ? t->asked.channel->type : q->activation;
}

enum wml_dtype wml_qdq_read_type(const struct wml_qdq *q, const struct wml_qdq_tensor *t, const struct wml_node *n)
{
    return wml_qdq_reads_converted(t, n) ? t->asked.convert.type : wml_qdq_asked_type(q, t);
}

static bool is_quantizer(const struct wml_node *n)
{
    return wml_str_is(n->op_type, "QuantizeLinear") || wml_str_is(n->op_type, "DequantizeLinear");
}

bool wml_qdq_takes(const struct wml_qdq *q, const struct wml_node *n)
{
    const struct wml_node_override *o = wml_overrides_of_node(q->opts->overrides, n->name, n->op_type);
    if (is_quantizer(n) || (o && o->exclude) || !wml_quant_selects(q->opts, n)) return false;
    return q->opts->op_types.len || !wml_node_is(n, "Cast");
}

static bool check_constant(const struct wml_qdq_tensor *t, const struct wml_tensor_override *o, struct wml_err *err)
{
    const struct wml_override *c = o->channel.at;
    struct wml_str name = t->value->name;
    int64_t rank = wml_value_rank(t->value), axis = c->axis < 0 ? c->axis + rank : c->axis;
    if (o->converts) return wml_fail(err, WML_E_USAGE, "tensor '%.*s' is a constant: 'convert' is for activations", WML_ARG(name));
    if (!c->has_axis) return true;
    if (axis < 0 || axis >= rank)
        return wml_fail(err, WML_E_USAGE, "tensor '%.*s' has %" PRId64 " axes: there is no axis %" PRId64, WML_ARG(name), rank, c->axis);
    int64_t size = wml_value_axis(t->value, (size_t)axis).size;
    if (o->channel.len > 1 && o->channel.len != (size_t)size)
        return wml_fail(err, WML_E_USAGE, "tensor '%.*s' has %" PRId64 " channels on axis %" PRId64 ", overrides are there for %zu", WML_ARG(name),
                        size, c->axis, o->channel.len);
    return true;
}

static bool check_activation(const struct wml_qdq *q, const struct wml_qdq_tensor *t, const struct wml_tensor_override *o, struct wml_err *err)
{
    const struct wml_override *c = o->channel.at;
    struct wml_str name = t->value->name;
    if (c->has_axis || c->reduced != WML_UNSET)
        return wml_fail(err, WML_E_USAGE, "tensor '%.*s' is no constant: 'axis' and 'reduce_range' are for weights", WML_ARG(name));
    if (o->converts && o->convert.type == (c->type ? c->type : q->activation))
        return wml_fail(err, WML_E_USAGE, "tensor '%.*s' is converted to the type that it has", WML_ARG(name));
    return true;
}

static struct wml_node *find_reader(const struct wml_value *v, struct wml_str name)
{
    for (const struct wml_use *u = v->uses; u; u = u->next)
        if (wml_str_eq(u->node->name, name)) return u->node;
    return NULL;
}

static bool ask(struct wml_qdq *q, struct wml_qdq_tensor *t, const struct wml_tensor_override *o, struct wml_err *err)
{
    struct wml_qdq_asked *a = &t->asked;
    if (!(t->constant ? check_constant(t, o, err) : check_activation(q, t, o, err))) return false;
    a->n = o->channel.len;
    a->channel = WML_NEW_ARRAY(q->arena, struct wml_override, a->n);
    for (size_t i = 0; i < a->n; i++) a->channel[i] = o->channel.at[i];
    a->converts = o->converts;
    a->some = o->some;
    a->convert = o->convert;
    for (size_t i = 0; i < o->reader.len; i++) {
        struct wml_node *n = find_reader(t->value, o->reader.at[i]);
        if (!n)
            return wml_fail(err, WML_E_USAGE, "tensor '%.*s' is not read by a node '%.*s', which 'recv_nodes' names", WML_ARG(t->value->name),
                            WML_ARG(o->reader.at[i]));
        WML_PUSH_IN(q->arena, &a->reader, n);
    }
    return true;
}

/* A name that nothing has is a typing error; a pattern may match nothing. */
static bool check_used(const struct wml_qdq *q, const bool *used, struct wml_err *err)
{
    const struct wml_quant_overrides *o = q->opts->overrides;
    for (size_t i = 0; i < o->tensor.len; i++) {
        struct wml_str p = o->tensor.at[i].pattern;
        if (used[i] || wml_str_find(p, '*') != SIZE_MAX || wml_str_find(p, '?') != SIZE_MAX) continue;
        wml_fail(err, WML_E_USAGE, "the overrides name a tensor '%.*s' that the model does not have as float", WML_ARG(p));
        return wml_hint(err, "names are those of the model that is quantized; see: winml inspect");
    }
    return true;
}

/* What is asked of a node's outputs, where nothing is asked of them by name. */
static void ask_outputs(struct wml_qdq *q, const struct wml_node *n)
{
    const struct wml_node_override *o = wml_overrides_of_node(q->opts->overrides, n->name, n->op_type);
    if (!o || o->exclude || (!o->activation && o->activation_symmetric == WML_UNSET)) return;
    for (size_t i = 0; i < n->n_out; i++) {
        struct wml_qdq_tensor *t = wml_qdq_of(q, n->out[i]);
        if (!t || !t->real || t->asked.n) continue;
        wml_qdq_ask_one(q, t)->type = o->activation;
        t->asked.channel->symmetric = o->activation_symmetric;
    }
}

bool wml_qdq_ask(struct wml_qdq *q, struct wml_err *err)
{
    const struct wml_quant_overrides *all = q->opts->overrides;
    bool ok = true;
    if (!all) return true;
    bool *used = WML_NEW_ARRAY(q->arena, bool, all->tensor.len + 1);
    for (size_t i = 0; ok && i < q->n_tensors; i++) {
        struct wml_qdq_tensor *t = &q->tensor[i];
        const struct wml_tensor_override *o = t->real ? wml_overrides_of_tensor(all, t->value->name) : NULL;
        if (!o) continue;
        used[o - all->tensor.at] = true;
        ok = ask(q, t, o, err);
    }
    for (struct wml_node *n = q->graph->first; n; n = n->next) ask_outputs(q, n);
    return ok && check_used(q, used, err);
}

void wml_qdq_ask_weight(struct wml_qdq *q, const struct wml_node *n, struct wml_qdq_tensor *t, int64_t axis)
{
    const struct wml_node_override *o = wml_overrides_of_node(q->opts->overrides, n->name, n->op_type);
    if (!o || !t->constant || t->asked.n) return;
    bool channels = o->per_channel == WML_UNSET ? q->opts->per_channel : o->per_channel != 0;
    int64_t rank = wml_value_rank(t->value);
    struct wml_override *c = wml_qdq_ask_one(q, t);
    c->type = o->weight;
    c->symmetric = o->weight_symmetric;
    c->reduced = o->reduced;
    c->has_axis = channels && axis < rank;
    c->axis = axis;
}
