/* What can be raised to 16 bits: tensors of 8 bits, those that share a scale together. They are read off the plain quantised
 * model, where the rules have decided everything; names lead back to the float model. */
#include "flow/quantize/mixed_internal.h"

#include "flow/quantize/rank_internal.h"
#include "graph/edit.h"
#include "graph/graph.h"

static enum wml_dtype type_of(const struct wml_node *q)
{
    const struct wml_value *zero = wml_node_in(q, 2);
    return zero && zero->init ? (enum wml_dtype)zero->init->dtype : WML_UNDEFINED;
}

static bool is_byte(enum wml_dtype t)
{
    return t == WML_U8 || t == WML_I8;
}

static bool is_pair(const struct wml_node *dq)
{
    const struct wml_value *in = wml_node_in(dq, 0);
    return in && in->def && wml_str_is(in->def->op_type, "QuantizeLinear");
}

/* The float value that dq gives back; NULL: none of ours. */
static struct wml_value *original(const struct wml_mixed_search *x, const struct wml_node *dq)
{
    struct wml_value *v = wml_graph_find(x->base->graph, wml_rank_name(dq));
    bool given = v && ((v->def && wml_str_is(v->def->op_type, "DequantizeLinear")) || !wml_dtype_is_float((int)wml_value_elem(v)));
    return given ? NULL : v;
}

/* Operators whose weights may have fewer bits than the activations beside them. */
static bool is_weight(const struct wml_value *v)
{
    for (const struct wml_use *u = v->uses; u; u = u->next) {
        const struct wml_node *n = u->node;
        bool sums = wml_node_is(n, "Conv") || wml_node_is(n, "ConvTranspose") || wml_node_is(n, "Gemm") || wml_node_is(n, "MatMul");
        if (sums || (u->slot == 1 && wml_str_ends(n->op_type, "Normalization"))) return true;
    }
    return false;
}

static struct wml_node *merged_cut(const struct wml_node *dq, const struct wml_value *v)
{
    const struct wml_value *pre = wml_node_in(dq->in[0]->def, 0);
    bool cut = v->def && (wml_node_is(v->def, "Relu") || wml_node_is(v->def, "Clip"));
    return cut && pre && pre->def && !wml_str_eq(pre->def->op_type, v->def->op_type) ? v->def : NULL;
}

static struct wml_mixed_part *part_of(struct wml_mixed_search *x, struct wml_map *by_scale, struct wml_str scale)
{
    size_t at = (size_t)(uintptr_t)wml_map_get(by_scale, scale);
    if (!at) {
        struct wml_mixed_part fresh = {.index = x->part.len};
        WML_PUSH_IN(x->arena, &x->part, fresh);
        wml_map_put(by_scale, scale, (void *)(uintptr_t)(at = x->part.len));
    }
    return &x->part.at[at - 1];
}

static bool has_one(const struct wml_value *v)
{
    int64_t count;
    return wml_value_count(v, &count) && count == 1;
}

static void add_constant(struct wml_mixed_search *x, struct wml_map *by_scale, struct wml_node *dq, struct wml_value *v, bool shared)
{
    struct wml_value *scale = wml_node_in(dq, 1);
    struct wml_mixed_constant c = {.value = v, .axis = -1, .weight = is_weight(v)};
    c.wide = c.weight || type_of(dq) == WML_I8 ? WML_I16 : WML_U16;
    if (!has_one(scale)) c.axis = wml_attr_int(dq, "axis", 1);
    if (shared || !has_one(v)) { /* one number: its scale is made for it */
        struct wml_mixed_part *p = part_of(x, by_scale, scale->name);
        struct wml_mixed_member m = {.value = v, .dq = dq};
        WML_PUSH_IN(x->arena, &p->member, m);
        p->constant = !shared;
        c.part = p->index + 1;
    }
    WML_PUSH_IN(x->arena, &x->constant, c);
    wml_map_put(&x->by_name, v->name, (void *)(uintptr_t)x->constant.len);
}

/* Whether a QuantizeLinear has this scale too. */
static bool is_shared(const struct wml_value *scale)
{
    for (const struct wml_use *u = scale->uses; u; u = u->next)
        if (wml_str_is(u->node->op_type, "QuantizeLinear")) return true;
    return false;
}

/* What the user's own overrides have made wide. */
static void mark_wide(struct wml_mixed_search *x)
{
    struct wml_map nodes = {0};
    for (struct wml_node *n = x->base->graph->first; n; n = n->next) wml_map_put(&nodes, n->name, n);
    for (struct wml_node *q = x->plain->graph->first; q; q = q->next) {
        enum wml_dtype type = type_of(q);
        const struct wml_node *makes = wml_str_is(q->op_type, "QuantizeLinear") ? wml_node_producer(q, 0) : NULL, *n;
        const struct wml_value *out = wml_str_is(q->op_type, "DequantizeLinear") && is_pair(q) ? wml_node_out(q, 0) : NULL;
        if (type != WML_U16 && type != WML_I16) continue;
        if (makes && (n = wml_map_get(&nodes, makes->name)) != NULL) x->wide[n->mark] = true;
        for (const struct wml_use *u = out ? out->uses : NULL; u; u = u->next)
            if ((n = wml_map_get(&nodes, u->node->name)) != NULL) x->wide[n->mark] = true;
    }
    wml_map_release(&nodes);
}

bool wml_mixed_is_fixed(const struct wml_quant_overrides *user, const struct wml_value *v)
{
    const struct wml_tensor_override *t = wml_overrides_of_tensor(user, v->name);
    const struct wml_node_override *n;
    if (t && t->channel.len) return t->converts || t->channel.at[0].type || t->channel.at[0].has_scale;
    if (v->def) return (n = wml_overrides_of_node(user, v->def->name, v->def->op_type)) != NULL && n->activation;
    for (const struct wml_use *u = v->init ? v->uses : NULL; u; u = u->next)
        if ((n = wml_overrides_of_node(user, u->node->name, u->node->op_type)) != NULL && n->weight) return true;
    return false;
}

void wml_mixed_find(struct wml_mixed_search *x)
{
    struct wml_map by_scale = {0};
    for (struct wml_node *n = x->base->graph->first; n; n = n->next) n->mark = x->n_nodes++;
    x->wide = WML_NEW_ARRAY(x->arena, bool, x->n_nodes + 1);
    mark_wide(x);
    for (struct wml_node *dq = x->plain->graph->first; dq; dq = dq->next) {
        struct wml_value *scale = wml_node_in(dq, 1), *v;
        if (!wml_str_is(dq->op_type, "DequantizeLinear") || !scale || !wml_node_out(dq, 0) || !is_byte(type_of(dq))) continue;
        if (!(v = original(x, dq)) || wml_mixed_is_fixed(x->r->overrides, v)) continue;
        if (dq->in[0]->init) {
            if (v->init) add_constant(x, &by_scale, dq, v, is_shared(scale));
        } else if (is_pair(dq)) {
            struct wml_mixed_member m = {.value = v, .dq = dq, .cut = merged_cut(dq, v)};
            struct wml_mixed_part *p = part_of(x, &by_scale, scale->name);
            WML_PUSH_IN(x->arena, &p->member, m);
        }
    }
    wml_map_release(&by_scale);
}
