/* Puts QuantizeLinear and DequantizeLinear into the graph. One pair per value serves all its readers:
 *
 *     x -> Q -> DQ -> readers                    an activation; as a graph output the DQ has the output's name
 *     w_quantized -> DQ -> readers               a constant
 *     x -> Q -> DQ -> readers of the first type  an activation that some readers want in another type; where all do,
 *           `-> DQ -> Q2 -> DQ2 -> the others    Q2 follows the first DQ
 *
 * What sub-graphs read of an activation or a constant stays float. */
#include "quant/qdq_internal.h"

#include "graph/graph.h"
#include "quant/derive.h"

struct wml_str wml_qdq_name(struct wml_qdq *q, struct wml_str base, const char *suffix)
{
    return wml_arena_fmt(q->arena, "%.*s%s", WML_ARG(base), suffix);
}

static struct wml_type *like_type(struct wml_qdq *q, struct wml_value *v, enum wml_dtype elem)
{
    struct wml_type *t = wml_value_type(v);
    if (!t || !t->tensor) return NULL;
    t = wml_type_copy(q->model, t);
    t->tensor->elem = (int32_t)elem;
    return t;
}

struct wml_value *wml_qdq_node(struct wml_qdq *q, struct wml_node *before, const char *op, const struct wml_qdq_scale *s, struct wml_value *in,
                               struct wml_value *like, struct wml_str base, struct wml_str out)
{
    bool quantizes = op[0] == 'Q';
    struct wml_node *n = before ? wml_node_new(before, q->domain, op) : wml_graph_append(q->graph, q->domain, op);
    n->name = wml_model_unique(q->model, wml_arena_fmt(q->arena, "%.*s_%s", WML_ARG(base), op));
    wml_node_add_input(n, in);
    wml_node_add_input(n, s->scale_value);
    wml_node_add_input(n, s->zero_value);
    if (s->axis >= 0) wml_attr_set_int(n, "axis", s->axis);
    struct wml_value *v = wml_node_add_output(n, out);
    wml_value_set_type(v, like_type(q, like, quantizes ? s->type : s->real));
    *(quantizes ? &q->run->result->q : &q->run->result->dq) += 1;
    return v;
}

/* Quantizers that were there before, and what asks whether numbers are any: integers always are. */
static bool reads_float(const struct wml_node *n)
{
    return wml_str_is(n->op_type, "QuantizeLinear") || wml_node_is(n, "IsNaN") || wml_node_is(n, "IsInf");
}

/* The readers of v in this graph that `wants` picks, but those that want floats, read `to`. */
static void redirect(struct wml_qdq *q, const struct wml_qdq_tensor *t, struct wml_value *to, bool (*wants)(const struct wml_qdq_tensor *, const struct wml_node *))
{
    struct wml_use *next;
    for (struct wml_use *u = t->value->uses; u; u = next) {
        struct wml_node *n = u->node;
        next = u->next;
        if (n->graph != q->graph || reads_float(n) || (wants && !wants(t, n))) continue;
        wml_node_set_input(n, u->slot, to);
    }
}

static bool reads_first(const struct wml_qdq_tensor *t, const struct wml_node *n)
{
    return !wml_qdq_reads_converted(t, n);
}

static struct wml_node *after(const struct wml_value *v)
{
    return v->def ? v->def->next : v->graph->first;
}

/* The graph output that v was becomes `to`; v keeps living before q_node under another name. */
static bool take_output(struct wml_qdq *q, struct wml_value *v, struct wml_value *to, struct wml_node *q_node)
{
    struct wml_str name = v->name;
    if (!v->n_outputs) return false;
    wml_node_set_input(q_node, 0, NULL);
    if (!wml_value_replace(v, to)) {
        wml_node_set_input(q_node, 0, v);
        return false;
    }
    wml_node_set_input(q_node, 0, v);
    for (struct wml_use *u = to->uses, *next; u; u = next) {
        next = u->next;
        if (u->node->graph == q->graph && reads_float(u->node)) wml_node_set_input(u->node, u->slot, v);
    }
    wml_value_rename(v, wml_model_unique(q->model, wml_qdq_name(q, name, "_QuantizeLinear_Input")));
    return true;
}

/* Q and DQ behind v, not yet read. */
static struct wml_value *add_pair(struct wml_qdq *q, struct wml_value *in, struct wml_value *like, struct wml_str base, const struct wml_qdq_scale *s,
                                  struct wml_node **q_node)
{
    struct wml_node *before = after(in);
    struct wml_value *v = wml_qdq_node(q, before, "QuantizeLinear", s, in, like, base, wml_qdq_name(q, base, "_QuantizeLinear_Output"));
    *q_node = v->def;
    return wml_qdq_node(q, before, "DequantizeLinear", s, v, like, base, wml_qdq_name(q, base, "_DequantizeLinear_Output"));
}

