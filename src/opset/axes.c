/* Axes and sizes that moved from attributes to inputs: Squeeze, Unsqueeze, Reduce*, Split, DFT. */
#include "opset/adapt.h"

#include <inttypes.h>

static void attr_to_input(struct wml_opset_step *s, struct wml_node *n, const char *attr)
{
    size_t len;
    const int64_t *v = wml_attr_ints(n, attr, &len);
    if (v && len) wml_node_set_input(n, 1, wml_opset_i64s(s, n, attr, len, v));
    wml_attr_remove(n, attr);
}

static bool input_to_attr(struct wml_opset_step *s, struct wml_node *n, const char *attr)
{
    int64_t *v;
    size_t len;
    if (!wml_node_in(n, 1)) return true;
    if (!wml_opset_ints(s, n->in[1], &v, &len)) return wml_opset_refuse(s, "its %s are computed ('%.*s'), and below opset %" PRId64
                                                                        " they are an attribute", attr, WML_ARG(n->in[1]->name), s->from);
    if (len) wml_attr_set_ints(n, attr, len, v);
    wml_node_set_input(n, 1, NULL);
    return true;
}

bool wml_opset_axes_up(struct wml_opset_step *s, struct wml_node *n)
{
    attr_to_input(s, n, "axes");
    return true;
}

bool wml_opset_axes_down(struct wml_opset_step *s, struct wml_node *n)
{
    return input_to_attr(s, n, "axes");
}

/* Without axes it reduces all, or nothing when it says so; the latter is a copy for these. */
static bool copies_when_idle(const struct wml_node *n)
{
    static const char *const op[] = {"ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum"};
    for (size_t i = 0; i < WML_COUNT(op); i++)
        if (wml_str_is(n->op_type, op[i])) return true;
    return false;
}

bool wml_opset_reduce_down(struct wml_opset_step *s, struct wml_node *n)
{
    bool idle = wml_attr_int(n, "noop_with_empty_axes", 0);
    if (!input_to_attr(s, n, "axes")) return false;
    wml_attr_remove(n, "noop_with_empty_axes");
    if (!idle || wml_attr_find(n, "axes")) return true;
    if (!copies_when_idle(n)) return wml_opset_refuse(s, "it reduces no axis, which needs opset %" PRId64, s->from);
    return wml_opset_become(s, n, wml_opset_op(s, n, "Identity", n->in[0]));
}

bool wml_opset_split_up(struct wml_opset_step *s, struct wml_node *n)
{
    attr_to_input(s, n, "split");
    return true;
}

bool wml_opset_split_down(struct wml_opset_step *s, struct wml_node *n)
{
    return input_to_attr(s, n, "split");
}

bool wml_opset_num_outputs_up(struct wml_opset_step *s, struct wml_node *n)
{
    (void)s;
    if (!wml_node_in(n, 1)) wml_attr_set_int(n, "num_outputs", (int64_t)n->n_out);
    return true;
}

/* Equal parts with a smaller last one became possible together with the attribute. */
bool wml_opset_num_outputs_down(struct wml_opset_step *s, struct wml_node *n)
{
    int64_t parts = wml_attr_int(n, "num_outputs", 0), axis = wml_attr_int(n, "axis", 0), rank = wml_value_rank(n->in[0]);
    if (!parts || wml_node_in(n, 1)) {
        wml_attr_remove(n, "num_outputs");
        return true;
    }
    if (axis < 0 && rank > 0) axis += rank;
    int64_t size = axis >= 0 && axis < rank ? wml_value_axis(n->in[0], (size_t)axis).size : -1;
    if (size < 0 || parts != (int64_t)n->n_out)
        return wml_opset_refuse(s, "the size it splits is not known, so the parts may be unequal; --input-shape fixes it");
    int64_t chunk = size / parts + (size % parts != 0), left = size, *sizes = WML_NEW_ARRAY(&s->model->arena, int64_t, (size_t)parts);
    for (int64_t i = 0; i < parts; i++) {
        sizes[i] = WML_MIN(chunk, left);
        left -= sizes[i];
    }
    if (size % parts) wml_node_set_input(n, 1, wml_opset_i64s(s, n, "split", (size_t)parts, sizes));
    wml_attr_remove(n, "num_outputs");
    return true;
}

bool wml_opset_dft_up(struct wml_opset_step *s, struct wml_node *n)
{
    wml_node_set_input(n, 2, wml_opset_i64(s, n, "axis", wml_attr_int(n, "axis", 1)));
    wml_attr_remove(n, "axis");
    return true;
}

bool wml_opset_dft_down(struct wml_opset_step *s, struct wml_node *n)
{
    int64_t *v, axis = -2, rank = wml_value_rank(n->in[0]);
    size_t len;
    if (wml_node_in(n, 2)) {
        if (!wml_opset_ints(s, n->in[2], &v, &len) || len != 1) return wml_opset_refuse(s, "its axis is computed");
        axis = v[0];
    }
    if (axis < 0 && rank < 0) return wml_opset_refuse(s, "its axis counts from the end, and the rank is not known");
    wml_attr_set_int(n, "axis", axis < 0 ? axis + rank : axis);
    wml_node_set_input(n, 2, NULL);
    return true;
}
