/* Normalisations: BatchNormalization's training outputs, and the others written out where they do not exist yet. */
#include "opset/adapt.h"

#include <inttypes.h>

static bool read_outputs(const struct wml_node *n)
{
    for (size_t i = 1; i < n->n_out; i++)
        if (n->out[i] && !wml_value_is_unused(n->out[i])) return true;
    return false;
}

static void drop_outputs(struct wml_node *n)
{
    for (size_t i = n->n_out; i-- > 1;) wml_node_drop_output(n, i);
}

bool wml_opset_batch_up(struct wml_opset_step *s, struct wml_node *n)
{
    if (read_outputs(n)) return wml_opset_refuse(s, "it trains: its outputs beside the first are read");
    drop_outputs(n);
    return true;
}

static bool same_types(struct wml_opset_step *s, const struct wml_node *n, size_t from, size_t to)
{
    enum wml_dtype x = wml_opset_elem(n->in[0]);
    for (size_t i = from; i < to; i++) {
        enum wml_dtype t = wml_opset_elem(wml_node_in(n, i));
        if (t == WML_UNDEFINED || x == WML_UNDEFINED) s->n_unsure++;
        else if (t != x)
            return wml_opset_refuse(s, "its input %zu is %s and its data %s, which needs opset %" PRId64, i, wml_dtype_name(t), wml_dtype_name(x), s->from);
    }
    return true;
}

bool wml_opset_batch_down(struct wml_opset_step *s, struct wml_node *n)
{
    if (wml_attr_int(n, "training_mode", 0)) return wml_opset_refuse(s, "it trains (training_mode = 1)");
    wml_attr_remove(n, "training_mode");
    return same_types(s, n, 3, 5);
}

bool wml_opset_batch_types_down(struct wml_opset_step *s, struct wml_node *n)
{
    return same_types(s, n, 1, 3);
}

struct norm { /* what is normalised, in the type it is computed in */
    struct wml_value *x, *axes;
    enum wml_dtype own, inner;
    const int64_t *axis;
    size_t n_axes;
};

static bool open_norm(struct wml_opset_step *s, struct wml_node *n, struct norm *m)
{
    if (!wml_opset_has(s, n, 2)) return false;
    int64_t axis = wml_attr_int(n, "axis", -1), rank = wml_value_rank(n->in[0]);
    m->own = wml_opset_elem(n->in[0]);
    if (!wml_dtype_is_float(m->own)) return wml_opset_refuse(s, "the type of '%.*s' is not known, so it cannot be written out", WML_ARG(n->in[0]->name));
    if (axis >= 0 && rank < 0) return wml_opset_refuse(s, "the rank of '%.*s' is not known, so it cannot be written out", WML_ARG(n->in[0]->name));
    if (axis < -64 || (axis >= 0 && axis >= rank)) return wml_opset_refuse(s, "its axis is outside of its input");
    /* Counted from the end, so that they need no rank. */
    m->n_axes = (size_t)(axis < 0 ? -axis : rank - axis);
    int64_t *v = WML_NEW_ARRAY(&s->model->arena, int64_t, m->n_axes + 1);
    for (size_t i = 0; i < m->n_axes; i++) v[i] = (int64_t)i - (int64_t)m->n_axes;
    m->axis = v;
    m->inner = wml_dtype_info(m->own)->bits < 32 ? (enum wml_dtype)wml_attr_int(n, "stash_type", WML_F32) : m->own;
    m->x = m->inner == m->own ? n->in[0] : wml_opset_cast(s, n, n->in[0], m->inner);
    return true;
}

static struct wml_value *mean(struct wml_opset_step *s, struct wml_node *n, const struct norm *m, struct wml_value *v)
{
    struct wml_value *axes = s->to >= 18 ? wml_opset_i64s(s, n, "axes", m->n_axes, m->axis) : NULL;
    struct wml_value *out = wml_opset_op(s, n, "ReduceMean", v, axes);
    if (!axes) wml_attr_set_ints(out->def, "axes", m->n_axes, m->axis);
    return out;
}

/* sqrt(mean(v * v) + epsilon) */
static struct wml_value *spread(struct wml_opset_step *s, struct wml_node *n, const struct norm *m, struct wml_value *v)
{
    double eps = (double)wml_attr_float(n, "epsilon", 1e-5f);
    struct wml_value *square = mean(s, n, m, wml_opset_op(s, n, "Mul", v, v));
    return wml_opset_op(s, n, "Sqrt", wml_opset_op(s, n, "Add", square, wml_opset_scalar(s, n, "epsilon", m->inner, eps)));
}

static bool close_norm(struct wml_opset_step *s, struct wml_node *n, const struct norm *m, struct wml_value *v)
{
    if (m->inner != m->own) v = wml_opset_cast(s, n, v, m->own);
    v = wml_opset_op(s, n, "Mul", v, n->in[1]);
    if (wml_node_in(n, 2)) v = wml_opset_op(s, n, "Add", v, n->in[2]);
    return wml_opset_become(s, n, v);
}

