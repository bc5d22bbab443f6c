/* nn/windows.h - pictures cut into square windows, without values of more than four axes. */
#ifndef WML_NN_WINDOWS_H
#define WML_NN_WINDOWS_H

#include "nn/ops.h"

/* [batch, height, width, channels], both multiples of `side` -> [batch * windows, side * side, channels], and back. */
struct wml_value *wml_nn_to_windows(struct wml_nn *b, struct wml_value *x, int64_t side);
struct wml_value *wml_nn_from_windows(struct wml_nn *b, struct wml_value *x, int64_t side, int64_t height, int64_t width);
/* Elements move `by` places towards the start of the axis; those that fall out come in at its end. by may be negative. */
struct wml_value *wml_nn_roll(struct wml_nn *b, struct wml_value *x, int axis, int64_t by);

#endif
