/* Reshape, Shape, Constant; and pooling windows that start behind the data. */
#include "opset/adapt.h"

#include <inttypes.h>

bool wml_opset_reshape_down(struct wml_opset_step *s, struct wml_node *n)
{
    int64_t *v;
    size_t len;
    if (wml_attr_int(n, "allowzero", 0)) {
        if (!wml_opset_ints(s, wml_node_in(n, 1), &v, &len)) return wml_opset_refuse(s, "its shape is computed and may hold sizes of 0 (allowzero = 1)");
        for (size_t i = 0; i < len; i++)
            if (v[i] == 0) return wml_opset_refuse(s, "its shape holds a size of 0 (allowzero = 1)");
    }
    wml_attr_remove(n, "allowzero");
    return true;
}

bool wml_opset_shape_down(struct wml_opset_step *s, struct wml_node *n)
{
    int64_t start = wml_attr_int(n, "start", 0), end = wml_attr_int(n, "end", INT64_MAX);
    wml_attr_remove(n, "start");
    wml_attr_remove(n, "end");
    if (start == 0 && end == INT64_MAX) return true;
    struct wml_value *all = wml_opset_op(s, n, "Shape", n->in[0]), *from = wml_opset_i64s(s, n, "start", 1, &start);
    return wml_opset_become(s, n, wml_opset_op(s, n, "Slice", all, from, wml_opset_i64s(s, n, "end", 1, &end)));
}

/* Numbers and texts as attributes of their own. */
static struct wml_tensor *constant_tensor(struct wml_model *m, const struct wml_attr *a)
{
    int64_t dim = (int64_t)a->floats.len;
    struct wml_tensor *t;
    switch (wml_attr_kind(a)) {
    case WML_ATTR_FLOAT: return wml_tensor_f32(m, a->f);
    case WML_ATTR_INT: return wml_tensor_copy(m, WML_I64, 0, NULL, &a->i, sizeof a->i, NULL);
    case WML_ATTR_FLOATS: return wml_tensor_copy(m, WML_F32, 1, &dim, dim ? (const void *)a->floats.at : "", a->floats.len * sizeof *a->floats.at, NULL);
    case WML_ATTR_INTS: return wml_tensor_i64s(m, a->ints.len, a->ints.at);
    case WML_ATTR_STRINGS: return wml_tensor_strings(m, a->strings.len, a->strings.at);
    case WML_ATTR_STRING:
        t = wml_tensor_strings(m, 1, &a->s);
        t->dims.len = 0;
        return t;
    default: return NULL;
    }
}

bool wml_opset_constant_down(struct wml_opset_step *s, struct wml_node *n)
{
    static const char *const form[] = {"value_float", "value_floats", "value_int", "value_ints", "value_string", "value_strings"};
    for (size_t i = 0; i < WML_COUNT(form); i++) {
        const struct wml_attr *a = wml_attr_find(n, form[i]);
        struct wml_tensor *t = a ? constant_tensor(s->model, a) : NULL;
        if (!a) continue;
        if (!t) return wml_opset_refuse(s, "its %s has another type than its name says", form[i]);
        wml_attr_remove(n, form[i]);
        wml_attr_set_tensor(n, "value", t);
    }
    return true;
}

static bool is_modest(int64_t x)
{
    return x >= 0 && x < INT64_C(1) << 30;
}

/* Whether no window along a spatial axis can start in the padding behind the data. */
static bool starts_inside(const struct wml_node *n, size_t axis, int64_t kernel)
{
    size_t len;
    const int64_t *v = wml_attr_ints(n, "strides", &len), *pads;
    int64_t stride = axis < len ? v[axis] : 1, step;
    v = wml_attr_ints(n, "dilations", &len);
    step = axis < len ? v[axis] : 1;
    pads = wml_attr_ints(n, "pads", &len);
    int64_t before = len > axis ? pads[axis] : 0, after = len > axis + len / 2 ? pads[axis + len / 2] : 0;
    if (!is_modest(kernel) || !is_modest(stride) || !is_modest(step) || !is_modest(before) || !is_modest(after)) return false;
    int64_t reach = (kernel - 1) * step + 1;
    if (after + stride <= reach) return true;
    int64_t size = wml_value_rank(n->in[0]) > (int64_t)axis + 2 ? wml_value_axis(n->in[0], axis + 2).size : -1;
    if (!is_modest(size) || stride < 1) return false;
    int64_t last = (size + before + after - reach + stride - 1) / stride;
    return last * stride < size + before;
}

/* Since opset 22 such windows do not count; before, the standard was silent. */
bool wml_opset_pool_windows(struct wml_opset_step *s, struct wml_node *n)
{
    size_t len;
    const int64_t *kernel = wml_attr_ints(n, "kernel_shape", &len);
    if (!wml_attr_int(n, "ceil_mode", 0)) return true;
    for (size_t i = 0; i < len; i++)
        if (!starts_inside(n, i, kernel[i]))
            return wml_opset_refuse(s, "windows may start in the padding (ceil_mode = 1), which opset 22 counts differently; --input-shape may settle it");
    return true;
}
