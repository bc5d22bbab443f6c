/* nn/ops.h - one function per operator: adds the node, gives its value with its type. Axes may be negative. Lists are
 * given by WML_DIMS(...) and WML_VALUES(...). See nn/nn.h for failures. */
#ifndef WML_NN_OPS_H
#define WML_NN_OPS_H

#include "nn/nn.h"

/* Element by element. unary: Sqrt, Exp, Tanh, Sigmoid, Relu, Erf, Not, ... binary: Add, Mul, Pow, Max, And, ... with
 * broadcasting; compare: Equal, Less, Greater, LessOrEqual, GreaterOrEqual, with a bool result. */
struct wml_value *wml_nn_unary(struct wml_nn *b, const char *op, struct wml_value *x);
struct wml_value *wml_nn_binary(struct wml_nn *b, const char *op, struct wml_value *x, struct wml_value *y);
struct wml_value *wml_nn_compare(struct wml_nn *b, const char *op, struct wml_value *x, struct wml_value *y);
struct wml_value *wml_nn_add(struct wml_nn *b, struct wml_value *x, struct wml_value *y);
struct wml_value *wml_nn_sub(struct wml_nn *b, struct wml_value *x, struct wml_value *y);
struct wml_value *wml_nn_mul(struct wml_nn *b, struct wml_value *x, struct wml_value *y);
struct wml_value *wml_nn_div(struct wml_nn *b, struct wml_value *x, struct wml_value *y);
struct wml_value *wml_nn_scale(struct wml_nn *b, struct wml_value *x, double by);   /* x * by; x itself when by is 1 */
struct wml_value *wml_nn_shift(struct wml_nn *b, struct wml_value *x, double by);   /* x + by */
struct wml_value *wml_nn_clip(struct wml_nn *b, struct wml_value *x, double low, double high); /* float32 */
struct wml_value *wml_nn_where(struct wml_nn *b, struct wml_value *c, struct wml_value *x, struct wml_value *y);
struct wml_value *wml_nn_cast(struct wml_nn *b, struct wml_value *x, enum wml_dtype to); /* x itself when it is that */

struct wml_value *wml_nn_matmul(struct wml_nn *b, struct wml_value *x, struct wml_value *y);
/* x [n,k] by y [k,m], or [m,k] with trans_y; bias [m] or NULL. */
struct wml_value *wml_nn_gemm(struct wml_nn *b, struct wml_value *x, struct wml_value *y, struct wml_value *bias, bool trans_y);
struct wml_value *wml_nn_softmax(struct wml_nn *b, struct wml_value *x, int axis);
/* ReduceMean, ReduceSum, ReduceMax, ReduceL2, ... */
struct wml_value *wml_nn_reduce(struct wml_nn *b, const char *op, struct wml_value *x, size_t n, const int64_t *axes, bool keep);
struct wml_value *wml_nn_argmax(struct wml_nn *b, struct wml_value *x, int axis, bool keep); /* int64, the first largest */
/* Where the k largest along the last axis are, the largest first: int64. */
struct wml_value *wml_nn_largest(struct wml_nn *b, struct wml_value *x, int64_t k);
struct wml_value *wml_nn_cumsum(struct wml_nn *b, struct wml_value *x, int axis);

