/* An If whose condition is constant is the branch that is taken. Its nodes move into the graph around; the If's outputs
 * become those of the branch, by an Identity where names or other graphs stand in the way. */
#include "passes/match.h"

static struct wml_graph *branch_of(struct wml_pass_run *r, const struct wml_node *n)
{
    struct wml_tensor *t = wml_constant_of(wml_node_in(n, 0));
    struct wml_span bytes;
    if (!t || t->dtype != WML_BOOL || !wml_tensor_bytes(r->model, t, &bytes, NULL) || bytes.len != 1) return NULL;
    struct wml_graph *g = wml_attr_graph(n, bytes.ptr[0] ? "then_branch" : "else_branch");
    if (!g || g->outputs.len != n->n_out || !wml_graph_can_inline(g)) return NULL;
    for (size_t i = 0; i < n->n_out; i++)
        if (n->out[i] && wml_types_disagree(n->out[i], g->outputs.at[i])) return NULL;
    return g;
}

/* Output i of the If is v. */
static void hand_over(struct wml_node *n, size_t i, struct wml_value *v)
{
    struct wml_value *out = n->out[i];
    if (!v->type && out->type) wml_value_set_type(v, out->type);
    if (!out->pinned && wml_value_replace(out, v)) return;
    struct wml_node *id = wml_node_new(n, "", "Identity");
    wml_node_add_input(id, v);
    wml_node_take_output(id, 0, out);
}

static bool visit(struct wml_pass_run *r, struct wml_node *n)
{
    struct wml_graph *g = wml_node_is(n, "If") ? branch_of(r, n) : NULL;
    if (!g) return true;
    const size_t n_out = n->n_out;
    struct wml_value **v = WML_NEW_ARRAY(r->scratch, struct wml_value *, n_out + 1);
    for (size_t i = 0; i < n_out; i++) v[i] = g->outputs.at[i];
    wml_graph_inline(g, n);
    for (size_t i = n_out; i-- > 0;) /* an output that moves to an Identity shortens the list */
        if (n->out[i]) hand_over(n, i, v[i]);
    wml_pass_applied(r, n->op_type, n->name);
    wml_node_remove(n);
    return true;
}

const struct wml_pass wml_pass_if_elimination = {
    .name = "if-elimination", .category = "elimination", .on = true, .visit = visit,
    .summary = "Replace an If whose condition is constant by the branch that is taken",
};
