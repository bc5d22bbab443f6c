/* Gelu by tanh, 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))): Gelu with approximate="tanh" from opset 20,
 * com.microsoft::FastGelu below when asked for. */
#include "passes/pattern.h"

static bool rewrite(struct wml_match *m)
{
    struct wml_value *x = wml_match_value(m, "x");
    struct wml_node *n;
    if (!wml_is_float(x)) return wml_match_refuse(m, "no float, or its type is not known");
    if (wml_model_opset(m->r->model, "") < 20) {
        wml_match_replace(m, "com.microsoft", "FastGelu", 1, &x);
        return true;
    }
    n = wml_match_replace(m, "", "Gelu", 1, &x);
    wml_attr_set_str(n, "approximate", WML_STR("tanh"));
    return true;
}

#define CUBE1 "Mul(0.044715, Pow(x, 3))"
#define CUBE2 "Mul(0.044715, Mul(x, Mul(x, x)))"
#define CUBE3 "Mul(x, Mul(x, Mul(0.044715, x)))"
#define TANH(arg) "Add(1, Tanh(" arg "))"
#define HALF1(e) "Mul(Mul(x, 0.5), " e ")"
#define HALF2(e) "Mul(x, Mul(0.5, " e "))"
#define HALF3(e) "Mul(0.5, Mul(x, " e "))"
#define ALL(e) {HALF1(e), rewrite, 0, 0}, {HALF2(e), rewrite, 0, 0}, {HALF3(e), rewrite, 0, 0}
static const struct wml_rule rules[] = {
    ALL(TANH("Mul(0.79788456, Add(x, " CUBE1 "))")),
    ALL(TANH("Mul(0.79788456, Add(x, " CUBE2 "))")),
    ALL(TANH("Mul(0.79788456, Add(x, " CUBE3 "))")),
    ALL(TANH("Mul(Mul(0.79788456, x), Add(1, Mul(x, Mul(0.044715, x))))")),
    ALL(TANH("Mul(x, Mul(0.79788456, Add(1, Mul(x, Mul(0.044715, x)))))")),
    ALL(TANH("Mul(Mul(0.79788456, x), Add(1, Mul(0.044715, Pow(x, 2))))")),
    ALL(TANH("Mul(Mul(0.79788456, x), Add(1, Mul(0.044715, Mul(x, x))))")),
    ALL(TANH("Mul(x, Add(0.79788456, Mul(0.035677408, Pow(x, 2))))")),
};

static bool run(struct wml_pass_run *r, struct wml_err *err)
{
    if (!r->asked && wml_model_opset(r->model, "") < 20)
        return wml_pass_skip(r, "standard Gelu exists from opset 20");
    return wml_rules_run(r, rules, WML_COUNT(rules), err);
}

const struct wml_pass wml_pass_fast_gelu_fusion = {
    .name = "fast-gelu-fusion", .category = "gelu", .pipe = "ort_graph", .ort_name = "FastGeluFusion", .level = 2, .on = true, .wider = true,
    .makes = WML_MAKES_CONTRIB, .run = run,
    .summary = "Turn Gelu written with Tanh into Gelu (FastGelu of com.microsoft below opset 20, only when asked for)",
};
