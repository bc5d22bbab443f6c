/* Gelu written out with Erf becomes one node. By default only where ONNX itself has the operator (opset 20);
 * when asked for, as com.microsoft::Gelu below that. */
#include "passes/gelu_rules.h"

static bool run(struct wml_pass_run *r, struct wml_err *err)
{
    return wml_gelu_run(r, WML_GELU_ALL, r->asked, err);
}

const struct wml_pass wml_pass_gelu_fusion = {
    .name = "gelu-fusion", .category = "gelu", .pipe = "ort_graph", .ort_name = "GeluFusionL2", .level = 2, .on = true, .wider = true,
    .makes = WML_MAKES_CONTRIB, .run = run,
    .summary = "Turn x * 0.5 * (1 + erf(x / sqrt(2))) into Gelu (com.microsoft below opset 20, only when asked for)",
};
