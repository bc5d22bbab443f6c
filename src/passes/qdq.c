/* Questions about QuantizeLinear and DequantizeLinear. */
#include "passes/qdq.h"

static bool same_constant(struct wml_pass_run *r, struct wml_value *a, struct wml_value *b)
{
    struct wml_tensor *x = wml_constant_of(a), *y = wml_constant_of(b);
    return a == b || (x && y && wml_tensor_eq(r->model, x, y));
}

bool wml_qdq_same(struct wml_pass_run *r, const struct wml_node *a, const struct wml_node *b)
{
    if (wml_attr_int(a, "axis", 1) != wml_attr_int(b, "axis", 1) ||
        wml_attr_int(a, "block_size", 0) != wml_attr_int(b, "block_size", 0))
        return false;
    for (size_t i = 1; i < 3; i++) {
        struct wml_value *x = wml_node_in(a, i), *y = wml_node_in(b, i);
        if ((!x != !y) || (x && !same_constant(r, x, y))) return false;
    }
    return true;
}

bool wml_qdq_is_exact(const struct wml_node *q)
{
    int scale = (int)wml_value_elem(q->in[1]), to = (int)wml_value_elem(q->out[0]);
    if (!wml_dtype_is_integer(to) || wml_dtype_info(to)->bits > 16) return false;
    return scale == WML_F32 || (scale != WML_UNDEFINED && wml_dtype_info(to)->bits <= 8);
}
