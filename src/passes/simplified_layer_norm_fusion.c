/* RMS normalisation written out becomes RMSNormalization, an operator of ONNX from opset 23. Below that ORT has an
 * operator of its own under ONNX's name, which no other tool accepts: it is not used. */
#include "passes/rms_norm_rules.h"

static bool rewrite(struct wml_match *m)
{
    struct wml_rms_norm n;
    if (!wml_rms_norm_of(m, &n)) return false;
    struct wml_value *in[2] = {n.x, n.scale};
    struct wml_node *new = wml_match_replace(m, "", "RMSNormalization", 2, in);
    wml_attr_set_int(new, "axis", n.axis - n.rank);
    wml_attr_set_float(new, "epsilon", n.eps);
    return true;
}

static bool run(struct wml_pass_run *r, struct wml_err *err)
{
    if (wml_model_opset(r->model, "") < 23)
        return wml_pass_skip(r, "RMSNormalization exists from opset 23; --opset 23 raises the model's");
    return wml_rms_norm_run(r, true, rewrite, err);
}

const struct wml_pass wml_pass_simplified_layer_norm_fusion = {
    .name = "simplified-layer-norm-fusion", .category = "layer_norm", .pipe = "ort_graph",
    .ort_name = "SimplifiedLayerNormFusion", .level = 2, .on = true, .run = run,
    .summary = "Turn RMS normalisation written out into RMSNormalization (from opset 23)",
};
