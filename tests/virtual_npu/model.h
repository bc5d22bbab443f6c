/* model.h - an OrtGraph written as the bytes of an ONNX model. */
#ifndef VNPU_MODEL_H
#define VNPU_MODEL_H

#include "vnpu.h"

/* Appends a ModelProto whose inputs and outputs are those of the fused node, in the same order;
 * every other initializer that the nodes use is stored in it. `name` becomes the graph's name. */
OrtStatus *vnpu_model_write(const OrtApi *api, const OrtGraph *graph, const OrtNode *fused,
                            const char *name, struct vnpu_buf *out);

#endif
