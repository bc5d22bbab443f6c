/* Operators that are written out by others where they do not exist yet, after their definition in the standard. */
#include "opset/adapt.h"

#include <inttypes.h>
#include <math.h>

/* The type to compute in, which constants must have. */
static bool float_of(struct wml_opset_step *s, const struct wml_value *x, enum wml_dtype *out)
{
    *out = wml_opset_elem(x);
    return wml_dtype_is_float(*out) || wml_opset_refuse(s, "the type of '%.*s' is not known, so it cannot be written out", WML_ARG(x->name));
}

bool wml_opset_hard_swish_down(struct wml_opset_step *s, struct wml_node *n)
{
    struct wml_value *gate = wml_opset_op(s, n, "HardSigmoid", n->in[0]);
    wml_attr_set_float(gate->def, "alpha", 1.0f / 6);
    wml_attr_set_float(gate->def, "beta", 0.5f);
    return wml_opset_become(s, n, wml_opset_op(s, n, "Mul", n->in[0], gate));
}

bool wml_opset_mish_down(struct wml_opset_step *s, struct wml_node *n)
{
    struct wml_value *soft = wml_opset_op(s, n, "Softplus", n->in[0]), *gate = wml_opset_op(s, n, "Tanh", soft);
    return wml_opset_become(s, n, wml_opset_op(s, n, "Mul", n->in[0], gate));
}

bool wml_opset_swish_down(struct wml_opset_step *s, struct wml_node *n)
{
    struct wml_value *x = n->in[0], *scaled = x;
    float alpha = wml_attr_float(n, "alpha", 1);
    enum wml_dtype t;
    if (alpha != 1) {
        if (!float_of(s, x, &t)) return false;
        scaled = wml_opset_op(s, n, "Mul", x, wml_opset_scalar(s, n, "alpha", t, (double)alpha));
    }
    return wml_opset_become(s, n, wml_opset_op(s, n, "Mul", x, wml_opset_op(s, n, "Sigmoid", scaled)));
}

/* max(0, x) + min(0, a * (exp(x / a) - 1)) */
bool wml_opset_celu_down(struct wml_opset_step *s, struct wml_node *n)
{
    struct wml_value *x = n->in[0];
    double alpha = (double)wml_attr_float(n, "alpha", 1);
    struct wml_value *a = wml_opset_scalar(s, n, "alpha", WML_F32, alpha), *one = wml_opset_scalar(s, n, "one", WML_F32, 1);
    struct wml_value *zero = wml_opset_scalar(s, n, "zero", WML_F32, 0);
    struct wml_value *curve = wml_opset_op(s, n, "Sub", wml_opset_op(s, n, "Exp", wml_opset_op(s, n, "Div", x, a)), one);
    struct wml_value *low = wml_opset_op(s, n, "Min", zero, wml_opset_op(s, n, "Mul", a, curve));
    return wml_opset_become(s, n, wml_opset_op(s, n, "Add", wml_opset_op(s, n, "Relu", x), low));
}

/* What the normal distribution has below x: by the error function, or nearly so by tanh. */
bool wml_opset_gelu_down(struct wml_opset_step *s, struct wml_node *n)
{
    struct wml_value *x = n->in[0], *inner, *f;
    bool tanh_form = wml_str_is(wml_attr_str(n, "approximate", WML_STR("none")), "tanh");
    enum wml_dtype t;
    if (!float_of(s, x, &t)) return false;
    struct wml_value *half = wml_opset_scalar(s, n, "half", t, 0.5), *one = wml_opset_scalar(s, n, "one", t, 1);
    if (tanh_form) {
        struct wml_value *cube = wml_opset_op(s, n, "Pow", x, wml_opset_scalar(s, n, "three", t, 3));
        cube = wml_opset_op(s, n, "Mul", cube, wml_opset_scalar(s, n, "cubic", t, 0.044715));
        inner = wml_opset_op(s, n, "Add", x, cube);
        inner = wml_opset_op(s, n, "Mul", inner, wml_opset_scalar(s, n, "scale", t, sqrt(2 / acos(-1.0))));
        f = wml_opset_op(s, n, "Tanh", inner);
    } else {
        inner = wml_opset_op(s, n, "Div", x, wml_opset_scalar(s, n, "scale", t, sqrt(2)));
        f = wml_opset_op(s, n, "Erf", inner);
    }
    f = wml_opset_op(s, n, "Add", f, one);
    return wml_opset_become(s, n, wml_opset_op(s, n, "Mul", half, wml_opset_op(s, n, "Mul", x, f)));
}

