/* kernel.h - one compiled sub-graph: what runs when ORT reaches the fused node. */
#ifndef VNPU_KERNEL_H
#define VNPU_KERNEL_H

#include "vnpu.h"

struct vnpu_kernel {
    OrtNodeComputeInfo base;
    struct vnpu_ep *ep;
    char *name; /* of the partition */
    OrtSession *session;
    size_t n_in, n_out;
    char **in_name, **out_name; /* of the inner session */
    size_t *in_at, *out_at; /* where the fused node has each of them; VNPU_NOWHERE: not wanted */
};

#define VNPU_NOWHERE SIZE_MAX

/* A kernel for the ONNX model in `bytes`, which are not kept. `inner` is the node whose inputs and
 * outputs are, in this order, those of the model: the fused node itself, or an EPContext node
 * inside it. */
OrtStatus *vnpu_kernel_create(struct vnpu_ep *ep, const char *name, const void *bytes, size_t n,
                              const OrtNode *fused, const OrtNode *inner, struct vnpu_kernel **out);
void vnpu_kernel_free(struct vnpu_kernel *k);

/* OrtEp::Compile and its counterpart, in compile.c. */
OrtStatus *vnpu_compile(struct vnpu_ep *ep, const OrtGraph **graphs, const OrtNode **fused,
                        size_t n, OrtNodeComputeInfo **infos, OrtNode **context_nodes);

#endif