static size_t count_converted(struct wml_qdq *q, const struct wml_qdq_tensor *t, size_t *all)
{
    size_t n = 0;
    *all = 0;
    for (const struct wml_use *u = t->value->uses; u; u = u->next) {
        if (u->node->graph != q->graph) continue;
        *all += 1;
        n += wml_qdq_reads_converted(t, u->node);
    }
    return n;
}

static bool insert_converted(struct wml_qdq *q, struct wml_qdq_tensor *t, struct wml_err *err)
{
    struct wml_value *v = t->value;
    struct wml_str base = v->name, base2 = wml_qdq_name(q, base, "_convert");
    struct wml_node *q1, *q2;
    size_t readers, n = count_converted(q, t, &readers);
    bool all = n == readers;
    if (!wml_qdq_scale_values(q, t->converted, err)) return false;
    struct wml_value *d1 = add_pair(q, v, v, base, t->scale, &q1), *bridge = d1;
    if (!all) /* a copy of the first DQ, so that it and Q2 can become one conversion */
        bridge = wml_qdq_node(q, after(d1), "DequantizeLinear", t->scale, q1->out[0], v, wml_qdq_name(q, base, "_convert_clone"),
                              wml_qdq_name(q, base2, "_QuantizeLinear_Input"));
    struct wml_value *d2 = add_pair(q, bridge, v, base2, t->converted, &q2);
    struct wml_qdq_tensor first = *t;
    redirect(q, &first, d2, wml_qdq_reads_converted);
    if (take_output(q, v, all ? d2 : d1, q1)) return true;
    redirect(q, &first, d1, reads_first);
    return true;
}

static bool insert_activation(struct wml_qdq *q, struct wml_qdq_tensor *t, struct wml_err *err)
{
    struct wml_node *q_node;
    if (!wml_qdq_scale_values(q, t->scale, err)) return false;
    if (t->converted) return insert_converted(q, t, err);
    struct wml_value *d = add_pair(q, t->value, t->value, t->value->name, t->scale, &q_node);
    if (!take_output(q, t->value, d, q_node)) redirect(q, t, d, NULL);
    return true;
}

/* The first reader of v in this graph. */
static struct wml_node *first_reader(const struct wml_qdq *q, const struct wml_value *v)
{
    struct wml_node *first = NULL;
    for (const struct wml_use *u = v->uses; u; u = u->next)
        if (u->node->graph == q->graph && (!first || u->node->mark < first->mark)) first = u->node;
    return first;
}

static bool insert_constant(struct wml_qdq *q, struct wml_qdq_tensor *t, struct wml_err *err)
{
    const struct wml_qdq_scale *s = t->scale;
    struct wml_node *reader = first_reader(q, t->value);
    struct wml_str name = t->value->name;
    if (!reader) return true;
    struct wml_tensor *w = wml_quant_derive_linear(q->model, t->value->init, s->type, s->axis, s->n, s->scale, s->zero, err);
    if (!w || !wml_qdq_scale_values(q, t->scale, err)) return false;
    struct wml_value *ints = wml_graph_add_init(q->graph, wml_qdq_name(q, name, "_quantized"), w);
    struct wml_value *d = wml_qdq_node(q, reader, "DequantizeLinear", s, ints, t->value, name, wml_qdq_name(q, name, "_DequantizeLinear_Output"));
    d->def->mark = reader->mark;
    redirect(q, t, d, NULL);
    q->run->result->weights++;
    return true;
}

/* The producer computes what n would have made of it; n goes. */
static void merge(struct wml_node *n)
{
    struct wml_value *in = n->in[0], *out = n->out[0];
    struct wml_node *producer = in->def;
    size_t slot = in->def_slot;
    while (n->n_in) wml_node_remove_input(n, n->n_in - 1);
    wml_node_drop_output(producer, slot);
    wml_node_take_output(producer, slot, out);
    wml_node_remove(n);
}

bool wml_qdq_insert(struct wml_qdq *q, struct wml_err *err)
{
    size_t i = 0;
    for (struct wml_node *n = q->graph->first; n; n = n->next) n->mark = ++i;
    for (i = 0; i < q->merged.len; i++) merge(q->merged.at[i]);
    for (i = 0; i < q->order.len; i++) {
        struct wml_qdq_tensor *t = q->order.at[i];
        if (!t->marked || t->given) continue;
        if (!(t->constant ? insert_constant(q, t, err) : insert_activation(q, t, err))) return false;
    }
    return true;
}