/* NaN compares as false with both, so it is no negation. */
bool wml_opset_or_equal_down(struct wml_opset_step *s, struct wml_node *n)
{
    const char *strict = wml_node_is(n, "GreaterOrEqual") ? "Greater" : "Less";
    struct wml_value *a = n->in[0], *b = wml_node_in(n, 1);
    if (!wml_opset_has(s, n, 2)) return false;
    return wml_opset_become(s, n, wml_opset_op(s, n, "Or", wml_opset_op(s, n, strict, a, b), wml_opset_op(s, n, "Equal", a, b)));
}

bool wml_opset_cast_like_down(struct wml_opset_step *s, struct wml_node *n)
{
    enum wml_dtype to = wml_opset_elem(wml_node_in(n, 1));
    if (!wml_opset_has(s, n, 2)) return false;
    if (to == WML_UNDEFINED) return wml_opset_refuse(s, "the type of '%.*s' is not known, so it cannot become a Cast", WML_ARG(n->in[1]->name));
    return wml_opset_become(s, n, wml_opset_cast(s, n, n->in[0], to));
}

/* A draw from [0, 1) below p. */
bool wml_opset_bernoulli_down(struct wml_opset_step *s, struct wml_node *n)
{
    struct wml_value *p = n->in[0], *draw = wml_opset_op(s, n, "RandomUniformLike", p);
    enum wml_dtype in = wml_opset_elem(p), to = (enum wml_dtype)wml_attr_int(n, "dtype", in);
    if (to == WML_UNDEFINED || in == WML_UNDEFINED) return wml_opset_refuse(s, "the type of '%.*s' is not known", WML_ARG(p->name));
    wml_attr_set_int(draw->def, "dtype", in);
    if (wml_attr_find(n, "seed")) wml_attr_set_float(draw->def, "seed", wml_attr_float(n, "seed", 0));
    return wml_opset_become(s, n, wml_opset_cast(s, n, wml_opset_op(s, n, "Less", draw, p), to));
}

struct wml_value *wml_opset_count_axis(struct wml_opset_step *s, struct wml_node *n, struct wml_value *v, int64_t from_end)
{
    struct wml_value *shape = wml_opset_op(s, n, "Shape", v), *size;
    size = wml_opset_op(s, n, "Gather", shape, wml_opset_i64(s, n, "axis", -from_end));
    return wml_opset_op(s, n, "Range", wml_opset_i64(s, n, "zero", 0), size, wml_opset_i64(s, n, "one", 1));
}

/* Rows and columns counted, and compared: what lies on the wrong side of the diagonal becomes zero. */
bool wml_opset_trilu_down(struct wml_opset_step *s, struct wml_node *n)
{
    struct wml_value *x = n->in[0], *k = wml_node_in(n, 1);
    enum wml_dtype t = wml_opset_elem(x);
    bool upper = wml_attr_int(n, "upper", 1);
    int64_t one = 1;
    if (t == WML_UNDEFINED || !wml_dtype_info(t)->bits) return wml_opset_refuse(s, "the type of '%.*s' is not known, so it cannot be written out", WML_ARG(x->name));
    struct wml_value *cols = wml_opset_count_axis(s, n, x, 1), *rows = wml_opset_count_axis(s, n, x, 2);
    rows = wml_opset_op(s, n, "Unsqueeze", rows, wml_opset_i64s(s, n, "axes", 1, &one));
    if (k) rows = wml_opset_op(s, n, "Add", rows, k);
    struct wml_value *keep = wml_opset_op(s, n, upper ? "GreaterOrEqual" : "LessOrEqual", cols, rows);
    return wml_opset_become(s, n, wml_opset_op(s, n, "Where", keep, x, wml_opset_scalar(s, n, "none", t, 0)));
}

/* All integers of Erf went with opset 13. */
bool wml_opset_erf_up(struct wml_opset_step *s, struct wml_node *n)
{
    if (wml_dtype_is_integer((int)wml_opset_elem(n->in[0]))) return wml_opset_refuse(s, "it has no integers from opset %" PRId64, s->to);
    return true;
}
