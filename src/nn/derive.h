/* nn/derive.h - a weight of the checkpoint in the model's type of floats or in another order: computed piece by piece while
 * the model is written (graph/tensor.h, DERIVED). */
#ifndef WML_NN_DERIVE_H
#define WML_NN_DERIVE_H

#include "nn/nn.h"

struct wml_nn_recipe { /* zero: only the type changes */
    bool transpose;     /* of the two last axes of two or three */
    const float *scale; /* one for every index along `axis` of dims; NULL: none */
    size_t axis;        /* with transpose: 0 of two */
};

/* A tensor of b->real with `dims` from `bytes`, elements of dtype in the order that dims has before the transposition. The
 * bytes live as long as the model. NULL after a failure. */
struct wml_tensor *wml_nn_derive(struct wml_nn *b, const struct wml_weight *w, struct wml_span bytes, size_t rank,
                                 const int64_t *dims, struct wml_nn_recipe recipe);
/* Elements as float32, from any type of number at any address. */
void wml_nn_to_float(enum wml_dtype dtype, const unsigned char *from, size_t n, float *to);

#endif
