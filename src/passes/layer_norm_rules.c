/* Layer normalisation written out with ReduceMean (Ba, Kiros, Hinton: Layer Normalization, 2016). Scale and
 * bias must be constants of exactly the normalised dims (ones in front are dropped). */
#include "passes/layer_norm_rules.h"

enum { MAX_RANK = 8 };

/* Every ReduceMean of the match reduces the same tail, or, with any_axis, the same single axis. */
static bool axis_of(struct wml_match *m, bool any_axis, int64_t *axis)
{
    int64_t rank = wml_value_rank(wml_match_value(m, "x"));
    bool found = false;
    for (size_t i = 0; i < m->n_nodes; i++) {
        const struct wml_node *n = m->node[i];
        const int64_t *axes;
        int64_t at;
        size_t len;
        if (!wml_node_is(n, "ReduceMean")) continue;
        if (any_axis) {
            if (wml_attr_int(n, "keepdims", 1) != 1 || !wml_axes_of(m->r, n, &axes, &len) || len != 1 || rank < 1) return false;
            at = axes[0] < 0 ? axes[0] + rank : axes[0];
        } else if (!wml_reduces_tail(m->r, n, &at)) return false;
        if (found && at != *axis) return false;
        *axis = at;
        found = true;
    }
    return found;
}

/* v as a constant of exactly dims[0 .. n), or NULL. */
static struct wml_value *fitted(struct wml_match *m, struct wml_value *v, size_t n, const int64_t *dims)
{
    const struct wml_tensor *t = wml_constant_of(v);
    if (!t || t->dims.len < n || (int64_t)t->dims.len > wml_value_rank(wml_match_value(m, "x")) || wml_value_elem(v) != wml_value_elem(wml_match_value(m, "x"))) return NULL;
    size_t more = t->dims.len - n;
    for (size_t i = 0; i < more; i++)
        if (t->dims.at[i] != 1) return NULL;
    for (size_t i = 0; i < n; i++)
        if (t->dims.at[more + i] != dims[i]) return NULL;
    return wml_reshaped_constant(m->r, v, n, dims);
}

static struct wml_value *ones(struct wml_match *m, size_t n, const int64_t *dims)
{
    enum wml_dtype dtype = wml_value_elem(wml_match_value(m, "x"));
    size_t count = 1, width = wml_dtype_info(dtype)->bits / 8;
    for (size_t i = 0; i < n; i++) count *= (size_t)dims[i];
    unsigned char *bytes = wml_arena_alloc(m->r->scratch, count * width + 1);
    for (size_t i = 0; i < count; i++) wml_dtype_store(dtype, bytes, i, 1);
    return wml_match_const(m, "layer_norm_scale", wml_tensor_copy(m->r->model, dtype, n, dims, bytes, count * width, NULL));
}

static bool has(const struct wml_match *m, char what)
{
    return (m->rule->variant >> 8 & (what == 's' ? 1 : 2)) != 0;
}

static bool eps_of(struct wml_match *m, float *eps)
{
    double e;
    if (!wml_constant_beside(m->r, wml_match_value(m, "eps"), wml_match_value(m, "x"), &e) || e < 0) return false;
    *eps = (float)e;
    return true;
}

static bool by_tail(struct wml_match *m)
{
    struct wml_value *x = wml_match_value(m, "x"), *in[3] = {x, NULL, NULL};
    int64_t axis = 0, dims[MAX_RANK], rank = wml_value_rank(x);
    size_t n = SIZE_MAX;
    float eps;
    if (!wml_is_float(x) || rank < 1 || rank > MAX_RANK) return wml_match_refuse(m, "type or rank are not known");
    if (!axis_of(m, false, &axis)) return wml_match_refuse(m, "the means are not over the last axes, or do not keep them");
    if (!wml_static_dims(x, (size_t)axis, dims, &n)) return wml_match_refuse(m, "the normalised axes have no fixed size");
    if (!eps_of(m, &eps)) return wml_match_refuse(m, "epsilon is not one number");
    if (has(m, 's')) in[1] = fitted(m, wml_match_value(m, "scale"), n, dims);
    else in[1] = ones(m, n, dims);
    if (!in[1]) return wml_match_refuse(m, "the scale has not the size of the normalised axes");
    if (has(m, 'b')) in[2] = fitted(m, wml_match_value(m, "bias"), n, dims);
    if (has(m, 'b') && !in[2]) return wml_match_refuse(m, "the bias has not the size of the normalised axes");
    struct wml_node *new = wml_match_replace(m, "", "LayerNormalization", in[2] ? 3 : 2, in);
    wml_attr_set_int(new, "axis", axis - rank);
    wml_attr_set_float(new, "epsilon", eps);
    return true;
}

