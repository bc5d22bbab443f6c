/* What Qualcomm's NPU wants of a model: parameters that its kernels of Sigmoid and Tanh are built for, one scale per weight
 * of a MatMul, no range below 1e-4. The list is that of ONNX Runtime's own configuration for this EP, but for the scale of
 * LayerNormalization: as the EP's answers show (2.7), it takes uint8 beside uint8 and uint16, int8 beside int8, and beside
 * uint16 symmetric 16-bit ones as well. Everything else leaves the node to the CPU. */
#include "quant/qdq_internal.h"

#include "graph/graph.h"

static bool is_wide(enum wml_dtype type)
{
    return type == WML_U16 || type == WML_I16;
}

static void force_output(struct wml_qdq *q, const struct wml_node *n)
{
    struct wml_qdq_tensor *t = wml_qdq_of(q, wml_node_out(n, 0));
    bool tanh = wml_node_is(n, "Tanh");
    if (!t || !t->real || !is_wide(wml_qdq_asked_type(q, t))) return;
    enum wml_dtype type = wml_qdq_asked_type(q, t);
    struct wml_override *o = wml_qdq_ask_one(q, t);
    *o = wml_override_none();
    o->type = type;
    o->has_scale = true;
    o->scale = type == WML_U16 && !tanh ? 1.0 / 65536 : 1.0 / 32768;
    o->zero = type == WML_U16 && tanh ? 32768 : 0;
}

/* One scale for a constant that nothing else is asked of. */
static void force_type(struct wml_qdq *q, const struct wml_value *v, enum wml_dtype type, enum wml_symmetry s)
{
    struct wml_qdq_tensor *t = wml_qdq_of(q, v);
    if (!t || !t->real || !t->constant || t->asked.n) return;
    struct wml_override *o = wml_qdq_ask_one(q, t);
    o->type = type;
    o->symmetric = s == WML_SYMMETRY_DEFAULT ? wml_dtype_info((int)type)->cls == WML_CLASS_INT : s == WML_SYMMETRY_ON;
}

static void force_weight(struct wml_qdq *q, const struct wml_value *v)
{
    force_type(q, v, q->weight, q->opts->symmetric_weight);
}

static void force_norm(struct wml_qdq *q, const struct wml_node *n)
{
    const struct wml_qdq_tensor *t = wml_qdq_of(q, wml_node_in(n, 0));
    enum wml_dtype beside = t && t->real ? wml_qdq_read_type(q, t, n) : WML_UNDEFINED;
    bool taken = beside == WML_U16 && q->weight != WML_I8 && wml_dtype_info((int)q->weight)->bits >= 8;
    if (taken && wml_dtype_info((int)q->weight)->bits == 16) force_type(q, wml_node_in(n, 1), q->weight, WML_SYMMETRY_ON);
    else if (taken || beside == WML_I16) force_weight(q, wml_node_in(n, 1)); /* beside int16 nothing is taken */
    else if (beside == WML_I8) force_type(q, wml_node_in(n, 1), WML_I8, q->opts->symmetric_weight);
    else if (beside) force_type(q, wml_node_in(n, 1), WML_U8, q->opts->symmetric_weight);
}

/* A constant beside a 16-bit activation keeps its 8 bits. */
static void force_beside_wide(struct wml_qdq *q, const struct wml_node *n)
{
    bool wide = false;
    if (wml_dtype_info((int)q->weight)->bits != 8) return;
    for (size_t i = 0; i < 2; i++) {
        const struct wml_qdq_tensor *t = wml_qdq_of(q, wml_node_in(n, i));
        wide |= t && t->real && !t->constant && is_wide(wml_qdq_read_type(q, t, n));
    }
    for (size_t i = 0; wide && i < 2; i++) force_weight(q, wml_node_in(n, i));
}

static void ask(struct wml_qdq *q)
{
    for (struct wml_node *n = q->graph->first; n; n = n->next) {
        bool matmul = wml_node_is(n, "MatMul");
        if (!wml_qdq_takes(q, n)) continue;
        if (wml_node_is(n, "Sigmoid") || wml_node_is(n, "Tanh")) force_output(q, n);
        else if (matmul && q->opts->per_channel)
            for (size_t i = 0; i < n->n_in; i++) force_weight(q, n->in[i]);
        else if (matmul) force_beside_wide(q, n);
        else if (wml_node_is(n, "LayerNormalization")) force_norm(q, n);
    }
}

const struct wml_qdq_ep wml_qdq_ep_qnn = {.alias = "qnn", .min_range = 1e-4, .moves_follow = true, .one_symmetry = true, .ask = ask};
