/* Attention of decoders, softmax(scale * Q K^T + mask) V, where the keys and values of earlier positions are joined in
 * front of the new ones and each may serve a group of query heads (repeated by Unsqueeze, Expand, Reshape). It becomes
 * ONNX's Attention (opset 23), which takes the mask as it is, else com.microsoft's GroupQueryAttention. That hides the
 * future by itself, so a mask must be proven to do so; what else the mask hides goes in as attention_bias. (A query
 * that a mask lets see nothing at all, as those of padding, averages over other keys than before.) Rotary embeddings
 * before it are moved to where the heads are not split yet. Attention that is there already takes past and groups in. */
#include "passes/attention_stream.h"
#include "passes/causal_mask.h"

enum { KEY = 1, VALUE = 2 };

/* Numbers of keys, which layers share. */
struct lengths {
    struct wml_graph *graph;
    struct wml_sym queries, past, batch;
    struct wml_value *total, *last; /* int32 [1], [batch]: one less */
};

struct plan {
    struct wml_attention a;
    struct wml_symbols *symbols;
    struct lengths *lengths;
    struct wml_stream k, v;
    int64_t groups;
    bool standard;
    enum wml_causal causal;
    double scale;
};

static bool refuse(const struct plan *p, const char *why)
{
    wml_pass_refuse(p->a.r, p->a.softmax, "%s", why);
    return false;
}

/* -- what is there -- */

static int64_t size_of(const struct wml_value *v, size_t axis)
{
    return wml_value_axis(v, axis).size;
}

static bool can_take_whole(struct plan *p)
{
    const struct wml_value *in[] = {p->a.q.bnsh, p->k.past, p->k.new, p->v.past, p->v.new};
    uint64_t mark = wml_model_mark(p->a.r->model);
    for (size_t i = 0; i < WML_COUNT(in); i++)
        if (wml_needs_either(in[i], p->k.whole, p->v.whole, mark)) return refuse(p, "an operand is computed from the joined keys or values");
    for (size_t i = 0; i < p->a.n_mask; i++)
        if (wml_needs_either(p->a.mask[i].value, p->k.whole, p->v.whole, mark)) return refuse(p, "the mask is computed from the joined keys or values");
    return true;
}

static bool streams_fit(struct plan *p)
{
    const struct wml_value *q = p->a.q.bnsh, *k = p->k.new, *v = p->v.new;
    if (p->k.whole == p->v.whole) return refuse(p, "keys are the values");
    if (!p->k.past != !p->v.past) return refuse(p, "keys have a past and values none, or the other way");
    if (wml_value_rank(k) != 4 || wml_value_rank(v) != 4 || size_of(k, 1) < 1) return refuse(p, "the heads of keys or values are not known");
    p->groups = size_of(k, 1);
    if (size_of(v, 1) != p->groups || p->a.q.heads % p->groups) return refuse(p, "heads do not form equal groups");
    if (size_of(k, 3) != p->a.q.size || size_of(v, 3) < 1) return refuse(p, "the size of a head is not known");
    if (!wml_same_axis(q, 0, k, 0) || !wml_same_axis(q, 0, v, 0)) return refuse(p, "queries, keys and values have different batches");
    if (!p->k.past && p->groups == p->a.q.heads) return false; /* an encoder's */
    if (!p->k.past) return true;
    if (!wml_stream_joins(&p->k) || !wml_stream_joins(&p->v)) return refuse(p, "past keys or values have other heads than the new ones");
    if (!wml_same_axis(q, 2, k, 2) || !wml_same_axis(q, 2, v, 2)) return refuse(p, "there are not as many new keys as queries");
    return can_take_whole(p);
}

