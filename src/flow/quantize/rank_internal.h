/* flow/quantize/rank_internal.h - the parts of the ranking. Internal to this folder. */
#ifndef WML_FLOW_QUANTIZE_RANK_INTERNAL_H
#define WML_FLOW_QUANTIZE_RANK_INTERNAL_H

#include "flow/quantize/rank.h"
#include "graph/model.h"

struct wml_rank_pair { /* a quantised activation: values of the model's top graphs */
    size_t row;
    struct wml_value *pre, *post; /* before the QuantizeLinear, after the DequantizeLinear: of the quantised model */
    struct wml_value *real;       /* of the float model, or NULL */
    bool cuts;                    /* what lies beyond the ends of its integers is no loss: they do what a Relu or Clip of the */
    double low, high;             /* float model does, or masks lie there (these ends; infinite: as it is) */
    bool masks;                   /* those: in the float model, too */
};

struct wml_rank_pairs { WML_VEC(struct wml_rank_pair) v; }; /* in the arena of the rank */

/* What the value behind dq is called in the float model: the endings that quantizers add are left out. */
struct wml_str wml_rank_name(const struct wml_node *dq);

/* Rows for everything that `after` quantises, in the order of the graph, and the pairs among them; rows of constants are
 * complete. */
bool wml_rank_find(struct wml_ctx *cx, struct wml_model *before, struct wml_model *after, const struct wml_quant_mask *mask, size_t n_masks,
                   struct wml_rank *out, struct wml_rank_pairs *pairs, struct wml_err *err);

#endif
