/* Hard swish written out, from opset 14: x * clip(x + 3, 0, 6) / 6 -> HardSwish(x). "/ 6" may be a product with
 * 1/6, anywhere in the product. Below opset 14 the pattern stays: its other standard form, a product with
 * HardSigmoid, is both slow and coarse on some NPUs. */
#include "passes/pattern.h"

static bool rewrite(struct wml_match *m)
{
    struct wml_value *x = wml_match_value(m, "x");
    if (!wml_dtype_is_float((int)wml_value_elem(x))) return wml_match_refuse(m, "no float, or its type is not known");
    wml_match_replace(m, "", "HardSwish", 1, &x);
    return true;
}

static const struct wml_rule rules[] = {
    {"Div(Mul(x, Clip(Add(x, 3), 0, 6)), 6)", rewrite, .min_opset = 14},
    {"Mul(Mul(x, Clip(Add(x, 3), 0, 6)), 0.166666667)", rewrite, .min_opset = 14},
    {"Mul(x, Div(Clip(Add(x, 3), 0, 6), 6))", rewrite, .min_opset = 14},
    {"Mul(x, Mul(Clip(Add(x, 3), 0, 6), 0.166666667))", rewrite, .min_opset = 14},
};

static bool run(struct wml_pass_run *r, struct wml_err *err)
{
    if (wml_model_opset(r->model, "") < 14) return wml_pass_skip(r, "HardSwish exists from opset 14");
    return wml_rules_run(r, rules, WML_COUNT(rules), err);
}

const struct wml_pass wml_pass_hard_swish_fusion = {
    .name = "hard-swish-fusion", .category = "activation", .on = true, .run = run,
    .summary = "Turn a written-out hard swish into HardSwish (from opset 14)",
};
