/* PRelu(x) = Relu(x) - slope * Relu(-x), for targets without PRelu. */
#include "passes/pattern.h"

#include <math.h>

static bool rewrite(struct wml_match *m)
{
    struct wml_value *x = wml_match_value(m, "x"), *slope = wml_match_value(m, "slope"), *pair[2];
    struct wml_tensor *t = wml_constant_of(slope);
    double *v;
    size_t n;
    if (!wml_is_float(x) || wml_value_elem(x) != (enum wml_dtype)t->dtype) return wml_match_refuse(m, "no float, or two types");
    if (!wml_tensor_doubles(m->r->model, t, &v, &n, NULL)) return wml_match_refuse(m, "the slope cannot be read");
    for (size_t i = 0; i < n; i++)
        if (!isfinite(v[i])) return wml_match_refuse(m, "the slope is not finite");
    struct wml_value *up = wml_match_add(m, "Relu", "prelu_up", 1, &x), *down = wml_match_add(m, "Neg", "prelu_neg", 1, &x);
    down = wml_match_add(m, "Relu", "prelu_down", 1, &down);
    pair[0] = down, pair[1] = slope;
    down = wml_match_add(m, "Mul", "prelu_slope", 2, pair);
    pair[0] = up, pair[1] = down;
    wml_match_replace(m, "", "Sub", 2, pair);
    return true;
}

static const struct wml_rule rules[] = {{"PRelu(x, $slope)", rewrite, 0, 7}};

const struct wml_pass wml_pass_prelu_to_relu = {
    .name = "prelu-to-relu", .category = "rewrite", .pipe = "cgir_rewrite", .cgc = true, .rules = rules, .n_rules = WML_COUNT(rules),
    .summary = "Write PRelu with a constant slope out as Relus",
};
