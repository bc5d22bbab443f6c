/* Inputs that were attributes, became optional, or got companions: Dropout, Pad, Resize. And words that changed. */
#include "opset/adapt.h"

#include <inttypes.h>

/* What the mask holds when nothing is dropped was left open before opset 12. */
static bool masked(struct wml_opset_step *s, const struct wml_node *n)
{
    const struct wml_value *mask = wml_node_out(n, 1);
    if (!mask || wml_value_is_unused(mask)) return false;
    wml_opset_refuse(s, "its mask is read, which means another thing on each side of opset 12");
    return true;
}

bool wml_opset_dropout_up(struct wml_opset_step *s, struct wml_node *n)
{
    if (masked(s, n)) return false;
    if (wml_attr_find(n, "ratio")) wml_node_set_input(n, 1, wml_opset_scalar(s, n, "ratio", WML_F32, (double)wml_attr_float(n, "ratio", 0.5f)));
    wml_attr_remove(n, "ratio");
    return true;
}

bool wml_opset_dropout_down(struct wml_opset_step *s, struct wml_node *n)
{
    struct wml_value *mode = wml_node_in(n, 2);
    double trains = 0, ratio;
    if (masked(s, n)) return false;
    if (mode && (!wml_opset_number(s, mode, &trains) || trains != 0)) return wml_opset_refuse(s, "it trains, or may do so ('%.*s')", WML_ARG(mode->name));
    if (wml_opset_number(s, wml_node_in(n, 1), &ratio)) wml_attr_set_float(n, "ratio", (float)ratio);
    wml_node_set_input(n, 2, NULL);
    wml_node_set_input(n, 1, NULL);
    wml_attr_remove(n, "seed");
    return true;
}

/* The axes of an attribute or a list, as numbers from 0. */
static bool positive(int64_t *axis, size_t n, int64_t rank)
{
    for (size_t i = 0; i < n; i++) {
        if (axis[i] < 0) axis[i] += rank;
        if (axis[i] < 0 || axis[i] >= rank) return false;
    }
    return true;
}

bool wml_opset_pad_down(struct wml_opset_step *s, struct wml_node *n)
{
    int64_t *axes, *some, rank = wml_value_rank(n->in[0]);
    size_t n_axes, n_some;
    if (!wml_node_in(n, 3)) return true;
    if (rank < 0) return wml_opset_refuse(s, "it pads some axes, and the rank of '%.*s' is not known", WML_ARG(n->in[0]->name));
    if (!wml_opset_ints(s, n->in[3], &axes, &n_axes) || !wml_opset_ints(s, wml_node_in(n, 1), &some, &n_some))
        return wml_opset_refuse(s, "its axes or pads are computed, and below opset %" PRId64 " it has no axes", s->from);
    int64_t *own = WML_NEW_ARRAY(&s->model->arena, int64_t, n_axes + 1), *all = WML_NEW_ARRAY(&s->model->arena, int64_t, 2 * (size_t)rank + 1);
    if (n_axes) memcpy(own, axes, n_axes * sizeof *own);
    if (n_some != 2 * n_axes || !positive(own, n_axes, rank)) return wml_opset_refuse(s, "its pads do not fit its axes");
    for (size_t i = 0; i < n_axes; i++) {
        all[own[i]] = some[i];
        all[own[i] + rank] = some[n_axes + i];
    }
    wml_node_set_input(n, 1, wml_opset_i64s(s, n, "pads", 2 * (size_t)rank, all));
    wml_node_set_input(n, 3, NULL);
    return true;
}

/* Inputs that had to be there, and were empty where they said nothing. */
bool wml_opset_resize_up(struct wml_opset_step *s, struct wml_node *n)
{
    (void)s;
    if (wml_opset_is_empty(wml_node_in(n, 1))) wml_node_set_input(n, 1, NULL);
    if (wml_node_in(n, 3) && wml_opset_is_empty(wml_node_in(n, 2))) wml_node_set_input(n, 2, NULL);
    return true;
}

bool wml_opset_resize_roi_down(struct wml_opset_step *s, struct wml_node *n)
{
    static const char *const name[] = {"", "roi", "scales"};
    int64_t none = 0;
    for (size_t i = 1; i < 3; i++)
        if (!wml_node_in(n, i))
            wml_node_set_input(n, i, wml_opset_const(s, n, name[i], wml_tensor_copy(s->model, WML_F32, 1, &none, "", 0, NULL)));
    return true;
}

static bool all_scales(struct wml_opset_step *s, struct wml_node *n, const int64_t *axis, size_t n_axes, size_t rank)
{
    struct wml_tensor *t = wml_value_tensor(wml_node_in(n, 2));
    double *some;
    size_t len;
    if (!t || !wml_tensor_doubles(s->model, t, &some, &len, NULL) || len != n_axes)
        return wml_opset_refuse(s, "it scales some axes by computed numbers, and below opset %" PRId64 " it has no axes", s->from);
    float *all = WML_NEW_ARRAY(&s->model->arena, float, rank);
    int64_t dim = (int64_t)rank;
    for (size_t i = 0; i < rank; i++) all[i] = 1;
    for (size_t i = 0; i < n_axes; i++) all[axis[i]] = (float)some[i];
    wml_node_set_input(n, 2, wml_opset_const(s, n, "scales", wml_tensor_copy(s->model, WML_F32, 1, &dim, all, rank * sizeof *all, NULL)));
    return true;
}

