/* Element types of all values: those that the file says, and the others by the operators that make them. Only the kind of
 * number is wanted, no shapes, so that no runtime has to be asked. */
#include "quant/half.h"

#include "graph/graph.h"
#include "graph/parts.h"

static uint64_t mark_of_type(const struct wml_type *t)
{
    if (!t) return 0;
    if (t->sequence) return mark_of_type(t->sequence->elem) | WML_HALF_SEQUENCE;
    if (t->optional) return mark_of_type(t->optional->elem) | WML_HALF_OPTIONAL;
    return (uint64_t)wml_type_elem(t);
}

static uint64_t said(const struct wml_value *v)
{
    uint64_t mark = mark_of_type(v->type);
    if (mark & WML_HALF_ELEM) return mark;
    if (v->init) return (uint64_t)v->init->dtype;
    return v->sparse ? (uint64_t)v->sparse->values->dtype : 0;
}

static uint64_t known(const struct wml_value *v)
{
    return v ? v->mark : 0;
}

bool wml_half_is_float(const struct wml_value *v)
{
    return v && (v->mark & WML_HALF_ELEM) == WML_F32;
}

size_t wml_half_slot_of_input(const struct wml_half *h, const struct wml_node *owner, size_t i)
{
    return wml_node_is(owner, "Scan") && h->opset < 9 ? i + 1 : i; /* slot 0 held lengths */
}

size_t wml_half_slot_of_output(const struct wml_node *owner, size_t i)
{
    if (!wml_node_is(owner, "Loop")) return i;
    return i ? i - 1 : SIZE_MAX; /* the condition stays inside */
}

/* --- outputs --- */

static uint64_t by_letter(const struct wml_node *n, char letter)
{
    static const struct { char letter; enum wml_dtype type; } row[] = {{'F', WML_F32}, {'D', WML_F64}, {'I', WML_I64}, {'J', WML_I32},
                                                                       {'U', WML_U8}, {'V', WML_I8}, {'B', WML_BOOL}, {'S', WML_STRING}};
    if (letter >= 'a' && letter <= 'z') return known(wml_node_in(n, (size_t)(letter - 'a')));
    for (size_t i = 0; i < WML_COUNT(row); i++)
        if (row[i].letter == letter) return (uint64_t)row[i].type;
    return 0;
}

static uint64_t by_attr(const struct wml_node *n, const char *name, uint64_t otherwise)
{
    return (uint64_t)wml_attr_int(n, name, (int64_t)otherwise) & WML_HALF_ELEM;
}

static uint64_t constant(const struct wml_node *n)
{
    const struct wml_attr *a = n->attr.len ? n->attr.at[0] : NULL;
    if (!a) return 0;
    if (wml_str_is(a->name, "value") && a->t) return (uint64_t)a->t->dtype;
    if (wml_str_starts(a->name, "value_float")) return WML_F32;
    if (wml_str_starts(a->name, "value_int")) return WML_I64;
    if (wml_str_starts(a->name, "value_string")) return WML_STRING;
    return a->sparse ? (uint64_t)a->sparse->values->dtype : 0;
}

static uint64_t of_subgraph(const struct wml_node *n, size_t slot)
{
    const struct wml_graph *sub = wml_node_subgraph(n, 0);
    for (size_t i = 0; sub && i < sub->outputs.len; i++)
        if (wml_half_slot_of_output(n, i) == slot) return known(sub->outputs.at[i]);
    return 0;
}

static struct wml_function *function_of(const struct wml_node *n)
{
    const struct wml_model *m = n->graph->model;
    for (size_t i = 0; i < m->function.len; i++)
        if (wml_str_eq(m->function.at[i]->name, n->op_type) && wml_str_eq(m->function.at[i]->domain, n->domain)) return m->function.at[i];
    return NULL;
}

