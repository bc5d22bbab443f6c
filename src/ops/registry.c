/* ops/registry.c - looking up facts, and what follows from them about a node. */
#include "graph/edit.h"
#include "graph/graph.h"
#include "graph/parts.h"
#include "ops/ops.h"

static const struct wml_op_group *const groups[] = {
#define WML_OP_GROUP(name) &wml_op_group_##name,
#include "ops/ops.def"
#undef WML_OP_GROUP
};

static bool is_onnx(struct wml_str domain)
{
    return !domain.len || wml_str_is(domain, "ai.onnx");
}

const struct wml_op *wml_op_find(struct wml_str domain, struct wml_str name)
{
    const bool onnx = is_onnx(domain);
    for (size_t g = 0; g < WML_COUNT(groups) && name.len; g++)
        for (size_t i = 0; i < groups[g]->len; i++) {
            const struct wml_op *op = &groups[g]->op[i];
            if (*op->name != *name.ptr || !wml_str_is(name, op->name)) continue;
            if (onnx ? !*op->domain : wml_str_is(domain, op->domain)) return op;
        }
    return NULL;
}

bool wml_op_has(const struct wml_node *n, unsigned flags)
{
    const struct wml_op *op = wml_op_find(n->domain, n->op_type);
    return op && (op->flags & flags) == flags;
}

bool wml_op_is_function(const struct wml_node *n)
{
    const struct wml_model *m = n->graph->model;
    for (size_t i = 0; i < m->function.len; i++)
        if (wml_str_eq(m->function.at[i]->name, n->op_type) &&
            (wml_str_eq(m->function.at[i]->domain, n->domain) || (is_onnx(n->domain) && is_onnx(m->function.at[i]->domain))))
            return true;
    return false;
}

/* No flag of `bad` on the node or on anything inside it; unknown operators count as having all. */
static bool is_free_of(const struct wml_node *n, unsigned bad)
{
    const struct wml_op *op = wml_op_find(n->domain, n->op_type);
    const struct wml_graph *sub;
    if (op ? (op->flags & bad) != 0 : !is_onnx(n->domain)) return false;
    if (wml_op_is_function(n)) return false;
    for (size_t k = 0; (sub = wml_node_subgraph(n, k)); k++)
        for (const struct wml_node *inner = sub->first; inner; inner = inner->next)
            if (!is_free_of(inner, bad)) return false;
    return true;
}

bool wml_op_is_pure(const struct wml_node *n)
{
    return is_free_of(n, WML_OP_IMPURE);
}

bool wml_op_is_removable(const struct wml_node *n)
{
    return is_free_of(n, WML_OP_EFFECT);
}
