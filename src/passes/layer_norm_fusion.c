/* Layer normalisation written out becomes LayerNormalization, an operator of ONNX from opset 17. */
#include "passes/layer_norm_rules.h"

static bool run(struct wml_pass_run *r, struct wml_err *err)
{
    return wml_layer_norm_run(r, WML_LAYER_NORM_POW | WML_LAYER_NORM_MUL, err);
}

const struct wml_pass wml_pass_layer_norm_fusion = {
    .name = "layer-norm-fusion", .category = "layer_norm", .pipe = "ort_graph", .ort_name = "LayerNormFusionL2", .level = 2,
    .on = true, .run = run, .summary = "Turn layer normalisation written out into LayerNormalization (from opset 17)",
};