/* What com.microsoft's operator wants beyond that. */
static bool suits_microsoft(struct plan *p)
{
    const struct wml_value *q = p->a.q.bnsh;
    bool one_query = size_of(q, 2) == 1, one_batch = size_of(q, 0) == 1;
    struct wml_sym past = p->k.past ? wml_sym_axis(p->symbols, p->k.past, 2) : wml_sym_number(0);
    if (!p->a.r->asked) return false;
    if (size_of(p->v.new, 3) != p->a.q.size) return refuse(p, "values have another size than keys");
    if (p->a.q.size % 8) return refuse(p, "the size of a head is no multiple of 8, as GroupQueryAttention wants it");
    if (!p->k.past && !wml_same_axis(q, 2, p->k.new, 2)) return refuse(p, "there are not as many keys as queries");
    p->causal = wml_mask_is_causal(p->symbols, &p->a, past);
    if (!p->causal && one_query && p->k.past) p->causal = p->a.n_mask ? WML_CAUSAL_HIDES : WML_CAUSAL_EXACT; /* the last one sees all */
    if (!p->causal) return refuse(p, "the mask is not proven to hide the future, as GroupQueryAttention does; opset 23 has Attention");
    if (!one_query && !one_batch && p->k.past) return refuse(p, "GroupQueryAttention takes one batch when several queries follow a past; --input-dim fixes the batch");
    if (wml_model_opset(p->a.r->model, "") < 15) return refuse(p, "a part of a shape needs opset 15");
    return true;
}

/* -- operands -- */

static struct wml_value *add(struct plan *p, const char *op, const char *name, size_t n_in, struct wml_value *const *in)
{
    struct wml_node *n = wml_node_new(p->a.join, "", op);
    n->name = wml_model_unique(p->a.r->model, wml_str(name));
    for (size_t i = 0; i < n_in; i++) wml_node_set_input(n, i, in[i]);
    return wml_node_add_output(n, wml_str(name));
}

static struct wml_value *ints(struct plan *p, const char *name, size_t n, const int64_t *v)
{
    return wml_graph_add_init(p->a.join->graph, wml_str(name), wml_tensor_i64s(p->a.r->model, n, v));
}

/* v, [batch, heads, length, size], as [batch, length, heads * size]; a rotary embedding on the way is made of that. */
static struct wml_value *flattened(struct plan *p, struct wml_value *v, int64_t heads)
{
    static const int64_t keep[] = {0, 0, -1};
    struct wml_node *n = v->def;
    struct wml_heads h;
    bool contrib = n && wml_node_is_in(n, "com.microsoft", "RotaryEmbedding");
    if (n && (contrib || wml_node_is(n, "RotaryEmbedding"))) {
        struct wml_node *flat = wml_node_new(p->a.join, contrib ? "com.microsoft" : "", "RotaryEmbedding");
        flat->name = wml_model_unique(p->a.r->model, n->name.len ? n->name : n->op_type);
        wml_attrs_copy(flat, n);
        wml_attr_set_int(flat, "num_heads", heads);
        wml_node_set_input(flat, 0, flattened(p, n->in[0], heads));
        for (size_t i = 1; i < n->n_in; i++) wml_node_set_input(flat, i, n->in[i]);
        return wml_node_add_output(flat, n->out[0]->name);
    }
    if (wml_heads_of(p->a.r, v, false, &h) && h.flat) return h.flat;
    struct wml_value *in[2] = {v};
    if (wml_is_transpose(n, 0, 2, 1, 3)) {
        in[0] = n->in[0];
    } else {
        static const int64_t swap[] = {0, 2, 1, 3};
        in[0] = add(p, "Transpose", "attention_heads", 1, in);
        wml_attr_set_ints(in[0]->def, "perm", 4, swap);
    }
    in[1] = ints(p, "attention_flat", 3, keep);
    return add(p, "Reshape", "attention_flat", 2, in);
}

static struct wml_value *length_of(struct plan *p, struct wml_value *v, int64_t axis)
{
    struct wml_value *shape = add(p, "Shape", "attention_length", 1, &v);
    wml_attr_set_int(shape->def, "start", axis);
    wml_attr_set_int(shape->def, "end", axis + 1);
    return shape;
}