bool wml_opset_layer_norm_down(struct wml_opset_step *s, struct wml_node *n)
{
    struct norm m;
    if (!open_norm(s, n, &m)) return false;
    struct wml_value *middle = mean(s, n, &m, m.x), *off = wml_opset_op(s, n, "Sub", m.x, middle), *dev = spread(s, n, &m, off);
    struct wml_value *norm = wml_opset_op(s, n, "Div", off, dev);
    if (wml_node_out(n, 1)) wml_opset_give(n, 1, middle);
    if (wml_node_out(n, 2)) wml_opset_give(n, 2, wml_opset_op(s, n, "Reciprocal", dev));
    return close_norm(s, n, &m, norm);
}

bool wml_opset_rms_norm_down(struct wml_opset_step *s, struct wml_node *n)
{
    struct norm m;
    if (!open_norm(s, n, &m)) return false;
    return close_norm(s, n, &m, wml_opset_op(s, n, "Div", m.x, spread(s, n, &m, m.x)));
}

/* The groups as channels of an InstanceNormalization, which exists since the beginning. */
static struct wml_value *by_groups(struct wml_opset_step *s, struct wml_node *n, struct wml_value *scale, struct wml_value *bias)
{
    int64_t shape[] = {0, wml_attr_int(n, "num_groups", 1), -1};
    struct wml_value *x = wml_opset_op(s, n, "Reshape", n->in[0], wml_opset_i64s(s, n, "groups", 3, shape));
    struct wml_value *y = wml_opset_op(s, n, "InstanceNormalization", x, scale, bias);
    wml_attr_set_float(y->def, "epsilon", wml_attr_float(n, "epsilon", 1e-5f));
    return wml_opset_op(s, n, "Reshape", y, wml_opset_op(s, n, "Shape", n->in[0]));
}

bool wml_opset_group_norm_plain_down(struct wml_opset_step *s, struct wml_node *n)
{
    if (!wml_opset_has(s, n, 3)) return false;
    return wml_opset_become(s, n, by_groups(s, n, n->in[1], n->in[2]));
}

static struct wml_value *repeated(struct wml_opset_step *s, struct wml_node *n, enum wml_dtype t, double x)
{
    size_t groups = (size_t)wml_attr_int(n, "num_groups", 1), bytes = groups * wml_dtype_info(t)->bits / 8;
    unsigned char *v = WML_NEW_ARRAY(&s->model->arena, unsigned char, bytes + 16);
    int64_t dim = (int64_t)groups;
    for (size_t i = 0; i < groups; i++) wml_dtype_store(t, v, i, x);
    return wml_opset_const(s, n, "plain", wml_tensor_copy(s->model, t, 1, &dim, v, bytes, NULL));
}

/* The version between 18 and 20 scales groups instead of channels and is withdrawn, so it is not used. */
bool wml_opset_group_norm_down(struct wml_opset_step *s, struct wml_node *n)
{
    enum wml_dtype t = wml_opset_elem(n->in[0]);
    int64_t rank = wml_value_rank(n->in[0]), groups = wml_attr_int(n, "num_groups", 0), axes[62];
    if (!wml_opset_has(s, n, 3)) return false;
    if (!wml_dtype_is_float(t) || rank < 2 || rank > 64) return wml_opset_refuse(s, "type or rank of '%.*s' are not known, so it cannot be written out", WML_ARG(n->in[0]->name));
    if (groups < 1 || groups > 1 << 20) return wml_opset_refuse(s, "num_groups is out of range");
    for (int64_t i = 0; i < rank - 2; i++) axes[i] = i + 1;
    struct wml_value *y = by_groups(s, n, repeated(s, n, t, 1), repeated(s, n, t, 0)), *scale = n->in[1], *bias = n->in[2];
    if (rank > 2) {
        struct wml_value *at = wml_opset_i64s(s, n, "axes", (size_t)rank - 2, axes);
        scale = wml_opset_op(s, n, "Unsqueeze", scale, at);
        bias = wml_opset_op(s, n, "Unsqueeze", bias, at);
    }
    y = wml_opset_op(s, n, "Mul", y, scale);
    return wml_opset_become(s, n, wml_opset_op(s, n, "Add", y, bias));
}

static struct wml_value *per_channel(struct wml_opset_step *s, struct wml_node *n, struct wml_value *v, int64_t groups, int64_t each)
{
    int64_t one = 1, wide[] = {groups, each}, flat = -1;
    v = wml_opset_op(s, n, "Unsqueeze", v, wml_opset_i64s(s, n, "axes", 1, &one));
    v = wml_opset_op(s, n, "Expand", v, wml_opset_i64s(s, n, "wide", 2, wide));
    return wml_opset_op(s, n, "Reshape", v, wml_opset_i64s(s, n, "flat", 1, &flat));
}

bool wml_opset_group_norm_up(struct wml_opset_step *s, struct wml_node *n)
{
    int64_t groups = wml_attr_int(n, "num_groups", 0), channels = wml_value_rank(n->in[0]) < 2 ? -1 : wml_value_axis(n->in[0], 1).size;
    if (!wml_opset_has(s, n, 3)) return false;
    if (groups < 1 || channels < groups) return wml_opset_refuse(s, "the number of channels of '%.*s' is not known", WML_ARG(n->in[0]->name));
    for (size_t i = 1; i < 3; i++) wml_node_set_input(n, i, per_channel(s, n, n->in[i], groups, channels / groups));
    return true;
}
