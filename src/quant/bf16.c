/* bf16: floats become bfloat16. Many operators take it only from opset 22 on, so the model is brought there first. */
#include "quant/half.h"

enum { OPSET = 22 };

static bool apply(struct wml_quant_run *r, struct wml_err *err)
{
    const struct wml_quant_env *env = r->env;
    if (wml_model_opset(r->model, "") < OPSET && env->set_opset && !env->set_opset(env->arg, r->model, OPSET, err))
        return wml_wrap(err, "bfloat16 needs opset %d", OPSET);
    return wml_half_apply(r, WML_BF16, err);
}

const struct wml_quant_method wml_quant_bf16 = {.name = "bf16", .label = "BF16 conversion", .apply = apply};
