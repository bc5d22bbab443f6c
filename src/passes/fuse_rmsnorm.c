/* RMS normalisation over the last axis as LpNormalization and Mul, for targets that have the former:
 * x / sqrt(mean(x^2) + eps) * w = x / |x| * (w * sqrt(N)). Epsilon is dropped, so answers change for vectors
 * near zero; a row of zeros stays zero in ORT. */
#include "passes/pattern.h"

#include <math.h>

/* w * sqrt(N); [1] when all of w is one. */
static struct wml_value *adjusted(struct wml_match *m, struct wml_value *scale, int64_t n)
{
    struct wml_tensor *t = wml_constant_of(scale);
    double *w, root = sqrt((double)n);
    size_t count, width = wml_dtype_info(t->dtype)->bits / 8;
    if (!wml_tensor_doubles(m->r->model, t, &w, &count, NULL)) return NULL;
    bool ones = true;
    for (size_t i = 0; i < count; i++) ones = ones && fabs(w[i] - 1) <= 1e-6;
    int64_t len = ones ? 1 : (int64_t)count;
    unsigned char *bytes = wml_arena_alloc(m->r->scratch, (size_t)len * width);
    for (int64_t i = 0; i < len; i++) wml_dtype_store(t->dtype, bytes, (size_t)i, (ones ? 1 : w[i]) * root);
    struct wml_str name = wml_arena_fmt(m->r->scratch, "%.*s_l2norm_adjusted", WML_ARG(scale->name));
    return wml_match_const(m, name.ptr, wml_tensor_copy(m->r->model, (enum wml_dtype)t->dtype, 1, &len, bytes,
                                                        (size_t)len * width, NULL));
}

static bool rewrite(struct wml_match *m)
{
    struct wml_value *x = wml_match_value(m, "x"), *scale = wml_match_value(m, "scale"), *in[2];
    const struct wml_tensor *t = wml_constant_of(scale);
    int64_t rank = wml_value_rank(x), axis = 0;
    double eps;
    if (!wml_is_float(x) || rank < 1) return wml_match_refuse(m, "type or rank are not known");
    for (size_t i = 0; i < m->n_nodes; i++)
        if (wml_node_is(m->node[i], "ReduceMean") &&
            (!wml_reduces_tail(m->r, m->node[i], &axis) || (axis != rank - 1 && axis != -1)))
            return wml_match_refuse(m, "the mean is not over the last axis, or does not keep it");
    if (!wml_constant_beside(m->r, wml_match_value(m, "eps"), x, &eps) || eps < 0 || eps > 1e-3)
        return wml_match_refuse(m, "epsilon is not one small number");
    if (t->dims.len != 1 || t->dims.at[0] != wml_value_axis(x, (size_t)rank - 1).size || wml_value_elem(scale) != wml_value_elem(x))
        return wml_match_refuse(m, "the scale has not the size of the last axis");
    in[0] = wml_match_add(m, "LpNormalization", "l2norm", 1, &x);
    wml_attr_set_int(in[0]->def, "p", 2);
    wml_attr_set_int(in[0]->def, "axis", -1);
    in[1] = adjusted(m, scale, t->dims.at[0]);
    if (!in[1]) return wml_match_refuse(m, "the scale cannot be read");
    wml_match_replace(m, "", "Mul", 2, in);
    return true;
}

#define VAR1 "Sqrt(Add(ReduceMean(Pow(x, 2)...), $eps))"
#define VAR2 "Sqrt(Add(ReduceMean(Mul(x, x)...), $eps))"
#define FORMS(v)                                                                                                       \
    {"Mul(Div(x, " v "), $scale)", rewrite, 0, 1}, {"Mul(Mul(x, Reciprocal(" v ")), $scale)", rewrite, 0, 1},            \
        {"Mul(Mul(x, Div(1, " v ")), $scale)", rewrite, 0, 1}
static const struct wml_rule rules[] = {FORMS(VAR1), FORMS(VAR2)};

static bool run(struct wml_pass_run *r, struct wml_err *err)
{
    return wml_rules_run(r, rules, WML_COUNT(rules), err);
}

const struct wml_pass wml_pass_fuse_rmsnorm = {
    .name = "fuse-rmsnorm", .category = "layer_norm", .pipe = "ort_fusion", .lossy = true, .run = run,
    .summary = "Turn RMS normalisation into LpNormalization and Mul; drops epsilon",
};
