/* nn/windows.c - see windows.h. The channels stay with the columns of a window, which lie side by side: rows of windows by
 * rows of a window by windows by (columns, channels). */
#include "nn/windows.h"

static int64_t channels(struct wml_nn *b, struct wml_value *x)
{
    return wml_nn_size(b, x, -1, "the channels of windows");
}

struct wml_value *wml_nn_to_windows(struct wml_nn *b, struct wml_value *x, int64_t side, int64_t height, int64_t width)
{
    if (b->failed || !x) return NULL;
    const int64_t c = channels(b, x);
    if (height == side && width == side) return wml_nn_rank(x) == 2 ? x : wml_nn_reshape(b, x, WML_DIMS(-1, c));
    x = wml_nn_reshape(b, x, WML_DIMS(-1, side, width / side, side * c));
    return wml_nn_reshape(b, wml_nn_transpose(b, x, "0213"), WML_DIMS(-1, c));
}

struct wml_value *wml_nn_from_windows(struct wml_nn *b, struct wml_value *x, int64_t side, int64_t height, int64_t width, bool rows)
{
    if (b->failed || !x) return NULL;
    const int64_t c = channels(b, x);
    if (height != side || width != side)
        x = wml_nn_transpose(b, wml_nn_reshape(b, x, WML_DIMS(-1, width / side, side, side * c)), "0213");
    else if (rows) return x;
    return rows ? wml_nn_reshape(b, x, WML_DIMS(-1, c)) : wml_nn_reshape(b, x, WML_DIMS(-1, height, width, c));
}

struct wml_value *wml_nn_merge_four(struct wml_nn *b, struct wml_value *x, int64_t width)
{
    if (b->failed || !x) return NULL;
    const int64_t c = channels(b, x);
    x = wml_nn_transpose(b, wml_nn_reshape(b, x, WML_DIMS(-1, 2, width / 2, 2 * c)), "0213");
    x = wml_nn_transpose(b, wml_nn_reshape(b, x, WML_DIMS(-1, 2, 2, c)), "0213");
    return wml_nn_reshape(b, x, WML_DIMS(-1, 4 * c));
}

struct wml_value *wml_nn_roll(struct wml_nn *b, struct wml_value *x, int axis, int64_t by)
{
    if (b->failed || !x || !by) return x;
    const int64_t n = wml_nn_size(b, x, axis, "the height and width of pixel_values"), at = (by % n + n) % n;
    if (!at) return x;
    struct wml_value *part[2] = {NULL};
    wml_nn_split_sizes(b, x, axis, 2, (const int64_t[]){at, n - at}, part);
    return wml_nn_concat(b, axis, WML_VALUES(part[1], part[0]));
}
