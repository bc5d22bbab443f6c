/* families/box_head.c - see box_head.h. */
#include "families/box_head.h"

struct wml_value *wml_box_head(struct wml_nn *b, const char *name, struct wml_value *x, int64_t hidden, int64_t out)
{
    wml_nn_enter(b, "*MLPPredictionHead", "%s", name);
    x = wml_nn_unary(b, "Relu", wml_nn_linear(b, x, "layers.0", hidden));
    x = wml_nn_unary(b, "Relu", wml_nn_linear(b, x, "layers.1", hidden));
    x = wml_nn_linear(b, x, "layers.2", out);
    wml_nn_leave(b);
    return x;
}
