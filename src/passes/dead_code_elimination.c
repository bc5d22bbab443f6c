/* Nodes whose results nobody reads, and initializers that nothing uses. */
#include "passes/match.h"

/* From the end: a dead reader makes its producers dead. arg: the run that counts them, or NULL. */
static bool sweep(void *arg, struct wml_graph *g)
{
    for (struct wml_node *n = g->last, *before; n; n = before) {
        before = n->prev;
        if (!wml_node_is_dead(n)) continue;
        wml_node_remove(n);
        if (arg) wml_pass_applied(arg, n->op_type, n->name);
    }
    return true;
}

void wml_sweep(struct wml_pass_run *r)
{
    wml_model_each_graph(r->model, sweep, NULL);
}

static bool run(struct wml_pass_run *r, struct wml_err *err)
{
    (void)err;
    wml_model_each_graph(r->model, sweep, r);
    r->applied += wml_model_drop_unused(r->model);
    return true;
}

const struct wml_pass wml_pass_dead_code_elimination = {
    .name = "dead-code-elimination", .category = "elimination", .on = true, .run = run,
    .summary = "Remove nodes and initializers that nothing uses",
};
