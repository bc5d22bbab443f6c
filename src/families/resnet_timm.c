/* families/resnet_timm.c - ResNet under timm's names, as in published DETR checkpoints: what blocks there are is told by the
 * weights. */
#include <stdio.h>
#include "families/resnet_body.h"

enum { MAX_BLOCKS = 200 };

static struct wml_value *conv(struct wml_nn *b, struct wml_value *x, unsigned i, int64_t kernel, int64_t stride, int64_t dilation)
{
    char name[16], norm[16];
    snprintf(name, sizeof name, "conv%u", i);
    snprintf(norm, sizeof norm, "bn%u", i);
    return wml_nn_conv_bn(b, x, name, norm, 1e-5, -1,
                          &(struct wml_nn_window){.stride = stride, .pad = kernel / 2 * dilation, .dilation = kernel > 1 ? dilation : 1});
}

static struct wml_value *relu(struct wml_nn *b, struct wml_value *x)
{
    return wml_nn_unary(b, "Relu", x);
}

/* Two 3x3, or 1x1, 3x3, 1x1. */
static struct wml_value *block(struct wml_nn *b, struct wml_value *x, int64_t stride, int64_t dilation)
{
    struct wml_value *y, *rest = x;
    if (wml_nn_has(b, "conv3.weight")) {
        y = relu(b, conv(b, x, 1, 1, 1, 1));
        y = conv(b, relu(b, conv(b, y, 2, 3, stride, dilation)), 3, 1, 1, 1);
    } else {
        y = conv(b, relu(b, conv(b, x, 1, 3, stride, dilation)), 2, 3, 1, 1);
    }
    if (wml_nn_has(b, "downsample.0.weight"))
        rest = wml_nn_conv_bn(b, x, "downsample.0", "downsample.1", 1e-5, -1, &(struct wml_nn_window){.stride = stride});
    return relu(b, wml_nn_add(b, y, rest));
}

struct wml_value *wml_resnet_timm(struct wml_nn *b, struct wml_value *x, bool dilated)
{
    x = relu(b, conv(b, x, 1, 7, 2, 1));
    x = wml_nn_pool(b, "MaxPool", x, &(struct wml_nn_window){.kernel = 3, .stride = 2, .pad = 1});
    for (unsigned s = 1; s <= 4; s++)
        for (unsigned i = 0; i < MAX_BLOCKS && wml_nn_ok(b); i++) {
            char first[40];
            snprintf(first, sizeof first, "layer%u.%u.conv1.weight", s, i);
            if (!wml_nn_has(b, first)) break;
            const bool holes = dilated && s == 4;
            wml_nn_enter_layer(b, "Block", "layer%u.%u", s, i);
            x = block(b, x, s > 1 && i == 0 && !holes ? 2 : 1, holes && i > 0 ? 2 : 1);
            wml_nn_leave(b);
        }
    return x;
}
