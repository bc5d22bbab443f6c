/* nn/windows.h - pictures cut into square windows, without values of more than four axes. */
#ifndef WML_NN_WINDOWS_H
#define WML_NN_WINDOWS_H

#include "nn/ops.h"

/* [batch, height, width, channels], both multiples of `side`, or its rows [batch * height * width, channels] ->
 * rows [batch * windows * side * side, channels], and back: as rows or as a picture. */
struct wml_value *wml_nn_to_windows(struct wml_nn *b, struct wml_value *x, int64_t side, int64_t height, int64_t width);
struct wml_value *wml_nn_from_windows(struct wml_nn *b, struct wml_value *x, int64_t side, int64_t height, int64_t width, bool rows);
/* A picture, or its rows, of even sides ->
 * rows [batch * height / 2 * width / 2, 4 channels]: four neighbours side by side, down, then right. */
struct wml_value *wml_nn_merge_four(struct wml_nn *b, struct wml_value *x, int64_t width);
/* Elements move `by` places towards the start of the axis; those that fall out come in at its end. by may be negative. */
struct wml_value *wml_nn_roll(struct wml_nn *b, struct wml_value *x, int axis, int64_t by);

#endif
