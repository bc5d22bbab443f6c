/* Gelu written out with Erf, in every order of its product. Forms 1 to 4 are those that exporters write most
 * (Hendrycks, Gimpel: Gaussian Error Linear Units, 2016, is the operator's source). */
#include "passes/gelu_rules.h"


static bool to_gelu(struct wml_match *m)
{
    struct wml_value *x = wml_match_value(m, "x");
    if (!wml_is_float(x)) return wml_match_refuse(m, "no float, or its type is not known");
    bool standard = wml_model_opset(m->r->model, "") >= 20;
    if (!standard && wml_value_elem(x) == WML_BF16) return wml_match_refuse(m, "no kernel for bfloat16");
    wml_match_replace(m, standard ? "" : "com.microsoft", "Gelu", 1, &x);
    return true;
}

#define E "Add(1, Erf(Div(x, 1.41421356)))"
#define F "Add(1, Erf(Mul(x, 0.70710678)))"
static const struct wml_rule rules[] = {
    {"Mul(Mul(x, 0.5), " E ")", to_gelu, WML_GELU_1, 0},
    {"Mul(Mul(x, " E "), 0.5)", to_gelu, WML_GELU_2, 0},
    {"Mul(x, Mul(" E ", 0.5))", to_gelu, WML_GELU_3, 0},
    {"Mul(x, Mul(" F ", 0.5))", to_gelu, WML_GELU_4, 0},
    {"Mul(Mul(x, 0.5), " F ")", to_gelu, WML_GELU_OTHER, 0},
    {"Mul(Mul(x, " F "), 0.5)", to_gelu, WML_GELU_OTHER, 0},
    {"Div(Mul(x, " E "), 2)", to_gelu, WML_GELU_OTHER, 0},
    {"Div(Mul(x, " F "), 2)", to_gelu, WML_GELU_OTHER, 0},
    {"Mul(x, Div(" E ", 2))", to_gelu, WML_GELU_OTHER, 0},
};
#undef E
#undef F

bool wml_gelu_run(struct wml_pass_run *r, unsigned forms, bool contrib, struct wml_err *err)
{
    struct wml_rule chosen[WML_COUNT(rules)];
    size_t n = 0;
    if (!contrib && wml_model_opset(r->model, "") < 20) return wml_pass_skip(r, "standard Gelu exists from opset 20");
    for (size_t i = 0; i < WML_COUNT(rules); i++)
        if (rules[i].variant & forms) chosen[n++] = rules[i];
    return wml_rules_run(r, chosen, n, err);
}
