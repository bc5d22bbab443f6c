/* RMS normalisation written out, x / sqrt(mean(x^2) + eps) * scale, over the last axes, becomes RMSNormalization
 * (Zhang, Sennrich: Root Mean Square Layer Normalization, 2019), an operator of ONNX from opset 23. Below that ORT has
 * an operator of its own under ONNX's name, which no other tool accepts: it is not used. */
#include "passes/pattern.h"

#include <math.h>

enum { MAX_RANK = 8 };

static bool rewrite(struct wml_match *m)
{
    struct wml_value *x = wml_match_value(m, "x"), *scale = wml_match_value(m, "scale"), *in[2];
    const struct wml_tensor *t = wml_constant_of(scale);
    int64_t rank = wml_value_rank(x), axis = 0, dims[MAX_RANK];
    size_t n = SIZE_MAX;
    double eps;
    if (!wml_is_float(x) || rank < 1 || rank > MAX_RANK) return wml_match_refuse(m, "type or rank are not known");
    for (size_t i = 0; i < m->n_nodes; i++)
        if (wml_node_is(m->node[i], "ReduceMean") && !wml_reduces_tail(m->r, m->node[i], &axis))
            return wml_match_refuse(m, "the mean is not over the last axes, or does not keep them");
    if (!wml_static_dims(x, (size_t)axis, dims, &n)) return wml_match_refuse(m, "the normalised axes have no fixed size");
    if (!wml_constant_beside(m->r, wml_match_value(m, "eps"), x, &eps) || eps < 0)
        return wml_match_refuse(m, "epsilon is not one number");
    if (t->dims.len != n || wml_value_elem(scale) != wml_value_elem(x))
        return wml_match_refuse(m, "the scale has not the size of the normalised axes");
    for (size_t i = 0; i < n; i++)
        if (t->dims.at[i] != dims[i]) return wml_match_refuse(m, "the scale has not the size of the normalised axes");
    in[0] = x;
    in[1] = scale;
    struct wml_node *new = wml_match_replace(m, "", "RMSNormalization", 2, in);
    wml_attr_set_int(new, "axis", axis - rank);
    wml_attr_set_float(new, "epsilon", (float)eps);
    return true;
}

#define VAR1 "Sqrt(Add(ReduceMean(Pow(x, 2)...), $eps))"
#define VAR2 "Sqrt(Add(ReduceMean(Mul(x, x)...), $eps))"
#define FORMS(v)                                                                                                       \
    {"Mul(Div(x, " v "), $scale)", rewrite, 0, 23}, {"Mul(Mul(x, Reciprocal(" v ")), $scale)", rewrite, 0, 23},          \
        {"Mul(Mul(x, Div(1, " v ")), $scale)", rewrite, 0, 23}
static const struct wml_rule rules[] = {FORMS(VAR1), FORMS(VAR2)};

static bool run(struct wml_pass_run *r, struct wml_err *err)
{
    if (wml_model_opset(r->model, "") < 23)
        return wml_pass_skip(r, "RMSNormalization exists from opset 23; --opset 23 raises the model's");
    return wml_rules_run(r, rules, WML_COUNT(rules), err);
}

const struct wml_pass wml_pass_simplified_layer_norm_fusion = {
    .name = "simplified-layer-norm-fusion", .category = "layer_norm", .pipe = "ort_graph",
    .ort_name = "SimplifiedLayerNormFusion", .level = 2, .on = true, .run = run,
    .summary = "Turn RMS normalisation written out into RMSNormalization (from opset 23)",
};
