/* nn/rotary.h - rotary position embedding (Su et al. 2021): pairs of elements of Q and K turn by angles of their position.
 * Pairs are (i, i + size / 2), as in checkpoints of transformers. */
#ifndef WML_NN_ROTARY_H
#define WML_NN_ROTARY_H

#include "nn/ops.h"

enum { WML_ROPE_MAX = 1024 };

struct wml_nn_rope {
    int64_t size;                      /* elements of a head that turn; even */
    double frequency[WML_ROPE_MAX / 2]; /* radians per position, of each pair */
    double factor;                     /* cosines and sines times this; 0: 1 */
};
/* theta^(-2 i / size) */
void wml_nn_rope_init(struct wml_nn_rope *r, int64_t size, double theta);

/* Cosines or sines of positions 0 .. rows - 1 as constants [rows, size / 2], as operators take them that turn by themselves. */
struct wml_value *wml_nn_rope_rows(struct wml_nn *b, const struct wml_nn_rope *r, int64_t rows, bool sine, enum wml_dtype dtype);

struct wml_nn_turn { /* cosines and sines: [batch or 1, 1, length, size]; the first half of sin is negated */
    struct wml_value *cos, *sin;
    int64_t size;
};
/* positions [batch, length], or NULL: 0, 1, ... along axis 1 of `like`. rows: how many positions there are; when the length
 * is fixed, the angles are a table of that many rows, else they are computed. */
struct wml_nn_turn wml_nn_turn(struct wml_nn *b, const struct wml_nn_rope *r, struct wml_value *positions, struct wml_value *like, int64_t rows);
/* x [batch, heads, length, head size >= size], of which the first `size` elements turn. */
struct wml_value *wml_nn_rotate(struct wml_nn *b, struct wml_value *x, const struct wml_nn_turn *t);

#endif
