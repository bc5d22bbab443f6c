/* QuantizeLinear and DequantizeLinear: an axis since opset 13, types that attributes tell since 21 and 23. */
#include "opset/adapt.h"

#include <inttypes.h>

static bool is_one_number(const struct wml_value *v)
{
    int64_t n;
    return v && (wml_value_rank(v) == 0 || (wml_value_count(v, &n) && n == 1));
}

bool wml_opset_scale_axis_down(struct wml_opset_step *s, struct wml_node *n)
{
    if (!is_one_number(wml_node_in(n, 1))) return wml_opset_refuse(s, "it has a scale per channel, which needs opset %" PRId64, s->from);
    wml_attr_remove(n, "axis");
    return true;
}

/* Scales had the type of the data, and before that were float. */
bool wml_opset_quantize_scale_down(struct wml_opset_step *s, struct wml_node *n)
{
    enum wml_dtype x = wml_opset_elem(n->in[0]), scale = wml_opset_elem(wml_node_in(n, 1));
    enum wml_dtype want = s->to < 19 ? WML_F32 : x;
    if (x == WML_UNDEFINED || scale == WML_UNDEFINED) s->n_unsure++;
    else if (scale != want) return wml_opset_refuse(s, "its scale is %s, and below opset %" PRId64 " it must be %s", wml_dtype_name(scale), s->from, wml_dtype_name(want));
    return true;
}

static struct wml_value *zeros_like(struct wml_opset_step *s, struct wml_node *n, const struct wml_value *scale, enum wml_dtype t)
{
    int64_t count, dim, rank = wml_value_rank(scale);
    if (rank < 0 || rank > 1 || !wml_value_count(scale, &count) || count > 1 << 20) return NULL;
    unsigned char *v = WML_NEW_ARRAY(&s->model->arena, unsigned char, (size_t)count + 1);
    dim = count;
    return wml_opset_const(s, n, "zero_point", wml_tensor_copy(s->model, t, (size_t)rank, &dim, v, (size_t)count, NULL));
}

/* The zero point tells the type; without one it is uint8. */
bool wml_opset_quantize_type_down(struct wml_opset_step *s, struct wml_node *n)
{
    enum wml_dtype t = (enum wml_dtype)wml_attr_int(n, "output_dtype", WML_UNDEFINED);
    if (t != WML_UNDEFINED && t != WML_U8 && !wml_node_in(n, 2)) {
        struct wml_value *zero = t == WML_I8 ? zeros_like(s, n, wml_node_in(n, 1), t) : NULL;
        if (!zero) return wml_opset_refuse(s, "it makes %s without a zero point, which needs opset %" PRId64, wml_dtype_name(t), s->from);
        wml_node_set_input(n, 2, zero);
    }
    wml_attr_remove(n, "output_dtype");
    return true;
}

bool wml_opset_dequantize_type_down(struct wml_opset_step *s, struct wml_node *n)
{
    enum wml_dtype t = (enum wml_dtype)wml_attr_int(n, "output_dtype", WML_UNDEFINED), scale = wml_opset_elem(wml_node_in(n, 1));
    wml_attr_remove(n, "output_dtype");
    if (t == WML_UNDEFINED || t == scale) return true;
    if (scale == WML_UNDEFINED) return wml_opset_refuse(s, "the type of its scale is not known");
    return wml_opset_become(s, n, wml_opset_cast(s, n, wml_opset_copy(s, n, n->in[0]), t));
}
