/* graph/internal.h - what the files of src/graph share and nobody else calls. */
#ifndef WML_GRAPH_INTERNAL_H
#define WML_GRAPH_INTERNAL_H

#include "graph/model.h"

/* A value in g's list and name map. The name must be free in g. */
struct wml_value *wml_value_new(struct wml_graph *g, struct wml_str name);
void wml_value_unlink(struct wml_value *v); /* out of list and map; graph becomes NULL */
void wml_use_add(struct wml_use *u, struct wml_value *v);
void wml_use_drop(struct wml_use *u, struct wml_value *v);
/* Gives node n_in slots (and uses for them); uses of existing slots move along. */
void wml_node_resize_inputs(struct wml_node *n, size_t n_in);
void wml_node_resize_outputs(struct wml_node *n, size_t n_out);
void wml_node_chain(struct wml_graph *g, struct wml_node *n, struct wml_node *before);
void wml_node_unchain(struct wml_node *n);
/* Sets model, name map ownership; a graph that came from the decoder or is new. */
void wml_graph_init(struct wml_graph *g, struct wml_model *m, struct wml_node *owner,
                    struct wml_graph *outer);
/* The node of g (or of a graph around g's) that contains n: the ancestor whose graph is g. */
struct wml_node *wml_node_ancestor_in(struct wml_node *n, const struct wml_graph *g);
/* Remembers a name as used, once the model's name table is filled. */
void wml_model_note_name(struct wml_model *m, struct wml_str name);
/* wml_graph_sort without the sub-graphs. */
bool wml_graph_sort_one(struct wml_graph *g, struct wml_err *err);
bool wml_domain_eq(struct wml_str a, struct wml_str b);

#endif
