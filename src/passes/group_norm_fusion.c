/* Group normalisation (Wu, He: Group Normalization, 2018) as PyTorch writes it: Reshape to [batch, groups, -1],
 * InstanceNormalization, Reshape back, a scale and a bias for each channel. It becomes ONNX's GroupNormalization, whose
 * scales are of channels from opset 21. That is a function which runtimes without a kernel take apart again, so it
 * is made only when asked for. com.microsoft's GroupNorm has no kernel for the CPU and is not made. */
#include "passes/pattern.h"

enum { SCALE = 1, BIAS = 2 };

/* The two Reshapes are [batch, groups, rest] and back to x's shape. */
static bool groups_of(struct wml_match *m, struct wml_value *x, int64_t *groups)
{
    const struct wml_node *split = wml_match_node(m, "split"), *back = wml_match_node(m, "back");
    struct wml_value *shape = wml_match_value(m, "shape");
    int64_t *to, channels = wml_value_axis(x, 1).size, batch = wml_value_axis(x, 0).size;
    size_t n;
    if (!wml_constant_ints(m->r, wml_match_value(m, "to"), &to, &n) || n < 3) return wml_match_refuse(m, "not in groups");
    bool keeps = batch > 0 && to[0] == batch;
    if (!keeps && (to[0] != 0 || wml_attr_int(split, "allowzero", 0))) return wml_match_refuse(m, "the batch is not kept apart");
    if (to[1] < 1 || channels < 1 || channels % to[1]) return wml_match_refuse(m, "groups of channels are not of one size");
    bool to_own = shape->def && wml_node_is(shape->def, "Shape") && shape->def->in[0] == x && !wml_attr_find(shape->def, "end") &&
                  !wml_attr_int(shape->def, "start", 0);
    if (!to_own && !wml_same_type(back->out[0], x)) return wml_match_refuse(m, "not back to the shape that was there");
    *groups = to[1];
    return true;
}

/* The constant of this part as [channels]; `fill` everywhere when the pattern has none. */
static struct wml_value *of_channels(struct wml_match *m, struct wml_value *x, int part, double fill)
{
    int64_t channels = wml_value_axis(x, 1).size;
    enum wml_dtype dtype = wml_value_elem(x);
    size_t width = wml_dtype_info(dtype)->bits / 8;
    if (m->rule->variant & part) return wml_reshaped_constant(m->r, wml_match_value(m, part == SCALE ? "scale" : "bias"), 1, &channels);
    unsigned char *bytes = wml_arena_alloc(m->r->scratch, (size_t)channels * width);
    for (int64_t i = 0; i < channels; i++) wml_dtype_store(dtype, bytes, (size_t)i, fill);
    return wml_match_const(m, part == SCALE ? "group_norm_scale" : "group_norm_bias",
                           wml_tensor_copy(m->r->model, dtype, 1, &channels, bytes, (size_t)channels * width, NULL));
}

static bool rewrite(struct wml_match *m)
{
    struct wml_value *x = wml_match_value(m, "x"), *in[3] = {x};
    int64_t groups = 0;
    if (!wml_is_float(x) || wml_value_rank(x) < 3) return wml_match_refuse(m, "type or rank are not known");
    if (!groups_of(m, x, &groups)) return false;
    if (!wml_constant_is(m->r, wml_match_value(m, "ones"), 1) || !wml_constant_is(m->r, wml_match_value(m, "zeros"), 0))
        return wml_match_refuse(m, "groups have a scale or bias of their own");
    if ((m->rule->variant & SCALE && !wml_constant_is_along(wml_match_value(m, "scale"), x, 1)) ||
        (m->rule->variant & BIAS && !wml_constant_is_along(wml_match_value(m, "bias"), x, 1)))
        return wml_match_refuse(m, "scale or bias are not one number for each channel");
    float eps = wml_attr_float(wml_match_node(m, "norm"), "epsilon", 1e-5f);
    in[1] = of_channels(m, x, SCALE, 1);
    in[2] = of_channels(m, x, BIAS, 0);
    struct wml_node *n = wml_match_replace(m, "", "GroupNormalization", 3, in);
    wml_attr_set_int(n, "num_groups", groups);
    wml_attr_set_float(n, "epsilon", eps);
    return true;
}

#define CORE "back:Reshape(norm:InstanceNormalization(split:Reshape(x, $to), $ones, $zeros), shape)"
static const struct wml_rule rules[] = {
    {"Add(Mul(" CORE ", $scale), $bias)", rewrite, SCALE | BIAS, 21},
    {"Mul(" CORE ", $scale)", rewrite, SCALE, 21},
    {"Add(" CORE ", $bias)", rewrite, BIAS, 21},
    {CORE, rewrite, 0, 21},
};

static bool run(struct wml_pass_run *r, struct wml_err *err)
{
    if (wml_model_opset(r->model, "") < 21)
        return wml_pass_skip(r, "GroupNormalization has scales of channels from opset 21; --opset 21 raises the model's");
    for (size_t i = 0; i < WML_COUNT(rules); i++) /* the longest first: a shorter form is a part of it */
        if (!wml_rules_run(r, &rules[i], 1, err)) return false;
    return true;
}

const struct wml_pass wml_pass_group_norm_fusion = {
    .name = "group-norm-fusion", .category = "layer_norm", .run = run,
    .summary = "Turn group normalisation by InstanceNormalization into GroupNormalization (from opset 21)",
};