static bool all_sizes(struct wml_opset_step *s, struct wml_node *n, const int64_t *axis, size_t n_axes, size_t rank)
{
    int64_t *some, *all = WML_NEW_ARRAY(&s->model->arena, int64_t, rank);
    size_t len;
    if (!wml_opset_ints(s, n->in[3], &some, &len) || len != n_axes)
        return wml_opset_refuse(s, "it sizes some axes by computed numbers, and below opset %" PRId64 " it has no axes", s->from);
    for (size_t i = 0; i < rank; i++) all[i] = wml_value_axis(n->in[0], i).size;
    for (size_t i = 0; i < n_axes; i++) all[axis[i]] = some[i];
    for (size_t i = 0; i < rank; i++)
        if (all[i] < 0) return wml_opset_refuse(s, "it sizes some axes, and the other sizes of '%.*s' are not known", WML_ARG(n->in[0]->name));
    wml_node_set_input(n, 3, wml_opset_i64s(s, n, "sizes", rank, all));
    return true;
}

bool wml_opset_resize_axes_down(struct wml_opset_step *s, struct wml_node *n)
{
    int64_t rank = wml_value_rank(n->in[0]);
    size_t n_axes;
    const int64_t *axes = wml_attr_ints(n, "axes", &n_axes);
    bool sized = wml_node_in(n, 3) != NULL;
    if (sized && !wml_str_is(wml_attr_str(n, "keep_aspect_ratio_policy", WML_STR("stretch")), "stretch"))
        return wml_opset_refuse(s, "it keeps the aspect ratio, which needs opset %" PRId64, s->from);
    wml_attr_remove(n, "keep_aspect_ratio_policy");
    if (!axes || !n_axes) return true;
    int64_t *own = WML_NEW_ARRAY(&s->model->arena, int64_t, n_axes);
    memcpy(own, axes, n_axes * sizeof *own);
    if (rank < 1 || !positive(own, n_axes, rank)) return wml_opset_refuse(s, "it has axes, and the rank of '%.*s' is not known", WML_ARG(n->in[0]->name));
    if (wml_node_in(n, 1) && !wml_opset_is_empty(n->in[1])) return wml_opset_refuse(s, "it crops along some axes");
    wml_attr_remove(n, "axes");
    return sized ? all_sizes(s, n, own, n_axes, (size_t)rank) : all_scales(s, n, own, n_axes, (size_t)rank);
}

/* Inputs of Pow had one type; exponents are numbers either way. */
bool wml_opset_pow_down(struct wml_opset_step *s, struct wml_node *n)
{
    enum wml_dtype base = wml_opset_elem(n->in[0]), exponent = wml_opset_elem(wml_node_in(n, 1));
    if (base == WML_UNDEFINED || exponent == WML_UNDEFINED) s->n_unsure++;
    else if (base != exponent) wml_node_set_input(n, 1, wml_opset_cast(s, n, n->in[1], base));
    return true;
}

static bool swap_word(struct wml_node *n, const char *attr, const char *from, const char *to)
{
    if (!wml_str_is(wml_attr_str(n, attr, WML_STR("")), from)) return false;
    wml_attr_set_str(n, attr, wml_str(to));
    return true;
}

bool wml_opset_grid_up(struct wml_opset_step *s, struct wml_node *n)
{
    (void)s;
    if (!swap_word(n, "mode", "bilinear", "linear")) swap_word(n, "mode", "bicubic", "cubic");
    return true;
}

bool wml_opset_grid_down(struct wml_opset_step *s, struct wml_node *n)
{
    if (wml_value_rank(n->in[0]) != 4) return wml_opset_refuse(s, "'%.*s' is not known to be of rank 4; volumes need opset %" PRId64, WML_ARG(n->in[0]->name), s->from);
    if (!swap_word(n, "mode", "linear", "bilinear")) swap_word(n, "mode", "cubic", "bicubic");
    return true;
}

/* Without the attribute it had the meaning that got the name output_half_pixel. */
bool wml_opset_roi_align_up(struct wml_opset_step *s, struct wml_node *n)
{
    (void)s;
    wml_attr_set_str(n, "coordinate_transformation_mode", WML_STR("output_half_pixel"));
    return true;
}

bool wml_opset_roi_align_down(struct wml_opset_step *s, struct wml_node *n)
{
    if (!wml_str_is(wml_attr_str(n, "coordinate_transformation_mode", WML_STR("half_pixel")), "output_half_pixel"))
        return wml_opset_refuse(s, "coordinate_transformation_mode = half_pixel needs opset %" PRId64, s->from);
    wml_attr_remove(n, "coordinate_transformation_mode");
    return true;
}
