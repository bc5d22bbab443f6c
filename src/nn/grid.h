/* nn/grid.h - tables over a grid of places, computed while the graph is built. Arrays are in the model's arena. */
#ifndef WML_NN_GRID_H
#define WML_NN_GRID_H

#include "nn/nn.h"

enum wml_nn_filter { WML_NN_BILINEAR, WML_NN_BICUBIC, WML_NN_BICUBIC_SMOOTH };
/* [height, width, channels] resized as PyTorch's interpolate does without align_corners and antialias (bicubic: a = -0.75,
 * edges repeated); smooth: with antialias (a = -0.5, beyond edges is nothing). The source itself when the sizes are equal. */
const float *wml_nn_resize_grid(struct wml_nn *b, const float *from, const int64_t size[2], const int64_t to[2], int64_t channels,
                                enum wml_nn_filter filter);
/* The same of a table [front + places + back, channels] whose first and last rows are no places of the grid and stay. */
const float *wml_nn_resize_places(struct wml_nn *b, const float *table, int64_t front, int64_t back, const int64_t stored[2], const int64_t to[2],
                                  int64_t channels, enum wml_nn_filter filter);

#endif
