/* graph/graph.h - operations over a whole graph: linking, order, walking, checking. */
#ifndef WML_GRAPH_GRAPH_H
#define WML_GRAPH_GRAPH_H

#include "graph/model.h"

/* File face to linked face, for every graph, sub-graph, function body and training graph: resolves
 * names, records uses (captured values: on the outer value), sorts where the file is not sorted.
 * Refuses names defined twice, names nothing defines and cycles, naming value and nodes. */
bool wml_model_link(struct wml_model *m, struct wml_err *err);
/* Linked face back to the file face. The saver calls it. */
void wml_model_sync(struct wml_model *m);
void wml_node_sync(struct wml_node *n); /* the same for one node and what is inside it */
/* Stable topological order, sub-graphs included. Edits that insert a node before its readers and
 * after its inputs keep the order; others call this once at their end. */
bool wml_graph_sort(struct wml_graph *g, struct wml_err *err);

/* Calls f for every node of g and of its sub-graphs: a node first, then what is inside it. false from
 * f ends the walk (and is returned). f may remove the node it was given. */
bool wml_graph_walk(struct wml_graph *g, bool (*f)(void *arg, struct wml_node *n), void *arg);
/* g, then every graph inside it. */
bool wml_graph_each(struct wml_graph *g, bool (*f)(void *arg, struct wml_graph *g), void *arg);
/* Every graph of the model: the top graph and its sub-graphs; not function bodies. */
bool wml_model_each_graph(struct wml_model *m, bool (*f)(void *arg, struct wml_graph *g), void *arg);
/* Every tensor: initializers, sparse ones, attributes, sub-graphs, functions, training. */
bool wml_model_each_tensor(struct wml_model *m, bool (*f)(void *arg, struct wml_tensor *t), void *arg);
/* The sub-graphs a node holds: calls with i = 0, 1, ... until NULL. */
struct wml_graph *wml_node_subgraph(const struct wml_node *n, size_t i);
bool wml_graph_is_inside(const struct wml_graph *g, const struct wml_graph *outer);
/* Position of a node in its graph. O(n): for messages. */
size_t wml_node_index(const struct wml_node *n);
size_t wml_model_count_nodes(struct wml_model *m); /* of the top graph and its sub-graphs */
/* "node 'conv1' (Conv, index 12)"; for messages. In the arena. */
const char *wml_node_label(const struct wml_node *n);

/* Gives nodes without a name one, and makes equal names differ, since ORT refuses those: within the graph
 * and within every function body. How many equal ones changed. */
size_t wml_model_unique_node_names(struct wml_model *m);
/* One import per domain ("ai.onnx" becomes ""; the highest version stays). How many were dropped. */
size_t wml_model_merge_opsets(struct wml_model *m);
/* Raises ir_version. From below 4, weights are no longer listed as inputs. Never lowers. */
void wml_model_raise_ir(struct wml_model *m, int64_t version);

struct wml_model_size {
    size_t nodes, all_nodes; /* top graph; with sub-graphs */
    size_t tensors;
    uint64_t params, bytes; /* elements and bytes of all initializers */
};
void wml_model_measure(struct wml_model *m, struct wml_model_size *out);

/* What loading tolerates but no runtime accepts: a missing ir_version or opset, empty op types, weights
 * that do not fit their dims, attributes whose type and fields disagree, bad types. The message names
 * the node with its index. Versions newer than winml knows are not an error: see below. */
bool wml_model_check(struct wml_model *m, struct wml_err *err);
/* Says what to do about such an error, unless that was said. */
void wml_model_hint_invalid(struct wml_err *err);
/* false with WML_E_UNSUPPORTED when ir_version or an ONNX opset is above the given highest ones. */
bool wml_model_check_versions(const struct wml_model *m, int64_t max_ir, int64_t max_opset,
                              struct wml_err *err);

#endif
