/* x * sigmoid(a x) -> com.microsoft::QuickGelu(alpha = a), or ONNX's own Swish from opset 24. Off by default: ONNX Runtime
 * 1.29 has no kernel of Swish. */
#include "passes/pattern.h"

static bool quick(struct wml_match *m)
{
    struct wml_value *x = wml_match_value(m, "x");
    double alpha = 1;
    if (!wml_is_float(x)) return wml_match_refuse(m, "no float, or its type is not known");
    if (m->rule->variant && !wml_constant_scalar(m->r, wml_match_value(m, "a"), &alpha))
        return wml_match_refuse(m, "the factor is not one number");
    if (m->rule->variant && wml_constant_of(wml_match_value(m, "a"))->dims.len > (size_t)WML_MAX(wml_value_rank(x), 0))
        return wml_match_refuse(m, "the factor raises the rank");
    bool swish = wml_model_opset(m->r->model, "") >= 24;
    struct wml_node *n = wml_match_replace(m, swish ? "" : "com.microsoft", swish ? "Swish" : "QuickGelu", 1, &x);
    wml_attr_set_float(n, "alpha", (float)alpha);
    return true;
}

static const struct wml_rule rules[] = {
    {"Mul(x, Sigmoid(Mul(x, $a)))", quick, 1, 0},
    {"Mul(x, Sigmoid(x))", quick, 0, 0},
};

const struct wml_pass wml_pass_quick_gelu_fusion = {
    .name = "quick-gelu-fusion", .category = "gelu", .pipe = "ort_graph", .ort_name = "QuickGeluFusion", .level = 2,
    .makes = WML_MAKES_CONTRIB, .rules = rules, .n_rules = WML_COUNT(rules),
    .summary = "Turn x * sigmoid(a x) into QuickGelu of com.microsoft, from opset 24 into Swish",
};
