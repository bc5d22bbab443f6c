/* graph/edit.h - reading and changing a linked graph. Uses, definitions and names stay right by
 * construction: there is no other way to change them.
 *
 *     struct wml_node *r = wml_node_new(n, "", "Relu");       before n, in n's graph
 *     wml_node_add_input(r, x);
 *     struct wml_value *y = wml_node_add_output(r, WML_STR("relu"));   unique name from "relu"
 *     wml_value_replace_uses(old, y);
 *     wml_node_remove(n);
 *
 * Memory of removed things stays in the model's arena until the model is freed. */
#ifndef WML_GRAPH_EDIT_H
#define WML_GRAPH_EDIT_H

#include "graph/attr.h"
#include "graph/tensor.h"
#include "graph/type.h"

struct wml_model *wml_model_new(void); /* IR 10, an empty graph, no opset */
void wml_model_free(struct wml_model *m);

/* Nodes. "" and "ai.onnx" are the same domain everywhere. */
static inline bool wml_node_is(const struct wml_node *n, const char *op_type) /* of the ONNX domain */
{
    return n && wml_str_is(n->op_type, op_type) && (!n->domain.len || wml_str_is(n->domain, "ai.onnx"));
}
bool wml_node_is_in(const struct wml_node *n, const char *domain, const char *op_type);
struct wml_node *wml_node_new(struct wml_node *before, const char *domain, const char *op_type);
struct wml_node *wml_graph_append(struct wml_graph *g, const char *domain, const char *op_type);
/* Drops its uses; its outputs must be unused and no graph outputs (asserted), they disappear. Its
 * sub-graphs go with it. */
void wml_node_remove(struct wml_node *n);
void wml_node_move(struct wml_node *n, struct wml_node *before); /* within the graph */
void wml_node_set_op(struct wml_node *n, const char *domain, const char *op_type);
/* NULL: an empty slot. Slots between are filled with empty ones; trailing empty ones are cut. */
void wml_node_set_input(struct wml_node *n, size_t slot, struct wml_value *v);
void wml_node_add_input(struct wml_node *n, struct wml_value *v);
void wml_node_remove_input(struct wml_node *n, size_t slot); /* later slots move up */
/* A new value; its name is made unique. An absent name gives one from the op type. */
struct wml_value *wml_node_add_output(struct wml_node *n, struct wml_str name);
/* The output moves to slot of another node (or of the same): name, uses and type stay. */
void wml_node_take_output(struct wml_node *n, size_t slot, struct wml_value *v);
/* Drops an unused output: its slot becomes empty. */
void wml_node_drop_output(struct wml_node *n, size_t slot);
struct wml_value *wml_node_in(const struct wml_node *n, size_t slot);  /* NULL beyond the last */
struct wml_value *wml_node_out(const struct wml_node *n, size_t slot);
/* The node that defines input `slot`, or NULL. */
struct wml_node *wml_node_producer(const struct wml_node *n, size_t slot);
/* The only reader of v, when it has one use and is no graph output; else NULL. */
struct wml_node *wml_value_only_user(const struct wml_value *v);

/* Values. */
struct wml_value *wml_graph_find(const struct wml_graph *g, struct wml_str name);    /* this graph */
struct wml_value *wml_graph_resolve(const struct wml_graph *g, struct wml_str name); /* and outer ones */
bool wml_value_is_unused(const struct wml_value *v); /* no uses, no output, not pinned */
/* An initializer that callers cannot replace: not listed as input, or IR < 4. */
bool wml_value_is_constant(const struct wml_value *v);
/* The constant's tensor, also of an output of a Constant node with a `value` tensor; else NULL. */
struct wml_tensor *wml_value_tensor(const struct wml_value *v);
/* Every reader of `from` reads `to`; graph outputs of `from` are left alone. */
void wml_value_replace_uses(struct wml_value *from, struct wml_value *to);
/* As above, and where `from` is a graph output, `to` becomes that output under the same name. false,
 * nothing changed, when that cannot be done: `to` is itself an input, an initializer or an output,
 * lies in another graph, or `from` is an input. */
bool wml_value_replace(struct wml_value *from, struct wml_value *to);
/* false when the name is taken in this graph, or v is pinned. */
bool wml_value_rename(struct wml_value *v, struct wml_str name);
void wml_value_remove(struct wml_value *v); /* an unused input or initializer (asserted) */
/* base, or base_1, base_2, ...: not used by any value, node or sub-graph of the model. In the arena. */
struct wml_str wml_model_unique(struct wml_model *m, struct wml_str base);

/* Initializers; the name is made unique, NULL tensor is refused by assert. */
struct wml_value *wml_graph_add_init(struct wml_graph *g, struct wml_str name, struct wml_tensor *t);
void wml_value_set_init(struct wml_value *v, struct wml_tensor *t); /* NULL: no longer one */
/* Removes constants that nothing uses, in every graph; how many. */
size_t wml_model_drop_unused(struct wml_model *m);

/* Signature. add_input makes the value; the name must be free (asserted). */
struct wml_value *wml_graph_add_input(struct wml_graph *g, struct wml_str name, struct wml_type *t);
void wml_graph_remove_input(struct wml_graph *g, size_t i); /* the value stays when it is used */
void wml_graph_add_output(struct wml_graph *g, struct wml_value *v);
void wml_graph_remove_output(struct wml_graph *g, size_t i);
void wml_graph_set_output(struct wml_graph *g, size_t i, struct wml_value *v);
struct wml_graph *wml_graph_new(struct wml_model *m, struct wml_node *owner);
/* A sub-graph without inputs whose content can move into the graph around it: no sparse and no annotated values. */
bool wml_graph_can_inline(const struct wml_graph *sub);
/* Moves constants and nodes of `sub` in front of `before`, a node of the graph around it. Values keep their uses and get
 * names that are unique in the model; sub is empty then, without outputs: look at them before. */
void wml_graph_inline(struct wml_graph *sub, struct wml_node *before);

/* A number for marks on nodes and values that nothing else in the model has. */
uint64_t wml_model_mark(struct wml_model *m);

/* Opsets and metadata. 0 when the domain is not imported. */
int64_t wml_model_opset(const struct wml_model *m, const char *domain);
void wml_model_set_opset(struct wml_model *m, const char *domain, int64_t version);
struct wml_str wml_entries_get(const struct wml_entries *e, const char *key); /* absent: none */
void wml_entries_set(struct wml_model *m, struct wml_entries *e, const char *key, struct wml_str v);

#endif
