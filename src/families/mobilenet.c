/* families/mobilenet.c - see mobilenet.h. */
#include <math.h>
#include "families/mobilenet.h"

int64_t wml_mobilenet_width(double v, int64_t divisor, int64_t least)
{
    v = nearbyint(v); /* halves to the even number, as Python does */
    int64_t n = wml_cfg_whole(v + (double)divisor / 2) / divisor * divisor;
    if (n < least) n = least;
    return (double)n < 0.9 * v ? n + divisor : n;
}

static void tf_pads(int64_t size, const struct wml_nn_window *w, int64_t kernel, int64_t *begin, int64_t *end)
{
    const int64_t rest = size % w->stride, wide = (kernel - 1) * (w->dilation ? w->dilation : 1) + 1;
    int64_t pad = rest ? wide - rest : wide - w->stride;
    if (pad < 0) pad = 0;
    *begin = pad / 2;
    *end = pad - *begin;
}

struct wml_value *wml_mobilenet_tf_pad(struct wml_nn *b, struct wml_value *x, int64_t kernel, struct wml_nn_window *w)
{
    static const char *const what = "the height and width of pixel_values (TensorFlow's padding depends on them)";
    int64_t p[4];
    tf_pads(wml_nn_size(b, x, 2, what), w, kernel, &p[0], &p[2]);
    tf_pads(wml_nn_size(b, x, 3, what), w, kernel, &p[1], &p[3]);
    if (p[0] != p[1] || p[2] != p[3]) return wml_nn_pad(b, x, (const int64_t[]){0, 0, p[0], p[1], 0, 0, p[2], p[3]}, 0);
    w->pad = p[0]; /* the convolution can do it */
    w->pad_end = p[2];
    w->uneven = p[0] != p[2];
    return x;
}

struct wml_value *wml_mobilenet_conv(struct wml_nn *b, struct wml_value *x, const char *name, const struct wml_mobilenet_conv *c)
{
    if (b->failed || !x) return NULL;
    struct wml_nn_window w = {.kernel = c->kernel, .stride = c->stride, .dilation = c->dilation, .groups = c->depthwise ? c->out : 1};
    wml_nn_enter(b, "*ConvLayer", "%s", name);
    if (c->tf_padding && c->kernel > 1) x = wml_mobilenet_tf_pad(b, x, c->kernel, &w);
    else if (c->kernel > 1) w.pad = (c->kernel - 1) / 2 * (c->dilation ? c->dilation : 1);
    x = wml_nn_conv_bn(b, x, "convolution", "normalization", c->eps, c->out, &w);
    if (c->act.len) x = wml_nn_act(b, x, c->act, "hidden_act");
    wml_nn_leave(b);
    return x;
}
