/* Tensors of another type than the rest. Kernels of integers want one type for all activations of a node, so the node that
 * makes such a tensor and the nodes that read it get all their inputs and outputs in its type, and conversions are put on
 * the tensors between them and the others.
 *
 * First the nodes' wishes are gathered per tensor: the type in which it should be made, and that in which some nodes want
 * to read it. Then each tensor is settled by itself. */
#include "quant/qdq_internal.h"

#include "graph/graph.h"

struct wish {
    enum wml_dtype made, read; /* WML_UNDEFINED: nobody cares */
    WML_VEC(struct wml_node *) reader;
};

struct mixed {
    struct wml_qdq *q;
    struct wish *wish; /* by index of the tensor */
    struct wml_err *err;
};

static struct wish *wish_of(const struct mixed *m, const struct wml_qdq_tensor *t)
{
    return &m->wish[t - m->q->tensor];
}

static bool contains(const struct wml_node *const *at, size_t n, const struct wml_node *node)
{
    for (size_t i = 0; i < n; i++)
        if (at[i] == node) return true;
    return false;
}

static bool want(const struct mixed *m, const struct wml_qdq_tensor *t, enum wml_dtype *slot, enum wml_dtype type)
{
    if (*slot && *slot != type) {
        wml_fail(m->err, WML_E_USAGE, "tensor '%.*s' is wanted as %s and as %s, by what is asked of tensors around it", WML_ARG(t->value->name),
                 wml_dtype_name((int)*slot), wml_dtype_name((int)type));
        return wml_hint(m->err, "ask for one type on neighbouring tensors, or set \"add_qtype_converts\": false and say every type");
    }
    *slot = type;
    return true;
}

/* Everything of n in one type. */
static bool ask_node(const struct mixed *m, struct wml_node *n, enum wml_dtype type)
{
    for (size_t i = 0; i < n->n_out; i++) {
        const struct wml_qdq_tensor *t = wml_qdq_of(m->q, n->out[i]);
        if (t && t->real && !want(m, t, &wish_of(m, t)->made, type)) return false;
    }
    for (size_t i = 0; i < n->n_in; i++) {
        const struct wml_qdq_tensor *t = wml_qdq_of(m->q, n->in[i]);
        if (!t || !t->real || t->constant) continue;
        struct wish *w = wish_of(m, t);
        if (!want(m, t, &w->read, type)) return false;
        if (!contains((const struct wml_node *const *)w->reader.at, w->reader.len, n)) WML_PUSH_IN(m->q->arena, &w->reader, n);
    }
    return true;
}

static bool gather(const struct mixed *m)
{
    const struct wml_qdq *q = m->q;
    for (size_t i = 0; i < q->n_tensors; i++) {
        const struct wml_qdq_tensor *t = &q->tensor[i];
        enum wml_dtype type = wml_qdq_asked_type(q, t);
        if (!t->asked.n || t->constant || t->asked.converts || type == q->activation) continue;
        if (t->value->def && !ask_node(m, t->value->def, type)) return false;
        for (const struct wml_use *u = t->value->uses; u; u = u->next)
            if (u->node->graph == q->graph && !ask_node(m, u->node, type)) return false;
    }
    return true;
}

/* The readers of t, each once, that are (not) among those of w. */
static void split_readers(const struct mixed *m, const struct wml_qdq_tensor *t, const struct wish *w, struct wish *others)
{
    for (const struct wml_use *u = t->value->uses; u; u = u->next) {
        const struct wml_node *const *have = (const struct wml_node *const *)w->reader.at;
        if (u->node->graph != m->q->graph || contains(have, w->reader.len, u->node)) continue;
        if (!contains((const struct wml_node *const *)others->reader.at, others->reader.len, u->node))
            WML_PUSH_IN(m->q->arena, &others->reader, u->node);
    }
}

static bool convert(const struct mixed *m, struct wml_qdq_tensor *t, enum wml_dtype made, enum wml_dtype read, const struct wish *readers)
{
    struct wml_qdq_asked *a = &t->asked;
    enum wml_dtype is = a->n ? wml_qdq_asked_type(m->q, t) : made;
    if (!want(m, t, &is, made)) return false;
    wml_qdq_ask_one(m->q, t)->type = made;
    if (!readers->reader.len) return true;
    if (!a->converts) {
        a->converts = a->some = true;
        a->convert = wml_override_none();
        a->convert.type = read;
    }
    if (!want(m, t, &a->convert.type, read)) return false;
    for (size_t i = 0; a->some && i < readers->reader.len; i++)
        if (!contains((const struct wml_node *const *)a->reader.at, a->reader.len, readers->reader.at[i]))
            WML_PUSH_IN(m->q->arena, &a->reader, readers->reader.at[i]);
    return true;
}

static bool settle(const struct mixed *m, struct wml_qdq_tensor *t)
{
    const struct wish *w = wish_of(m, t);
    struct wish others = {0};
    enum wml_dtype usual = m->q->activation, made = w->made ? w->made : wml_qdq_asked_type(m->q, t);
    if (!w->made && !w->read) return true;
    split_readers(m, t, w, &others);
    if (!w->read) return convert(m, t, made, usual, &others);
    if (made != w->read) return convert(m, t, made, w->read, w);
    if (w->made) return convert(m, t, made, usual, &others);
    for (size_t i = 0; i < w->reader.len; i++) {
        enum wml_dtype read = wml_qdq_reads_converted(t, w->reader.at[i]) ? t->asked.convert.type : made;
        if (!want(m, t, &read, w->read)) return false;
    }
    return true;
}

bool wml_qdq_mix(struct wml_qdq *q, struct wml_err *err)
{
    struct mixed m = {.q = q, .err = err};
    if (!q->opts->overrides || q->opts->overrides->no_converts) return true;
    m.wish = WML_NEW_ARRAY(q->arena, struct wish, q->n_tensors);
    if (!gather(&m)) return false;
    for (size_t i = 0; i < q->n_tensors; i++)
        if (!settle(&m, &q->tensor[i])) return false;
    return true;
}
