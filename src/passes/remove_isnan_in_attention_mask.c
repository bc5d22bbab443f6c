/* Softmax, IsNaN, Where(isnan, 0, softmax) -> the Softmax: the guard against rows that are masked wholly. With
 * finite mask values no such row gives NaN. */
#include "passes/pattern.h"

static bool rewrite(struct wml_match *m)
{
    double v;
    struct wml_value *s = wml_match_value(m, "s");
    if (!wml_constant_beside(m->r, wml_match_value(m, "zero"), s, &v) || v != 0) return wml_match_refuse(m, "NaN is not replaced by zero");
    if (!s->def || !wml_node_is(s->def, "Softmax")) return wml_match_refuse(m, "no Softmax");
    return wml_match_bypass(m, s);
}

static const struct wml_rule rules[] = {{"Where(IsNaN(s), $zero, s)", rewrite, 0, 9}};

const struct wml_pass wml_pass_remove_isnan_in_attention_mask = {
    .name = "remove-isnan-in-attention-mask", .category = "surgery", .pipe = "surgery", .lossy = true, .rules = rules, .n_rules = WML_COUNT(rules),
    .summary = "Remove the NaN guard behind Softmax",
};
