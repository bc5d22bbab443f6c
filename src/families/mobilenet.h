/* families/mobilenet.h - what MobileNets of TensorFlow share: padding that depends on the size, and widths of whole multiples. */
#ifndef WML_FAMILIES_MOBILENET_H
#define WML_FAMILIES_MOBILENET_H

#include "families/family.h"

struct wml_mobilenet_conv {
    int64_t out, kernel, stride, dilation; /* dilation 0: 1 */
    bool depthwise;
    bool tf_padding; /* as much as makes the result ceil(size / stride), more of it behind; else kernel / 2 on both sides */
    double eps;
    struct wml_str act; /* empty: none */
};
/* "convolution" and "normalization" in the scope `name`, then the activation. */
struct wml_value *wml_mobilenet_conv(struct wml_nn *b, struct wml_value *x, const char *name, const struct wml_mobilenet_conv *c);
/* TensorFlow's "same" padding for a convolution with that window: in the window, or x padded where its sides differ. */
struct wml_value *wml_mobilenet_tf_pad(struct wml_nn *b, struct wml_value *x, int64_t kernel, struct wml_nn_window *w);
/* v to the nearest multiple of `divisor`, at least `least`, and no more than 10 % below v. */
int64_t wml_mobilenet_width(double v, int64_t divisor, int64_t least);

#endif
