/* RMS normalisation written out with Pow or Mul, ReduceMean, Sqrt and a quotient in any of its spellings (Zhang,
 * Sennrich: Root Mean Square Layer Normalization, 2019), over the last axes. */
#include "passes/rms_norm_rules.h"

enum { MAX_RANK = 8 };

static bool casts_to(const struct wml_node *n, enum wml_dtype to)
{
    return n && wml_node_is(n, "Cast") && wml_attr_int(n, "to", 0) == (int64_t)to;
}

bool wml_rms_norm_of(struct wml_match *m, struct wml_rms_norm *out)
{
    struct wml_value *x = wml_match_value(m, "x"), *scale = wml_match_value(m, "scale"), *computed = x;
    const struct wml_tensor *t = wml_constant_of(scale);
    int64_t rank = wml_value_rank(x), axis = 0, dims[MAX_RANK];
    size_t n = SIZE_MAX;
    double eps;
    if (!wml_is_float(x) || rank < 1 || rank > MAX_RANK) return wml_match_refuse(m, "type or rank are not known");
    if (m->rule->variant == WML_RMS_NORM_WIDENED) {
        computed = wml_match_value(m, "wide");
        if (!casts_to(computed->def, WML_F32) || !casts_to(wml_match_node(m, "narrow"), wml_value_elem(x)))
            return wml_match_refuse(m, "not widened to float and back");
    }
    for (size_t i = 0; i < m->n_nodes; i++)
        if (wml_node_is(m->node[i], "ReduceMean") && !wml_reduces_tail(m->r, m->node[i], &axis))
            return wml_match_refuse(m, "the mean is not over the last axes, or does not keep them");
    if (axis < 0) axis += rank;
    if (!wml_static_dims(x, (size_t)axis, dims, &n)) return wml_match_refuse(m, "the normalised axes have no fixed size");
    if (!wml_constant_beside(m->r, wml_match_value(m, "eps"), computed, &eps) || eps < 0)
        return wml_match_refuse(m, "epsilon is not one number");
    if (t->dims.len != n || wml_value_elem(scale) != wml_value_elem(x))
        return wml_match_refuse(m, "the scale has not the size of the normalised axes");
    for (size_t i = 0; i < n; i++)
        if (t->dims.at[i] != dims[i]) return wml_match_refuse(m, "the scale has not the size of the normalised axes");
    *out = (struct wml_rms_norm){x, scale, rank, axis, (float)eps};
    return true;
}

#define ROOT(x, square) "Sqrt(Add(ReduceMean(" square "...), $eps))"
#define POW(x) "Pow(" x ", 2)"
#define SQUARE(x) "Mul(" x ", " x ")"
#define PLAIN(form) {"Mul(" form ", $scale)", NULL, WML_RMS_NORM_PLAIN, 0}
#define WIDENED(form) {"Mul(narrow:Cast(" form "), $scale)", NULL, WML_RMS_NORM_WIDENED, 0}
/* The first x of a form carries its definition, for the widened one. */
#define FORMS(KIND, first, x, square)                                                                                  \
    KIND("Div(" first ", " ROOT(x, square) ")"), KIND("Mul(" first ", Reciprocal(" ROOT(x, square) "))"),              \
        KIND("Mul(" first ", Div(1, " ROOT(x, square) "))")
static const struct wml_rule rules[] = {
    FORMS(PLAIN, "x", "x", POW("x")),
    FORMS(PLAIN, "x", "x", SQUARE("x")),
    FORMS(WIDENED, "wide:Cast(x)", "wide", POW("wide")),
    FORMS(WIDENED, "wide:Cast(x)", "wide", SQUARE("wide")),
};

bool wml_rms_norm_run(struct wml_pass_run *r, bool widened, bool (*f)(struct wml_match *m), struct wml_err *err)
{
    struct wml_rule chosen[WML_COUNT(rules)];
    size_t n = 0;
    for (size_t i = 0; i < WML_COUNT(rules); i++) {
        if (rules[i].variant == WML_RMS_NORM_WIDENED && !widened) continue;
        chosen[n] = rules[i];
        chosen[n++].rewrite = f;
    }
    return wml_rules_run(r, chosen, n, err);
}
