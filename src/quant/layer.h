/* quant/layer.h - layers that are linear in their input and keep a constant weight: Conv, ConvTranspose, Gemm, MatMul of
 * float32. All weights are seen as [first, second, inner], cut into groups along the first axis:
 *
 *     Conv           [out, in of a group, kernel]        depthwise: as many groups as inputs
 *     ConvTranspose  [in, out of a group, kernel]
 *     Gemm, MatMul   [in, out, 1], with transB [out, in, 1]
 *
 * Element (a, b) of group g = a / (first / groups) belongs to channel a of one side and g * second + b of the other. */
#ifndef WML_QUANT_LAYER_H
#define WML_QUANT_LAYER_H

#include "graph/edit.h"

struct wml_layer {
    struct wml_node *node;
    struct wml_value *weight; /* input 1, an initializer */
    size_t first, second, inner, groups;
    bool out_first;  /* the first axis is that of outputs */
    size_t n_in, n_out;
    bool spatial;    /* channels are axis 1 of input and output; else the last axis */
};

/* false: n is no such layer. */
bool wml_layer_of(struct wml_node *n, struct wml_layer *out);
/* Whether nothing else reads the constant and its bytes may change. */
bool wml_constant_is_own(const struct wml_value *v);

/* t in the place of input `slot` of n, which may be empty. Who shares the constant keeps the old one. false: t is NULL. */
bool wml_constant_put(struct wml_node *n, size_t slot, struct wml_tensor *t);

/* |w|, the largest of each (a, b) over inner: first * second floats, from wml_big_alloc. NULL with *err set. NaN counts as 0. */
float *wml_layer_peaks(struct wml_model *m, const struct wml_layer *l, struct wml_err *err);
/* The number of (a, b)'s channel on the input's or the output's side. */
static inline size_t wml_layer_channel(const struct wml_layer *l, bool out, size_t a, size_t b)
{
    return out == l->out_first ? a : a / (l->first / l->groups) * l->second + b;
}

/* The layer's weight becomes weight * out[o] * in[i]; NULL: 1. */
bool wml_layer_scale(struct wml_model *m, const struct wml_layer *l, const double *out, const double *in, struct wml_err *err);
/* Input `slot` of n, a constant, becomes itself times factor[c] along axis (negative: from the end) of n_factors. Others that
 * read the constant keep what it was. */
bool wml_constant_scale(struct wml_node *n, size_t slot, int64_t axis, size_t n_factors, const double *factor, struct wml_err *err);

#endif
