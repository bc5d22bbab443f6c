/* What OpenVINO wants of a model, by its documentation and the behaviour of its EP.
 *
 * Weights: its integer kernels of convolutions and matrices, on CPU and GPU, take int8 and no uint8 (the restrictions of its
 * low-precision transformations), activations of uint8 with one scale. Channels of weights may have scales of their own.
 *
 * 16 bits: no device computes with them. The EP takes such Q and DQ out of models for the NPU, the GPU's plugin does so
 * itself, and the node is computed in half floats. A Relu or Clip that only the integers behind it stood for would be gone
 * then, so none is merged into 16-bit integers. */
#include "quant/qdq_internal.h"

const struct wml_qdq_ep wml_qdq_ep_openvino = {
    .alias = "openvino",
    .weight8 = WML_I8,
    .strips_wide = true,
    .wide_note = "OpenVINO has no 16-bit integers: what is around 16-bit activations is computed in half floats there, and only weights are smaller. "
                 "8-bit activations (w8a8) are computed in integers",
};
