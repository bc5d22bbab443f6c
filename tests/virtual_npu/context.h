/* context.h - programs that outlive the session: the blob, the EPContext node, the file beside the
 * model. */
#ifndef VNPU_CONTEXT_H
#define VNPU_CONTEXT_H

#include "vnpu.h"

struct vnpu_program { /* one compiled partition */
    char *name;       /* of the partition: the fused node's name */
    struct vnpu_buf model;
};

/* Makes one EPContext node per program; ORT takes the nodes over. The first node of a shared
 * context (or every node) carries the blob or names the file. `graph` knows the model's path. */
OrtStatus *vnpu_context_save(struct vnpu_ep *ep, const OrtGraph *graph, const OrtNode **fused,
                             const struct vnpu_program *program, size_t n, OrtNode **out);

/* nodes[i] becomes the EPContext node that graph i consists of, or NULL. */
OrtStatus *vnpu_context_nodes(struct vnpu_ep *ep, const OrtGraph **graphs, size_t n,
                              const OrtNode **nodes);
/* Reads the blobs of those nodes, then finds each node's program: bytes[i] and size[i] are in
 * memory that the EP keeps until it is freed; name[i] is the caller's, also after a failure. NULL
 * where nodes[i] is. */
OrtStatus *vnpu_context_load(struct vnpu_ep *ep, const OrtGraph **graphs,
                             const OrtNode *const *nodes, size_t n, const unsigned char **bytes,
                             size_t *size, char **name);
/* Of models that share a context: forgets what was collected. */
void vnpu_shared_release(struct vnpu_shared *s);
void vnpu_contexts_free(struct vnpu_context *c);

#endif
