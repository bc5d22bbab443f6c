/* passes/slice_info.h - what a Slice with constant bounds takes. */
#ifndef WML_PASSES_SLICE_INFO_H
#define WML_PASSES_SLICE_INFO_H

#include "passes/match.h"

enum { WML_SLICE_AXES = 16 };

struct wml_slice { /* of every sliced axis: elements start, start + step, ... count of them */
    size_t n;
    size_t axis[WML_SLICE_AXES];
    int64_t start[WML_SLICE_AXES], count[WML_SLICE_AXES], step[WML_SLICE_AXES], size[WML_SLICE_AXES]; /* size: of the axis */
};

/* false: not a Slice, bounds not constant, or the sliced axes have no known size. Axes appear once, in order. */
bool wml_slice_of(struct wml_pass_run *r, const struct wml_node *n, struct wml_slice *out);
/* It takes every element of every axis in order. */
bool wml_slice_is_whole(const struct wml_slice *s);

/* Elements start, start + 1, ... count of them, of one axis of a value. */
struct wml_piece {
    struct wml_value *of;
    int64_t start, count;
};
/* v as a piece of what it was cut from, along axis alone, by however many Slices and Splits; v itself, whole, when it
 * was not. false: the axis has no known size. */
bool wml_piece_of(struct wml_pass_run *r, struct wml_value *v, size_t axis, struct wml_piece *out);

#endif
