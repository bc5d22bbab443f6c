/* fp16: floats become half floats, as the converter in ONNX Runtime's Python package does it. */
#include "quant/half.h"

static bool apply(struct wml_quant_run *r, struct wml_err *err)
{
    return wml_half_apply(r, WML_F16, err);
}

const struct wml_quant_method wml_quant_fp16 = {.name = "fp16", .label = "FP16 conversion", .apply = apply};
