/* flow/optimize/graph_diff.h - which nodes two models do not share. A node is known by the name of its first output. */
#ifndef WML_FLOW_OPTIMIZE_GRAPH_DIFF_H
#define WML_FLOW_OPTIMIZE_GRAPH_DIFF_H

#include "graph/model.h"

struct wml_diff_row {
    struct wml_str op_type, name; /* of the node; op_type with its domain where that is not ONNX's */
    struct wml_str was;           /* modified: the operator before, absent when it is the same */
};
struct wml_diff_rows { struct wml_diff_row *at; size_t len, cap; };
struct wml_diff_names { struct wml_str *at; size_t len, cap; };

struct wml_graph_diff { /* strings are in the arena */
    struct wml_arena arena;
    struct wml_diff_rows removed, added, modified;
    /* Initializers of the top graph, by name; modified: other elements, type or dims, wherever they lie. */
    struct wml_diff_names constants_removed, constants_added, constants_modified;
};

/* Nodes of all graphs. */
void wml_graph_diff(struct wml_model *before, struct wml_model *after, struct wml_graph_diff *out);
bool wml_graph_diff_is_empty(const struct wml_graph_diff *d);
void wml_graph_diff_release(struct wml_graph_diff *d);

#endif
