/* Equal nodes become one: same operator, same inputs, equal attributes, in one graph. Of activations, every consumer
 * keeps its own DequantizeLinear: EPs take it together with its operator. */
#include "passes/match.h"

struct chain {
    struct wml_node *n;
    struct chain *next;
};

static bool can_merge(const struct wml_node *n)
{
    if (!n->n_out || wml_node_subgraph(n, 0) || !wml_op_is_pure(n)) return false;
    if (wml_node_is(n, "DequantizeLinear") && !wml_constant_of(wml_node_in(n, 0))) return false;
    for (size_t i = 0; i < n->n_out; i++)
        if (n->out[i] && (n->out[i]->pinned || (n->out[i]->n_outputs && n->n_out > 1))) return false;
    return true;
}

static struct wml_str key_of(struct wml_pass_run *r, const struct wml_node *n)
{
    struct wml_buf b = {0};
    wml_buf_fmt(&b, "%.*s:%.*s:%zu", WML_ARG(n->domain), WML_ARG(n->op_type), n->n_out);
    for (size_t i = 0; i < n->n_in; i++) wml_buf_fmt(&b, ",%p", (void *)n->in[i]);
    struct wml_str key = wml_arena_str(r->scratch, wml_buf_view(&b));
    wml_buf_release(&b);
    return key;
}

static bool same_outputs(const struct wml_node *a, const struct wml_node *b)
{
    for (size_t i = 0; i < a->n_out; i++)
        if (!a->out[i] != !b->out[i]) return false;
    return true;
}

/* Readers of n read `by`, which takes over the name of a graph output; two of those stay two nodes. */
static bool replace(struct wml_node *n, const struct wml_node *by)
{
    if (n->n_out == 1 && n->out[0] && !wml_value_replace(n->out[0], by->out[0])) return false;
    for (size_t i = 0; i < n->n_out && n->n_out > 1; i++)
        if (n->out[i]) wml_value_replace_uses(n->out[i], by->out[i]);
    wml_node_remove(n);
    return true;
}

static bool merge_in(void *arg, struct wml_graph *g)
{
    struct wml_pass_run *r = arg;
    struct wml_map seen = {0};
    for (struct wml_node *n = g->first, *next; n; n = next) {
        next = n->next;
        if (!can_merge(n)) continue;
        struct wml_str key = key_of(r, n);
        struct chain *head = wml_map_get(&seen, key), *c = head;
        while (c && !(same_outputs(c->n, n) && wml_attrs_eq(r->model, c->n, n))) c = c->next;
        if (c) {
            if (replace(n, c->n)) wml_pass_applied(r, n->op_type, n->name);
            continue;
        }
        c = WML_NEW(r->scratch, struct chain);
        *c = (struct chain){n, head};
        wml_map_put(&seen, key, c);
    }
    wml_map_release(&seen);
    return true;
}

static bool run(struct wml_pass_run *r, struct wml_err *err)
{
    (void)err;
    return wml_model_each_graph(r->model, merge_in, r);
}

const struct wml_pass wml_pass_common_subexpression_elimination = {
    .name = "common-subexpression-elimination", .category = "graph", .on = true, .reference_on = true, .run = run,
    .summary = "Merge equal nodes",
};
