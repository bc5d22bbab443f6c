/* Attributes and types that say float and must say half. */
#include "quant/half.h"

#include "quant/derive.h"

struct wml_type *wml_half_type(struct wml_half *h, const struct wml_type *t)
{
    struct wml_type *copy = wml_type_copy(h->model, t);
    for (struct wml_type *inner = copy; inner; inner = inner->sequence ? inner->sequence->elem : NULL) {
        if (inner->tensor) inner->tensor->elem = (int32_t)h->to;
        if (inner->sparse) inner->sparse->elem = (int32_t)h->to;
    }
    return copy;
}

static bool set_value(struct wml_half *h, struct wml_node *n, struct wml_tensor *floats, struct wml_err *err)
{
    struct wml_tensor *half = wml_quant_derive_half(h->model, floats, h->to, err);
    if (half) wml_attr_set_tensor(n, "value", half);
    return half != NULL;
}

/* `value`, `value_float` or `value_floats`. */
static bool constant(struct wml_half *h, struct wml_node *n, struct wml_err *err)
{
    struct wml_attr *a = n->attr.at[0];
    if (a->t) return set_value(h, n, a->t, err);
    const bool list = wml_attr_kind(a) == WML_ATTR_FLOATS;
    const int64_t len = (int64_t)a->floats.len;
    struct wml_tensor *t = wml_tensor_copy(h->model, WML_F32, list ? 1 : 0, &len, list ? a->floats.at : &a->f,
                                           (list ? a->floats.len : 1) * sizeof(float), err);
    if (!t || !set_value(h, n, t, err)) return false;
    return wml_attr_remove(n, list ? "value_floats" : "value_float");
}

static bool constant_of_shape(struct wml_half *h, struct wml_node *n, struct wml_err *err)
{
    static const float zero;
    static const int64_t one = 1;
    struct wml_tensor *t = wml_attr_tensor(n, "value");
    if (!t) t = wml_tensor_copy(h->model, WML_F32, 1, &one, &zero, sizeof zero, err);
    return t && set_value(h, n, t, err);
}

bool wml_half_follow(struct wml_half *h, struct wml_node *n, struct wml_err *err)
{
    struct wml_str op = n->op_type;
    const char *attr = "dtype";
    if (wml_str_is(op, "Constant")) return constant(h, n, err);
    if (wml_str_is(op, "ConstantOfShape")) return constant_of_shape(h, n, err);
    if (wml_str_is(op, "Cast")) attr = "to";
    else if (wml_str_ends(op, "Window") || wml_str_is(op, "MelWeightMatrix")) attr = "output_datatype";
    else if (wml_str_is(op, "DequantizeLinear")) attr = "output_dtype";
    wml_attr_set_int(n, attr, h->to);
    return true;
}