/* Operators of the ONNX domain that no letter describes. */
static uint64_t special(const struct wml_node *n, size_t slot)
{
    const uint64_t in = known(wml_node_in(n, 0));
    struct wml_str op = n->op_type;
    if (wml_str_is(op, "Cast") || wml_str_is(op, "BitCast")) return by_attr(n, "to", 0);
    if (wml_str_is(op, "Constant")) return constant(n);
    if (wml_str_is(op, "ConstantOfShape")) {
        const struct wml_tensor *t = wml_attr_tensor(n, "value");
        return t ? (uint64_t)t->dtype : WML_F32;
    }
    if (wml_str_ends(op, "Window") || wml_str_is(op, "MelWeightMatrix")) return by_attr(n, "output_datatype", WML_F32);
    if (wml_str_is(op, "RandomNormal") || wml_str_is(op, "RandomUniform")) return by_attr(n, "dtype", WML_F32);
    if (wml_str_is(op, "Multinomial")) return by_attr(n, "dtype", WML_I32);
    if (wml_str_is(op, "EyeLike") || wml_str_is(op, "Bernoulli") || wml_str_is(op, "RandomNormalLike") || wml_str_is(op, "RandomUniformLike"))
        return by_attr(n, "dtype", in);
    if (wml_str_is(op, "DequantizeLinear")) {
        uint64_t asked = by_attr(n, "output_dtype", 0);
        return asked ? asked : known(wml_node_in(n, 1));
    }
    if (wml_str_ends(op, "LayerNormalization")) return slot ? WML_F32 : in;
    if (wml_str_is(op, "SequenceAt") || wml_str_is(op, "ConcatFromSequence")) return in & ~(uint64_t)WML_HALF_SEQUENCE;
    if (wml_str_is(op, "SequenceConstruct") || wml_str_is(op, "SplitToSequence")) return in ? in | WML_HALF_SEQUENCE : 0;
    if (wml_str_is(op, "SequenceEmpty")) return by_attr(n, "dtype", WML_F32) | WML_HALF_SEQUENCE;
    if (wml_str_is(op, "Optional")) return in ? in | WML_HALF_OPTIONAL : 0;
    if (wml_str_is(op, "OptionalGetElement")) return in & ~(uint64_t)WML_HALF_OPTIONAL;
    return 0;
}

static uint64_t output(const struct wml_node *n, size_t slot)
{
    const struct wml_function *f = function_of(n);
    const char *types = wml_half_outputs(n);
    uint64_t mark = 0;
    if (f) return slot < f->body.outputs.len ? known(f->body.outputs.at[slot]) : 0;
    if (wml_node_subgraph(n, 0)) return of_subgraph(n, slot);
    if (!n->domain.len || wml_str_is(n->domain, "ai.onnx")) mark = special(n, slot);
    if (mark || !types) return mark;
    for (size_t i = 0; i < slot && types[1]; i++) types++;
    return by_letter(n, *types);
}

/* --- the walk: what is inside a node before its outputs --- */

enum { MAX_DEPTH = 100 }; /* functions that call themselves are no model, but must not hang */

static void start(struct wml_graph *g)
{
    for (struct wml_value *v = g->first_value; v; v = v->next) v->mark = said(v);
}

static size_t unknown_of(const struct wml_half *h, struct wml_graph *g, unsigned depth);

static size_t enter(const struct wml_half *h, const struct wml_node *n, struct wml_graph *g, unsigned depth)
{
    start(g);
    for (size_t i = 0; i < g->inputs.len; i++) {
        struct wml_value *v = g->inputs.at[i];
        if (!v->mark) v->mark = known(wml_node_in(n, wml_half_slot_of_input(h, n, i)));
    }
    return depth < MAX_DEPTH ? unknown_of(h, g, depth + 1) : 0;
}

static size_t unknown_of(const struct wml_half *h, struct wml_graph *g, unsigned depth)
{
    size_t unknown = 0;
    struct wml_graph *sub;
    for (struct wml_node *n = g->first; n; n = n->next) {
        struct wml_function *f = function_of(n);
        for (size_t k = 0; (sub = wml_node_subgraph(n, k)); k++) unknown += enter(h, n, sub, depth);
        if (f) enter(h, n, &f->body, depth);
        for (size_t i = 0; i < n->n_out; i++) {
            struct wml_value *v = n->out[i];
            if (!v || v->mark & WML_HALF_ELEM) continue;
            v->mark = output(n, i);
            unknown += !(v->mark & WML_HALF_ELEM);
        }
    }
    return unknown;
}

size_t wml_half_mark_types(struct wml_half *h)
{
    start(h->model->graph);
    return unknown_of(h, h->model->graph, 0);
}
