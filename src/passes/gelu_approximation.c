/* Gelu by erf becomes Gelu by tanh: faster on some targets, with other answers (up to 1e-3). */
#include "passes/pattern.h"

static bool rewrite(struct wml_match *m)
{
    struct wml_value *in[2] = {wml_match_value(m, "x"), m->rule->variant ? wml_match_value(m, "b") : NULL};
    wml_match_replace(m, "com.microsoft", "FastGelu", in[1] ? 2 : 1, in);
    return true;
}

static bool standard(struct wml_match *m)
{
    if (wml_str_is(wml_attr_str(m->root, "approximate", WML_STR("none")), "tanh")) return false;
    struct wml_value *x = wml_match_value(m, "x");
    struct wml_node *n = wml_match_replace(m, "", "Gelu", 1, &x);
    wml_attr_set_str(n, "approximate", WML_STR("tanh"));
    return true;
}

static const struct wml_rule rules[] = {
    {"com.microsoft::BiasGelu(x, b)", rewrite, 1, 0},
    {"com.microsoft::Gelu(x)", rewrite, 0, 0},
    {"Gelu(x)", standard, 0, 20},
};

const struct wml_pass wml_pass_gelu_approximation = {
    .name = "gelu-approximation", .category = "gelu", .pipe = "ort_graph", .ort_name = "GeluApproximation", .level = 2,
    .makes = WML_MAKES_CONTRIB, .lossy = true, .needs = "gelu-fusion", .rules = rules, .n_rules = WML_COUNT(rules),
    .summary = "Compute Gelu by tanh; changes answers slightly",
};
