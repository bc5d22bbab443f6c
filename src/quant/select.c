/* Which nodes the user's options let a method touch, and what is left over afterwards. */
#include "quant/select.h"

#include "graph/edit.h"
#include "graph/graph.h"
#include "text/words.h"

bool wml_patterns_match(const struct wml_patterns *p, struct wml_str s)
{
    for (size_t i = 0; i < p->len; i++)
        if (wml_str_eq(p->at[i], s) || wml_glob_match(p->at[i], s)) return true;
    return false;
}

bool wml_quant_selects(const struct wml_quant_opts *o, const struct wml_node *n)
{
    return (!o->op_types.len || wml_patterns_match(&o->op_types, n->op_type)) && !(n->name.len && wml_patterns_match(&o->exclude, n->name));
}

static bool drop_constants(void *arg, struct wml_graph *g)
{
    (void)arg;
    for (struct wml_node *n = g->last, *before; n; n = before) {
        before = n->prev;
        if (wml_node_is(n, "Constant") && n->n_out == 1 && n->out[0] && wml_value_is_unused(n->out[0])) wml_node_remove(n);
    }
    return true;
}

void wml_quant_drop_constants(struct wml_model *m)
{
    wml_model_each_graph(m, drop_constants, NULL);
    wml_model_drop_unused(m);
}
