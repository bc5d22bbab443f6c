/* From raised parts to requests for the method (quant/overrides.h), with every conversion said: a node is in 16 bits when it
 * makes or reads something that is raised. Between two such nodes a value has 16 bits; at a border it is made in its
 * producer's type and converted for the others. */
#include "flow/quantize/mixed_internal.h"

#include "graph/edit.h"
#include "graph/graph.h"

struct raise {
    struct wml_mixed_search *x;
    struct wml_model *m;      /* the copy; node->mark is the number of each */
    size_t n;                 /* parts that are raised */
    bool *wide;               /* nodes, by number */
    struct wml_quant_overrides *out;
    const struct wml_quant_overrides *user;
    size_t n_user; /* tensors of theirs, the first in `out` */
    enum wml_dtype usual, high; /* of activations */
    struct wml_mixed_count *count;
};

static void widen_around(struct raise *a, const struct wml_value *v)
{
    if (v->def && v->def->graph == a->x->base->graph) a->wide[v->def->mark] = true;
    for (const struct wml_use *u = v->uses; u; u = u->next)
        if (u->node->graph == a->x->base->graph) a->wide[u->node->mark] = true;
}

static void widen_nodes(struct raise *a)
{
    for (size_t i = 0; i < a->x->n_nodes; i++) a->wide[i] = a->x->wide[i];
    for (size_t i = 0; i < a->n; i++)
        for (size_t k = 0; k < a->x->part.at[i].member.len; k++) {
            const struct wml_mixed_member *m = &a->x->part.at[i].member.at[k];
            widen_around(a, m->value);
            if (m->cut) widen_around(a, m->cut->in[0]); /* what makes its integers comes before it */
        }
}

static bool is_real(const struct wml_value *v)
{
    enum wml_dtype t = wml_value_elem(v);
    return (t == WML_F32 || t == WML_F16) && !v->pinned && !v->sparse && !(v->type && !v->type->tensor);
}

static bool is_wide(const struct raise *a, const struct wml_node *n)
{
    return n->graph == a->m->graph && a->wide[n->mark];
}

/* The readers of v in the top graph; how many of them are wide. */
static size_t count_readers(const struct raise *a, const struct wml_value *v, size_t *wide)
{
    size_t n = 0;
    *wide = 0;
    for (const struct wml_use *u = v->uses; u; u = u->next) {
        if (u->node->graph != a->m->graph) continue;
        n++;
        *wide += is_wide(a, u->node);
    }
    return n;
}

/* The request for a tensor: the user's own by its exact name, which comes first, or a new one with what else the user says. */
static struct wml_tensor_override *request(struct raise *a, const struct wml_value *v)
{
    struct wml_arena *arena = &a->out->arena;
    const struct wml_tensor_override *user = wml_overrides_of_tensor(a->user, v->name);
    struct wml_tensor_override o = {.pattern = wml_arena_str(arena, v->name)};
    for (size_t i = 0; i < a->n_user; i++)
        if (wml_str_eq(a->out->tensor.at[i].pattern, v->name)) return &a->out->tensor.at[i];
    for (size_t i = 0; user && i < user->channel.len; i++) WML_PUSH_IN(arena, &o.channel, user->channel.at[i]);
    if (!o.channel.len) {
        const struct wml_node_override *n = v->def ? wml_overrides_of_node(a->user, v->def->name, v->def->op_type) : NULL;
        struct wml_override c = wml_override_none();
        if (n) c.symmetric = n->activation_symmetric;
        WML_PUSH_IN(arena, &o.channel, c);
    }
    WML_PUSH_IN(arena, &a->out->tensor, o);
    return &a->out->tensor.at[a->out->tensor.len - 1];
}

/* Names and arrays go to the arena of the overrides. border: the value whose readers differ in type from it. */
static struct wml_tensor_override *put(struct raise *a, const struct wml_value *v, enum wml_dtype type, const struct wml_value *border)
{
    struct wml_arena *arena = &a->out->arena;
    struct wml_tensor_override *o = request(a, v);
    bool made_wide = type == a->high;
    for (size_t i = 0; i < o->channel.len; i++) o->channel.at[i].type = type;
    if (!border) return o;
    o->converts = o->some = true;
    o->convert = o->channel.at[0]; /* the same range */
    o->convert.has_scale = false;
    o->convert.type = made_wide ? a->usual : a->high;
    for (const struct wml_use *u = border->uses; u; u = u->next)
        if (u->node->graph == a->m->graph && is_wide(a, u->node) != made_wide) WML_PUSH_IN(arena, &o->reader, wml_arena_str(arena, u->node->name));
    return o;
}

/* UNDEFINED: the user says so much of it that there is nothing to add. */
static enum wml_dtype fixed_type(const struct raise *a, const struct wml_value *v)
{
    const struct wml_tensor_override *t = wml_overrides_of_tensor(a->user, v->name);
    const struct wml_node_override *n = v->def ? wml_overrides_of_node(a->user, v->def->name, v->def->op_type) : NULL;
    enum wml_dtype type = t && t->channel.len ? t->channel.at[0].type : n ? n->activation : WML_UNDEFINED;
    if (t && t->converts) return WML_UNDEFINED;
    if (!type) type = a->usual;
    return type == a->usual || type == a->high ? type : WML_UNDEFINED;
}

