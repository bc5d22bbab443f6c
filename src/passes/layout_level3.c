/* ORT's optimisers of level 3 choose layouts for one kind of processor. A saved file with them runs nowhere else,
 * so they are refused by name; the EP does the same when it loads the model. */
#include "passes/passes.h"

#define ROW(id, text, ort, what)                                                                                       \
    const struct wml_pass wml_pass_##id = {                                                                            \
        .name = text, .category = "layout", .pipe = "ort_graph", .ort_name = ort, .level = 3,                          \
        .makes = WML_MAKES_CONTRIB, .summary = what,                                                                   \
        .refused = "the layout is chosen by the EP when it loads the model; a file with it runs on one kind of CPU only"};

ROW(nhwc_transformer, "nhwc-transformer", "NhwcTransformer", "Kernels for channels-last layout: not in a saved file")
ROW(nchwc_transformer, "nchwc-transformer", "NchwcTransformer", "Blocked layout for one kind of CPU: not in a saved file")
ROW(conv_add_activation_fusion, "conv-add-activation-fusion", "ConvAddActivationFusion",
    "Conv, Add of a tensor and activation as one kernel: not in a saved file")
