/* nn/param.h - weights of the checkpoint as constants of the graph. Names are relative to the scope; "/name" is from the
 * root. Where the checkpoint has no such name, the same with or without the base of the model (struct wml_nn) is taken, and
 * old spellings: gamma and beta for weight and bias. Nothing is copied: what is stored as float32 is borrowed, what must be
 * converted, turned or scaled is computed while the model is written.
 *
 * Of a sketch (struct wml_nn) nothing is looked up: what is needed has the shape that the caller names (a size it leaves
 * open is 1, of a kernel what the window says), reads as zeros and cannot be written; of what is optional there are the
 * biases only. So names, modules, inputs and outputs are those of the model, its parameters are not. */
#ifndef WML_NN_PARAM_H
#define WML_NN_PARAM_H

#include "nn/nn.h"

/* NULL when the checkpoint has none; marks it as used. */
const struct wml_weight *wml_nn_find(struct wml_nn *b, const char *name);
bool wml_nn_has(struct wml_nn *b, const char *name);
/* The same, and it is a failure when there is none or when its shape is not dims (-1: any size). */
const struct wml_weight *wml_nn_need(struct wml_nn *b, const char *name, size_t rank, const int64_t *dims);

/* Initializers of the type b->real; one for every weight and form, however often it is asked for. */
struct wml_value *wml_nn_param(struct wml_nn *b, const char *name, size_t rank, const int64_t *dims);
struct wml_value *wml_nn_param_of(struct wml_nn *b, const struct wml_weight *w); /* any weight, NULL gives NULL */
struct wml_value *wml_nn_transposed(struct wml_nn *b, const struct wml_weight *w); /* [n,k] as [k,n] */
/* A weight that is rows [from, to) along the first axis of another, borrowed; and the same as a constant. */
const struct wml_weight *wml_nn_part(struct wml_nn *b, const struct wml_weight *w, int64_t from, int64_t to);
struct wml_value *wml_nn_rows(struct wml_nn *b, const struct wml_weight *w, int64_t from, int64_t to);
/* Seen as n matrices [rows, columns], each transposed: [n, columns, rows]. */
struct wml_value *wml_nn_turned(struct wml_nn *b, const struct wml_weight *w, int64_t n, int64_t rows, int64_t columns);
/* Multiplied by scale[i] where i is the index along `axis`; scale lives as long as the model. */
struct wml_value *wml_nn_scaled(struct wml_nn *b, const struct wml_weight *w, size_t axis, const float *scale);
struct wml_value *wml_nn_scaled_transposed(struct wml_nn *b, const struct wml_weight *w, const float *scale); /* [n,k] as [k,n], along n */
/* Weight norm (Salimans and Kingma 2016): `direction` with the slices along one axis scaled to the lengths `length`, whose other
 * axes are 1. */
struct wml_value *wml_nn_normed(struct wml_nn *b, const struct wml_weight *direction, const struct wml_weight *length);
/* The same elements in another shape. */
struct wml_value *wml_nn_reshaped(struct wml_nn *b, const struct wml_weight *w, size_t rank, const int64_t *dims);

/* Elements as floats (wml_nn_room), for what is computed at build time: tables, folded scales. */
const float *wml_nn_read(struct wml_nn *b, const struct wml_weight *w);

#endif
