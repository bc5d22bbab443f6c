/* The bias before a Gelu of com.microsoft goes into it: BiasGelu; FastGelu takes one itself. */
#include "passes/pattern.h"

static bool rewrite(struct wml_match *m)
{
    struct wml_value *x = wml_match_value(m, "x"), *b = wml_match_value(m, "b"), *in[2];
    const struct wml_tensor *t = wml_constant_of(b);
    int64_t rank = wml_value_rank(x);
    if (!t || t->dims.len != 1) return wml_match_refuse(m, "the bias is no constant of one dimension");
    if (rank < 1 || wml_value_axis(x, (size_t)rank - 1).size != t->dims.at[0])
        return wml_match_refuse(m, "the bias is not as long as the last axis");
    in[0] = x;
    in[1] = b;
    bool fast = wml_str_is(m->root->op_type, "FastGelu");
    wml_match_replace(m, "com.microsoft", fast ? "FastGelu" : "BiasGelu", 2, in);
    return true;
}

static const struct wml_rule rules[] = {
    {"com.microsoft::Gelu|FastGelu(Add(x, $b))", rewrite, 0, 0},
};

const struct wml_pass wml_pass_bias_gelu_fusion = {
    .name = "bias-gelu-fusion", .category = "gelu", .pipe = "ort_graph", .ort_name = "BiasGeluFusion", .level = 2,
    .makes = WML_MAKES_CONTRIB, .needs = "gelu-fusion", .rules = rules, .n_rules = WML_COUNT(rules),
    .summary = "Put the bias before com.microsoft Gelu or FastGelu into it",
};