/* Moving. perm in digits: "0213". Reshape: 0 keeps the size at that place, one -1 is what is left. */
struct wml_value *wml_nn_transpose(struct wml_nn *b, struct wml_value *x, const char *perm);
struct wml_value *wml_nn_reshape(struct wml_nn *b, struct wml_value *x, size_t rank, const int64_t *dims);
/* To sizes that are values: each an int64 [1] (wml_nn_extent). `shape` is what is known of the result. */
struct wml_value *wml_nn_reshape_to(struct wml_nn *b, struct wml_value *x, size_t rank, struct wml_value *const *dims, const struct wml_nn_shape *shape);
struct wml_value *wml_nn_flatten(struct wml_nn *b, struct wml_value *x, int axis); /* to two axes, cut before `axis` */
struct wml_value *wml_nn_squeeze(struct wml_nn *b, struct wml_value *x, size_t n, const int64_t *axes);
struct wml_value *wml_nn_unsqueeze(struct wml_nn *b, struct wml_value *x, size_t n, const int64_t *axes);
struct wml_value *wml_nn_concat(struct wml_nn *b, int axis, size_t n, struct wml_value *const *in);
struct wml_value *wml_nn_slice(struct wml_nn *b, struct wml_value *x, int axis, int64_t from, int64_t to); /* INT64_MAX: the end */
struct wml_value *wml_nn_slice_step(struct wml_nn *b, struct wml_value *x, int axis, int64_t from, int64_t to, int64_t step);
struct wml_nn_cut {
    int axis;
    int64_t from, to, step;
};
/* Along several axes in one Slice, each named once. */
struct wml_value *wml_nn_cuts(struct wml_nn *b, struct wml_value *x, size_t n, const struct wml_nn_cut *cut);
/* The first rows and columns of a picture, whose rows are `axis`. */
struct wml_value *wml_nn_crop(struct wml_nn *b, struct wml_value *x, int axis, int64_t rows, int64_t columns);
/* The first `len` (an int64 [1], as wml_nn_extent gives) along the axis; `size` is what is known of it. */
struct wml_value *wml_nn_slice_to(struct wml_nn *b, struct wml_value *x, int axis, struct wml_value *len, struct wml_axis size);
/* n equal parts along the axis, whose size must be known and divide. */
void wml_nn_split(struct wml_nn *b, struct wml_value *x, int axis, size_t n, struct wml_value **out);
/* The same into parts of these sizes, which are all of it. */
void wml_nn_split_sizes(struct wml_nn *b, struct wml_value *x, int axis, size_t n, const int64_t *size, struct wml_value **out);
struct wml_value *wml_nn_gather(struct wml_nn *b, struct wml_value *x, struct wml_value *index, int axis);
struct wml_value *wml_nn_pick(struct wml_nn *b, struct wml_value *x, int axis, int64_t index); /* the axis is gone */
/* x [batch, n, ...] at index [batch] or [batch, 1]: [batch, ...] */
struct wml_value *wml_nn_pick_each(struct wml_nn *b, struct wml_value *x, struct wml_value *index);
/* x [batch, n, ...] at index [batch, k]: [batch, k, ...] */
struct wml_value *wml_nn_pick_rows(struct wml_nn *b, struct wml_value *x, struct wml_value *index);
struct wml_value *wml_nn_gather_elements(struct wml_nn *b, struct wml_value *x, struct wml_value *index, int axis);
struct wml_value *wml_nn_expand(struct wml_nn *b, struct wml_value *x, size_t rank, struct wml_value *const *dims, const struct wml_nn_shape *shape);
/* Repeats x, whose `axis` has size 1, as often as `like` is long along its axis. */
struct wml_value *wml_nn_repeat(struct wml_nn *b, struct wml_value *x, int axis, struct wml_value *like, int like_axis);
/* pads: rank begins, then rank ends; filled with `value`. */
struct wml_value *wml_nn_pad(struct wml_nn *b, struct wml_value *x, const int64_t *pads, double value);

/* Resize of the two last axes of [n,c,h,w] to a fixed size; mode "linear", "nearest", "cubic"; corners: align_corners,
 * else half pixels. */
struct wml_value *wml_nn_resize(struct wml_nn *b, struct wml_value *x, const char *mode, bool corners, int64_t height, int64_t width);
/* [n, c r r, h, w] -> [n, c, h r, w r] */
struct wml_value *wml_nn_pixel_shuffle(struct wml_nn *b, struct wml_value *x, int64_t r);
struct wml_value *wml_nn_resize_by(struct wml_nn *b, struct wml_value *x, const char *mode, bool corners, double factor);

/* A window over the spatial axes of [n,c,...]: the same in each. */
struct wml_nn_window {
    int64_t kernel, stride, pad, dilation, groups; /* 0: 1, pad 0. The kernel of a convolution is its weight's */
    int64_t last_stride; /* along the last axis, where it is another; 0: stride */
    int64_t pad_end; /* of pads that differ: where `uneven` */
    bool uneven, ceil;
};
struct wml_value *wml_nn_conv_node(struct wml_nn *b, struct wml_value *x, struct wml_value *weight, struct wml_value *bias, const struct wml_nn_window *w);
struct wml_value *wml_nn_conv_transpose_node(struct wml_nn *b, struct wml_value *x, struct wml_value *weight, struct wml_value *bias, const struct wml_nn_window *w);
/* MaxPool, or AveragePool which does not count padding. */
struct wml_value *wml_nn_pool(struct wml_nn *b, const char *op, struct wml_value *x, const struct wml_nn_window *w);
/* x [n,c,h,w] at grid [n,rows,columns,2] of (x, y), -1 .. 1 between the picture's edges: [n,c,rows,columns]. Bilinear, 0 outside;
 * or the nearest place, that at the edge outside. */
struct wml_value *wml_nn_grid_sample(struct wml_nn *b, struct wml_value *x, struct wml_value *grid, bool nearest);
struct wml_value *wml_nn_global_mean(struct wml_nn *b, struct wml_value *x); /* GlobalAveragePool: [n,c,1,1] */

#endif