static void raise_activation(struct raise *a, struct wml_value *v)
{
    size_t wide, all = count_readers(a, v, &wide);
    bool made = v->def ? is_wide(a, v->def) : all && wide == all;
    if (a->usual == a->high) return;
    if (wml_mixed_is_fixed(a->user, v)) {
        enum wml_dtype type = fixed_type(a, v);
        if (!type) return;
        made = type == a->high;
    }
    bool border = made ? wide < all : wide > 0;
    if (!made && !border) return;
    put(a, v, made ? a->high : a->usual, border ? v : NULL);
    a->count->activations += made;
}

/* Readers that are wide get a copy of their own, so that the others keep theirs. */
static struct wml_value *split(struct raise *a, struct wml_value *v)
{
    struct wml_value *copy = wml_graph_add_init(a->m->graph, wml_arena_fmt(&a->m->arena, "%.*s_wide", WML_ARG(v->name)), wml_tensor_share(a->m, v->init));
    struct wml_use *next;
    for (struct wml_use *u = v->uses; u; u = next) {
        next = u->next;
        if (is_wide(a, u->node)) wml_node_set_input(u->node, u->slot, copy);
    }
    return copy;
}

static void raise_constant(struct raise *a, const struct wml_mixed_constant *c)
{
    struct wml_value *v = wml_graph_find(a->m->graph, c->value->name);
    bool asked = c->part && c->part <= a->n;
    size_t wide, all = v ? count_readers(a, v, &wide) : 0;
    if (!v || !v->init || !all || !is_real(v)) return;
    if (!asked && (c->weight || !wide)) return;
    if (!asked && wide < all) v = split(a, v);
    struct wml_tensor_override *o = put(a, v, c->wide, NULL);
    for (size_t i = 0; c->weight && i < o->channel.len; i++) /* NPUs take weights of 16 bits around zero only */
        if (o->channel.at[i].symmetric < 0) o->channel.at[i].symmetric = 1;
    if (c->axis >= 0 && o->channel.len == 1) o->channel.at[0].has_axis = true, o->channel.at[0].axis = c->axis;
    a->count->constants++;
}

/* What the user asked for comes first: it counts. */
static void take_user(struct raise *a)
{
    const struct wml_quant_overrides *u = a->user;
    struct wml_arena *arena = &a->out->arena;
    for (size_t i = 0; u && i < u->tensor.len; i++) {
        const struct wml_tensor_override *t = &u->tensor.at[i];
        struct wml_tensor_override copy = *t; /* arrays as well: types are written into it */
        memset(&copy.channel, 0, sizeof copy.channel);
        memset(&copy.reader, 0, sizeof copy.reader);
        for (size_t k = 0; k < t->channel.len; k++) WML_PUSH_IN(arena, &copy.channel, t->channel.at[k]);
        for (size_t k = 0; k < t->reader.len; k++) WML_PUSH_IN(arena, &copy.reader, t->reader.at[k]);
        WML_PUSH_IN(arena, &a->out->tensor, copy);
    }
    a->n_user = a->out->tensor.len;
    for (size_t i = 0; u && i < u->node.len; i++) WML_PUSH_IN(arena, &a->out->node, u->node.at[i]);
    for (size_t i = 0; u && i < u->op.len; i++) WML_PUSH_IN(arena, &a->out->op, u->op.at[i]);
    a->out->no_converts = true;
}

static void count_nodes(const struct raise *a)
{
    for (const struct wml_node *node = a->m->graph->first; node; node = node->next) {
        bool real = false;
        for (size_t i = 0; i < node->n_out; i++) real |= node->out[i] && is_real(node->out[i]);
        a->count->nodes += real && a->wide[node->mark];
        a->count->all_nodes += real;
    }
}

struct wml_quant_overrides *wml_mixed_raise(struct wml_mixed_search *x, struct wml_model *m, size_t n, struct wml_mixed_count *count)
{
    enum wml_dtype usual = x->s->opts.activation;
    struct raise a = {.x = x, .m = m, .n = n, .user = x->r->overrides, .usual = usual, .count = count};
    struct wml_value *last = m->graph->last_value;
    size_t i = 0;
    *count = (struct wml_mixed_count){0};
    a.high = usual == WML_U8 ? WML_U16 : usual == WML_I8 ? WML_I16 : usual;
    a.wide = WML_NEW_ARRAY(&m->arena, bool, x->n_nodes + 1);
    a.out = WML_NEW(&m->arena, struct wml_quant_overrides);
    for (struct wml_node *node = m->graph->first; node; node = node->next) node->mark = i++;
    take_user(&a);
    widen_nodes(&a);
    for (struct wml_value *v = m->graph->first_value; v; v = v == last ? NULL : v->next) /* not the copies that are added */
        if (is_real(v) && !(v->init && wml_value_is_constant(v))) raise_activation(&a, v);
    for (i = 0; i < x->constant.len; i++) raise_constant(&a, &x->constant.at[i]);
    count_nodes(&a);
    return a.out;
}
