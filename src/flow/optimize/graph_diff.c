/* Two models node by node. */
#include "flow/optimize/graph_diff.h"

#include "graph/edit.h"
#include "graph/graph.h"
#include "graph/tensor.h"

struct names {
    struct wml_map node, constant;
};

static struct wml_str key_of(const struct wml_node *n)
{
    for (size_t i = 0; i < n->n_out; i++)
        if (n->out[i]) return n->out[i]->name;
    return n->name;
}

static bool add_node(void *arg, struct wml_node *n)
{
    struct names *s = arg;
    if (!wml_map_has(&s->node, key_of(n))) wml_map_put(&s->node, key_of(n), n);
    return true;
}

static void fill(struct names *s, struct wml_model *m)
{
    wml_graph_walk(m->graph, add_node, s);
    for (struct wml_value *v = m->graph->first_value; v; v = v->next)
        if (v->init) wml_map_put(&s->constant, v->name, v);
}

static struct wml_str op_of(struct wml_graph_diff *d, const struct wml_node *n)
{
    if (!n->domain.len || wml_str_is(n->domain, "ai.onnx")) return wml_arena_str(&d->arena, n->op_type);
    return wml_arena_fmt(&d->arena, "%.*s::%.*s", WML_ARG(n->domain), WML_ARG(n->op_type));
}

static bool same_inputs(const struct wml_node *a, const struct wml_node *b)
{
    if (a->n_in != b->n_in) return false;
    for (size_t i = 0; i < a->n_in; i++) {
        bool x = a->in[i] != NULL, y = b->in[i] != NULL;
        if (x != y || (x && !wml_str_eq(a->in[i]->name, b->in[i]->name))) return false;
    }
    return true;
}

/* By content. Weights that are made while writing are not made for this: they are equal when made of the same bytes by
 * the same function. */
static bool same_constant(struct wml_model *before, struct wml_model *after, struct wml_tensor *a, struct wml_tensor *b)
{
    struct wml_span x = {0}, y = {0};
    bool made = a->payload == WML_PAYLOAD_DERIVED || b->payload == WML_PAYLOAD_DERIVED;
    if (a->dtype != b->dtype || a->dims.len != b->dims.len) return false;
    for (size_t i = 0; i < a->dims.len; i++)
        if (a->dims.at[i] != b->dims.at[i]) return false;
    if (!made) {
        if (a->dtype == WML_STRING) return wml_tensor_eq(before, a, b);
        return wml_tensor_bytes(before, a, &x, NULL) && wml_tensor_bytes(after, b, &y, NULL) && x.len == y.len &&
               (x.ptr == y.ptr || memcmp(x.ptr, y.ptr, x.len) == 0);
    }
    if (a->payload != b->payload || a->derived->produce != b->derived->produce || !a->derived->source != !b->derived->source)
        return false;
    return !a->derived->source || (wml_tensor_peek(a->derived->source, &x) && wml_tensor_peek(b->derived->source, &y) &&
                                   x.ptr == y.ptr && x.len == y.len);
}

static void push_name(struct wml_graph_diff *d, struct wml_diff_names *to, struct wml_str name)
{
    WML_PUSH(to, wml_arena_str(&d->arena, name));
}

static void diff_constants(struct wml_graph_diff *d, struct wml_model *before, struct wml_model *after, const struct wml_map *a,
                           const struct wml_map *b)
{
    for (size_t i = 0; i < a->len; i++) {
        const struct wml_value *was = a->entry[i].value, *now = wml_map_get(b, a->entry[i].key);
        if (!now) push_name(d, &d->constants_removed, was->name);
        else if (!same_constant(before, after, was->init, now->init)) push_name(d, &d->constants_modified, was->name);
    }
    for (size_t i = 0; i < b->len; i++)
        if (!wml_map_has(a, b->entry[i].key)) push_name(d, &d->constants_added, b->entry[i].key);
}

void wml_graph_diff(struct wml_model *before, struct wml_model *after, struct wml_graph_diff *d)
{
    struct names a = {0}, b = {0};
    *d = (struct wml_graph_diff){0};
    fill(&a, before);
    fill(&b, after);
    for (size_t i = 0; i < a.node.len; i++) {
        const struct wml_node *was = a.node.entry[i].value, *now = wml_map_get(&b.node, a.node.entry[i].key);
        struct wml_diff_row row = {.op_type = op_of(d, now ? now : was), .name = wml_arena_str(&d->arena, now ? now->name : was->name)};
        if (!now) {
            WML_PUSH(&d->removed, row);
            continue;
        }
        bool same_op = wml_str_eq(was->op_type, now->op_type) && wml_str_eq(was->domain, now->domain);
        if (same_op && same_inputs(was, now) && wml_attrs_eq(after, was, now)) continue;
        if (!same_op) row.was = op_of(d, was);
        WML_PUSH(&d->modified, row);
    }
    for (size_t i = 0; i < b.node.len; i++) {
        const struct wml_node *now = b.node.entry[i].value;
        struct wml_diff_row row = {.op_type = op_of(d, now), .name = wml_arena_str(&d->arena, now->name)};
        if (!wml_map_has(&a.node, b.node.entry[i].key)) WML_PUSH(&d->added, row);
    }
    diff_constants(d, before, after, &a.constant, &b.constant);
    wml_map_release(&a.node);
    wml_map_release(&a.constant);
    wml_map_release(&b.node);
    wml_map_release(&b.constant);
}

bool wml_graph_diff_is_empty(const struct wml_graph_diff *d)
{
    return !d->removed.len && !d->added.len && !d->modified.len && !d->constants_removed.len && !d->constants_added.len &&
           !d->constants_modified.len;
}

void wml_graph_diff_release(struct wml_graph_diff *d)
{
    WML_VEC_RELEASE(&d->removed);
    WML_VEC_RELEASE(&d->added);
    WML_VEC_RELEASE(&d->modified);
    WML_VEC_RELEASE(&d->constants_removed);
    WML_VEC_RELEASE(&d->constants_added);
    WML_VEC_RELEASE(&d->constants_modified);
    wml_arena_release(&d->arena);
}
