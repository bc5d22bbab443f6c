/* flow/quantize/rank.h - how much every quantised tensor of a model costs: a table of signal-to-noise ratios, worst first.
 *
 * own:    the value just before its QuantizeLinear against what DequantizeLinear makes of it, both in the quantised model:
 *         the loss that this tensor's scale causes by itself. Of a weight or bias: the float numbers against the integers.
 * total:  the float model's value against the quantised model's: what has come together up to here.
 *
 * These are qdq_err and xmodel_err of ONNX Runtime's qdq_loss_debug, and the errors of its create_weight_matching, with
 * three differences: where the integers took over the work of a Relu or Clip, what that would have cut off is no loss; nor is
 * it where masks end at a number that masks as well; and integers are not subtracted in their own 8 bits. */
#ifndef WML_FLOW_QUANTIZE_RANK_H
#define WML_FLOW_QUANTIZE_RANK_H

#include "flow/compare.h"
#include "flow/samples.h"
#include "quant/quant.h"

struct wml_rank_row {
    const char *name; /* as in the float model */
    const char *kind; /* "activation", "weight", "bias" */
    const char *type; /* of its integers, "uint8" */
    const char *node, *op_type; /* what makes it; of a constant: a node that reads it. "": the caller gives it */
    struct wml_compare own, total;
    bool has_total; /* activations that the float model has too */
};

struct wml_rank {
    struct wml_arena arena;
    WML_VEC(struct wml_rank_row) row; /* by the ratio of `own`; equal ones in the order of the graph */
    size_t samples; /* 0: not measured */
};

/* before, after: files of the float and of the quantised model. Both run once per sample and group of values; a group
 * takes at most 256 MiB, or one value. A model without QuantizeLinear gives no rows. mask: what the quantizer says of them. */
bool wml_rank_measure(struct wml_ctx *cx, const char *before, const char *after, const struct wml_samples_spec *samples,
                      const struct wml_quant_mask *mask, size_t n_masks, struct wml_rank *out, struct wml_err *err);
void wml_rank_release(struct wml_rank *r);

#endif
