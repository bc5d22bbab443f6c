/* partition.h - which nodes of a graph the virtual NPU takes, and a map from names to numbers. */
#ifndef VNPU_PARTITION_H
#define VNPU_PARTITION_H

#include "vnpu.h"

/* Tells ORT which nodes to fuse: one group per connected set of supported nodes that can run as one
 * step, one group per EPContext node of ours. Nodes of nested graphs (bodies of If, Loop, Scan) are
 * left alone. */
OrtStatus *vnpu_partition(struct vnpu_ep *ep, const OrtGraph *graph, OrtEpGraphSupportInfo *info);

/* True when the node is an EPContext node that this EP made. */
OrtStatus *vnpu_is_context_node(const struct vnpu_ep *ep, const OrtNode *node, bool *yes);

struct vnpu_names { /* name -> number; the names belong to others; fixed room */
    const char **key;
    size_t *value;
    size_t mask;
};
OrtStatus *vnpu_names_init(const OrtApi *api, struct vnpu_names *m, size_t room);
void vnpu_names_release(struct vnpu_names *m);
bool vnpu_names_get(const struct vnpu_names *m, const char *name, size_t *value);
void vnpu_names_put(struct vnpu_names *m, const char *name, size_t value); /* first one wins */

/* Values and nodes of an OrtNode or OrtGraph. free() the array; the elements belong to the graph.
 * An optional input or output that is left out is NULL. */
OrtStatus *vnpu_node_inputs(const OrtApi *api, const OrtNode *n, const OrtValueInfo ***out,
                            size_t *count);
OrtStatus *vnpu_node_outputs(const OrtApi *api, const OrtNode *n, const OrtValueInfo ***out,
                             size_t *count);
OrtStatus *vnpu_graph_nodes(const OrtApi *api, const OrtGraph *g, const OrtNode ***out,
                            size_t *count);
/* The bytes of a string attribute, NUL-terminated; *out is NULL when there is no such attribute.
 * free(). Some versions of ORT count the NUL in *len, some do not. */
OrtStatus *vnpu_string_attribute(const OrtApi *api, const OrtNode *n, const char *name, char **out,
                                 size_t *len);
/* An integer attribute, or `fallback`. */
OrtStatus *vnpu_int_attribute(const OrtApi *api, const OrtNode *n, const char *name,
                              int64_t fallback, int64_t *out);

#endif
