/* nn/windows.c - see windows.h. The channels stay with the columns of a window, which lie side by side: rows of windows by
 * rows of a window by windows by (columns, channels). */
#include "nn/windows.h"

struct wml_value *wml_nn_to_windows(struct wml_nn *b, struct wml_value *x, int64_t side)
{
    if (b->failed || !x) return NULL;
    const int64_t c = wml_nn_size(b, x, 3, "the channels of windows"), w = wml_nn_size(b, x, 2, "the width of pixel_values");
    if (wml_nn_axis(x, 1).size == side && w == side) return wml_nn_reshape(b, x, WML_DIMS(0, side * side, c));
    x = wml_nn_reshape(b, x, WML_DIMS(-1, side, w / side, side * c));
    return wml_nn_reshape(b, wml_nn_transpose(b, x, "0213"), WML_DIMS(-1, side * side, c));
}

struct wml_value *wml_nn_from_windows(struct wml_nn *b, struct wml_value *x, int64_t side, int64_t height, int64_t width)
{
    if (b->failed || !x) return NULL;
    const int64_t c = wml_nn_size(b, x, 2, "the channels of windows");
    if (height == side && width == side) return wml_nn_reshape(b, x, WML_DIMS(0, height, width, c));
    x = wml_nn_reshape(b, x, WML_DIMS(-1, width / side, side, side * c));
    return wml_nn_reshape(b, wml_nn_transpose(b, x, "0213"), WML_DIMS(-1, height, width, c));
}

struct wml_value *wml_nn_roll(struct wml_nn *b, struct wml_value *x, int axis, int64_t by)
{
    if (b->failed || !x || !by) return x;
    const int64_t n = wml_nn_size(b, x, axis, "the height and width of pixel_values"), at = (by % n + n) % n;
    if (!at) return x;
    return wml_nn_concat(b, axis, WML_VALUES(wml_nn_slice(b, x, axis, at, INT64_MAX), wml_nn_slice(b, x, axis, 0, at)));
}