static struct wml_value *int32s(struct plan *p, const char *name, size_t n, const int32_t *v)
{
    int64_t dim = (int64_t)n;
    return wml_graph_add_init(p->a.join->graph, wml_str(name), wml_tensor_copy(p->a.r->model, WML_I32, 1, &dim, v, n * sizeof *v, NULL));
}

static void known_lengths(struct plan *p, struct lengths *l)
{
    int32_t total = (int32_t)(l->queries.v + l->past.v), *each = WML_NEW_ARRAY(p->a.r->scratch, int32_t, (size_t)l->batch.v + 1);
    for (int64_t i = 0; i < l->batch.v; i++) each[i] = total - 1;
    l->total = int32s(p, "attention_total", 1, &total);
    l->last = int32s(p, "attention_last", (size_t)l->batch.v, each);
}

static void computed_lengths(struct plan *p, struct wml_value *q, struct lengths *l)
{
    struct wml_value *in[2];
    int32_t one = 1;
    in[0] = l->queries.kind == WML_SYM_NUMBER ? ints(p, "attention_queries", 1, &l->queries.v) : length_of(p, q, 1);
    if (!wml_sym_is(l->past, 0)) {
        in[1] = l->past.kind == WML_SYM_NUMBER ? ints(p, "attention_past", 1, &l->past.v) : length_of(p, p->k.past, 2);
        in[0] = add(p, "Add", "attention_total", 2, in);
    }
    in[0] = add(p, "Cast", "attention_total", 1, in);
    wml_attr_set_int(in[0]->def, "to", WML_I32);
    l->total = in[0];
    in[1] = int32s(p, "attention_one", 1, &one);
    l->last = add(p, "Sub", "attention_last", 2, in);
    if (wml_sym_is(l->batch, 1)) return;
    in[0] = l->last;
    in[1] = length_of(p, q, 0);
    l->last = add(p, "Expand", "attention_last", 2, in);
}

/* How many keys there are, and one less for every batch. */
static const struct lengths *lengths(struct plan *p, struct wml_value *q)
{
    struct lengths *have = p->lengths, l = {.graph = p->a.join->graph};
    l.queries = wml_sym_axis(p->symbols, p->a.q.bnsh, 2);
    l.past = p->k.past ? wml_sym_axis(p->symbols, p->k.past, 2) : wml_sym_number(0);
    l.batch = wml_sym_axis(p->symbols, p->a.q.bnsh, 0);
    if (have->graph == l.graph && wml_sym_eq(l.queries, have->queries) && wml_sym_eq(l.past, have->past) && wml_sym_eq(l.batch, have->batch)) return have;
    if (l.queries.kind == WML_SYM_NUMBER && l.past.kind == WML_SYM_NUMBER && l.batch.kind == WML_SYM_NUMBER) known_lengths(p, &l);
    else computed_lengths(p, q, &l);
    *have = l;
    return have;
}

/* -- the operators -- */

enum { ONNX_MASK = 3, ONNX_PAST = 4, MS_PAST = 3, MS_LAST = 5, MS_TOTAL = 6, MS_BIAS = 10 };

static struct wml_node *onnx_node(struct plan *p, struct wml_value *const *qkv, struct wml_value *mask)
{
    struct wml_node *n = wml_node_new(p->a.join, "", "Attention");
    for (size_t i = 0; i < 3; i++) wml_node_set_input(n, i, qkv[i]);
    if (mask) wml_node_set_input(n, ONNX_MASK, mask);
    if (p->k.past) {
        wml_node_set_input(n, ONNX_PAST, p->k.past);
        wml_node_set_input(n, ONNX_PAST + 1, p->v.past);
    }
    wml_attr_set_int(n, "q_num_heads", p->a.q.heads);
    wml_attr_set_int(n, "kv_num_heads", p->groups);
    return n;
}

