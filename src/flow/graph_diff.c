/* Two models node by node. */
#include "flow/graph_diff.h"

#include "graph/edit.h"
#include "graph/graph.h"

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
    if (!n->domain.len || wml_str_is(n->domain, "ai.onnx")) return n->op_type;
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

void wml_graph_diff(struct wml_model *before, struct wml_model *after, struct wml_graph_diff *d)
{
    struct names a = {0}, b = {0};
    *d = (struct wml_graph_diff){0};
    fill(&a, before);
    fill(&b, after);
    for (size_t i = 0; i < a.node.len; i++) {
        const struct wml_node *was = a.node.entry[i].value, *now = wml_map_get(&b.node, a.node.entry[i].key);
        struct wml_diff_row row = {.op_type = op_of(d, now ? now : was), .name = now ? now->name : was->name};
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
        struct wml_diff_row row = {.op_type = op_of(d, now), .name = now->name};
        if (!wml_map_has(&a.node, b.node.entry[i].key)) WML_PUSH(&d->added, row);
    }
    for (size_t i = 0; i < a.constant.len; i++) d->constants_removed += !wml_map_has(&b.constant, a.constant.entry[i].key);
    for (size_t i = 0; i < b.constant.len; i++) d->constants_added += !wml_map_has(&a.constant, b.constant.entry[i].key);
    wml_map_release(&a.node);
    wml_map_release(&a.constant);
    wml_map_release(&b.node);
    wml_map_release(&b.constant);
}

void wml_graph_diff_release(struct wml_graph_diff *d)
{
    WML_VEC_RELEASE(&d->removed);
    WML_VEC_RELEASE(&d->added);
    WML_VEC_RELEASE(&d->modified);
    wml_arena_release(&d->arena);
}
