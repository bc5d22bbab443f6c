/* Add of a bias (and of a residual) around Dropout becomes com.microsoft::BiasDropout. Dropouts that do nothing are
 * removed as identities; this is for those that are kept. */
#include "passes/pattern.h"

static bool rewrite(struct wml_match *m)
{
    struct wml_value *x = wml_match_value(m, "x"), *b = wml_match_value(m, "b"), *residual = NULL, *in[5];
    const struct wml_tensor *t = wml_constant_of(b);
    int64_t rank = wml_value_rank(x);
    if (m->rule->variant) residual = wml_match_value(m, "res");
    if (!t || t->dims.len != 1 || rank < 1 || wml_value_axis(x, (size_t)rank - 1).size != t->dims.at[0])
        return wml_match_refuse(m, "the bias is no constant as long as the last axis");
    if (residual && !wml_same_type(residual, x)) return wml_match_refuse(m, "the residual has another shape");
    in[0] = x;
    in[1] = b;
    in[2] = residual;
    in[3] = wml_match_value(m, "ratio");
    in[4] = wml_match_value(m, "training");
    wml_match_replace(m, "com.microsoft", "BiasDropout", 5, in);
    return true;
}

static const struct wml_rule rules[] = {
    {"Add(Dropout(Add(x, $b), ?ratio, ?training), res)", rewrite, 1, 12},
    {"Dropout(Add(x, $b), ?ratio, ?training)", rewrite, 0, 12},
};

static bool run(struct wml_pass_run *r, struct wml_err *err)
{
    if (wml_model_opset(r->model, "") < 12) return wml_pass_skip(r, "Dropout has no inputs for it below opset 12");
    return wml_rules_run(r, rules, 1, err) && wml_rules_run(r, rules + 1, 1, err);
}

const struct wml_pass wml_pass_bias_dropout_fusion = {
    .name = "bias-dropout-fusion", .category = "activation", .pipe = "ort_graph", .ort_name = "BiasDropoutFusion", .level = 2,
    .makes = WML_MAKES_CONTRIB, .only_for = "cuda", .run = run, .summary = "Turn Add and a Dropout that is kept into BiasDropout of com.microsoft",
};
