/* Softmax, LogSoftmax and Hardmax: before opset 13 over everything from the axis on, as a matrix; since then along the
 * axis alone, and the default axis is the last one, not 1. */
#include "opset/adapt.h"

bool wml_opset_softmax_up(struct wml_opset_step *s, struct wml_node *n)
{
    int64_t axis = wml_attr_int(n, "axis", 1), rank = wml_value_rank(n->in[0]);
    struct wml_value *x = n->in[0];
    if (axis == -1 || (rank >= 0 && axis == rank - 1)) {
        wml_attr_set_int(n, "axis", -1);
        return true;
    }
    struct wml_value *shape = wml_opset_op(s, n, "Shape", x), *flat = wml_opset_op(s, n, "Flatten", x);
    wml_attr_set_int(flat->def, "axis", axis);
    struct wml_value *y = wml_opset_copy(s, n, flat);
    wml_attr_set_int(y->def, "axis", -1);
    return wml_opset_become(s, n, wml_opset_op(s, n, "Reshape", y, shape));
}

/* All axes after this one have size 1. */
static bool is_last_real(const struct wml_value *v, int64_t axis, int64_t rank)
{
    for (int64_t i = axis + 1; i < rank; i++)
        if (wml_value_axis(v, (size_t)i).size != 1) return false;
    return true;
}

bool wml_opset_softmax_down(struct wml_opset_step *s, struct wml_node *n)
{
    int64_t axis = wml_attr_int(n, "axis", -1), rank = wml_value_rank(n->in[0]);
    if (axis == -1 && rank < 0) {
        wml_attr_set_int(n, "axis", -1); /* the default is another one below */
        return true;
    }
    if (rank < 0) return wml_opset_refuse(s, "it works along axis %d, and the rank of its input is not known", (int)axis);
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank) return wml_opset_refuse(s, "its axis is outside of its input");
    wml_attr_set_int(n, "axis", axis);
    if (is_last_real(n->in[0], axis, rank)) return true;
    int64_t *perm = WML_NEW_ARRAY(&s->model->arena, int64_t, (size_t)rank);
    for (int64_t i = 0; i < rank; i++) perm[i] = i == axis ? rank - 1 : i == rank - 1 ? axis : i;
    struct wml_value *turned = wml_opset_op(s, n, "Transpose", n->in[0]), *y = wml_opset_copy(s, n, turned);
    wml_attr_set_int(y->def, "axis", rank - 1);
    struct wml_value *back = wml_opset_op(s, n, "Transpose", y);
    wml_attr_set_ints(turned->def, "perm", (size_t)rank, perm);
    wml_attr_set_ints(back->def, "perm", (size_t)rank, perm);
    return wml_opset_become(s, n, back);
}