static bool by_axis(struct wml_match *m)
{
    struct wml_value *x = wml_match_value(m, "x"), *in[3] = {x, NULL, NULL};
    int64_t axis = 0, rank = wml_value_rank(x), perm[MAX_RANK];
    float eps;
    if (!wml_is_float(x) || rank < 1 || rank > MAX_RANK) return wml_match_refuse(m, "type or rank are not known");
    if (!axis_of(m, true, &axis)) return wml_match_refuse(m, "the means are not over one axis, or do not keep it");
    if (axis == rank - 1) return by_tail(m);
    int64_t d = wml_value_axis(x, (size_t)axis).size;
    if (d < 0) return wml_match_refuse(m, "the normalised axis has no fixed size");
    if (!eps_of(m, &eps)) return wml_match_refuse(m, "epsilon is not one number");
    for (size_t k = 0; k < 2; k++)
        if (has(m, "sb"[k]) && !wml_constant_is_along(wml_match_value(m, k ? "bias" : "scale"), x, (size_t)axis))
            return wml_match_refuse(m, "scale or bias do not vary along the axis only");
    in[1] = has(m, 's') ? wml_reshaped_constant(m->r, wml_match_value(m, "scale"), 1, &d) : ones(m, 1, &d);
    if (has(m, 'b')) in[2] = wml_reshaped_constant(m->r, wml_match_value(m, "bias"), 1, &d);
    for (int64_t i = 0; i < rank; i++) perm[i] = i;
    perm[axis] = rank - 1; /* a swap is its own inverse */
    perm[rank - 1] = axis;
    in[0] = wml_match_add(m, "Transpose", "layer_norm_in", 1, &x);
    wml_attr_set_ints(in[0]->def, "perm", (size_t)rank, perm);
    struct wml_value *y = wml_match_add(m, "LayerNormalization", "layer_norm", in[2] ? 3 : 2, in);
    wml_attr_set_int(y->def, "axis", -1);
    wml_attr_set_float(y->def, "epsilon", eps);
    wml_attr_set_ints(wml_match_replace(m, "", "Transpose", 1, &y), "perm", (size_t)rank, perm);
    return true;
}

#define POW "Add(ReduceMean(Pow(d, 2)...), $eps)"
#define SQUARE "Add(ReduceMean(Mul(d, d)...), $eps)"
#define DIV(v) "Div(d:Sub(x, ReduceMean(x...)), Sqrt(" v "))"
#define RECIPROCAL(v) "Mul(d:Sub(x, ReduceMean(x...)), Reciprocal(Sqrt(" v ")))"
#define ALL(e, form)                                                                                                   \
    {"Add(Mul(" e ", $scale), $bias)", NULL, (form) | 3 << 8, 17}, {"Mul(" e ", $scale)", NULL, (form) | 1 << 8, 17},    \
        {"Add(" e ", $bias)", NULL, (form) | 2 << 8, 17}, {e, NULL, (form), 17}
static const struct wml_rule rules[] = {
    ALL(DIV(POW), WML_LAYER_NORM_POW),
    ALL(DIV(SQUARE), WML_LAYER_NORM_MUL),
    ALL(RECIPROCAL(POW), WML_LAYER_NORM_POW),
    ALL(RECIPROCAL(SQUARE), WML_LAYER_NORM_MUL),
};

bool wml_layer_norm_run(struct wml_pass_run *r, unsigned forms, struct wml_err *err)
{
    static const int64_t extras[] = {3, 1, 2, 0}; /* the longest first: a shorter form is a part of it */
    if (wml_model_opset(r->model, "") < 17)
        return wml_pass_skip(r, "LayerNormalization exists from opset 17; --opset 17 raises the model's");
    for (size_t k = 0; k < WML_COUNT(extras); k++) {
        struct wml_rule chosen[WML_COUNT(rules)];
        size_t n = 0;
        for (size_t i = 0; i < WML_COUNT(rules); i++) {
            if (!(rules[i].variant & forms) || rules[i].variant >> 8 != extras[k]) continue;
            chosen[n] = rules[i];
            chosen[n++].rewrite = forms & WML_LAYER_NORM_ANY_AXIS ? by_axis : by_tail;
        }
        if (!wml_rules_run(r, chosen, n, err)) return false;
    }
    return true;
}