static struct wml_node *microsoft_node(struct plan *p, struct wml_value *const *qkv, struct wml_value *mask)
{
    const struct lengths *l = lengths(p, qkv[0]);
    struct wml_node *n = wml_node_new(p->a.join, "com.microsoft", "GroupQueryAttention");
    wml_pass_use_contrib(p->a.r);
    for (size_t i = 0; i < 3; i++) wml_node_set_input(n, i, qkv[i]);
    if (p->k.past) {
        wml_node_set_input(n, MS_PAST, p->k.past);
        wml_node_set_input(n, MS_PAST + 1, p->v.past);
    }
    wml_node_set_input(n, MS_LAST, l->last);
    wml_node_set_input(n, MS_TOTAL, l->total);
    if (mask) wml_node_set_input(n, MS_BIAS, mask);
    wml_attr_set_int(n, "num_heads", p->a.q.heads);
    wml_attr_set_int(n, "kv_num_heads", p->groups);
    return n;
}

static void rewrite(struct plan *p)
{
    struct wml_attention *a = &p->a;
    struct wml_value *qkv[] = {flattened(p, a->q.bnsh, a->q.heads), flattened(p, p->k.new, p->groups), flattened(p, p->v.new, p->groups)};
    bool needs_mask = p->standard || p->causal != WML_CAUSAL_EXACT;
    struct wml_value *mask = needs_mask ? wml_attention_mask(a, a->join, true) : NULL;
    struct wml_node *n = p->standard ? onnx_node(p, qkv, mask) : microsoft_node(p, qkv, mask);
    wml_attention_set_scale(n, p->scale, a->q.size);
    if (p->k.past) {
        wml_stream_take_whole(n, KEY, &p->k);
        wml_stream_take_whole(n, VALUE, &p->v);
    }
    wml_attention_finish(a, n, true);
}

struct search {
    struct wml_symbols *symbols;
    struct lengths lengths;
};

static void visit(void *arg, struct wml_node *softmax)
{
    struct search *s = arg;
    struct wml_pass_run *r = s->symbols->r;
    struct plan p = {.symbols = s->symbols, .lengths = &s->lengths, .standard = wml_model_opset(r->model, "") >= 23};
    struct wml_attention *a = &p.a;
    if (!wml_attention_find(r, softmax, a)) return;
    enum wml_dtype dtype = wml_value_elem(a->scores->out[0]);
    if (dtype != WML_F32 && dtype != WML_F16) refuse(&p, "neither float nor half float");
    else if (!a->join || !a->tail) refuse(&p, "the heads of the result are not joined by Transpose and Reshape, or their joining has other readers");
    else if (!a->q.bnsh || !a->k.bnsh || !a->v.bnsh) refuse(&p, "keys are transposed while they are split into heads");
    else {
        p.scale = a->scale * a->q.bnsh_factor * a->k.bnsh_factor;
        wml_stream_of(r, a->k.bnsh, &p.k);
        wml_stream_of(r, a->v.bnsh, &p.v);
        if (!(p.scale > 0)) refuse(&p, "the scale is not above 0");
        else if (!streams_fit(&p) || !wml_attention_mask_fits(a)) return;
        else if (p.standard || suits_microsoft(&p)) rewrite(&p);
    }
}

static bool note(void *arg, struct wml_graph *g)
{
    for (struct wml_node *n = g->first; n; n = n->next) wml_syms_note(arg, n);
    return true;
}

static void absorb(void *arg, struct wml_node *n)
{
    wml_attention_absorb(arg, n);
}

static bool run(struct wml_pass_run *r, struct wml_err *err)
{
    struct search s = {.symbols = wml_symbols_new(r)};
    wml_model_each_graph(r->model, note, s.symbols);
    return wml_pass_each_of(r, "Softmax", visit, &s, err) && wml_pass_each_of(r, "Attention", absorb, r, err);
}

const struct wml_pass wml_pass_group_query_attention_fusion = {
    .name = "group-query-attention-fusion", .category = "attention", .makes = WML_MAKES_CONTRIB, .run = run,
    .summary = "Turn attention of decoders, with past keys or grouped heads, into Attention (opset 23) or GroupQueryAttention of com.microsoft",
};
