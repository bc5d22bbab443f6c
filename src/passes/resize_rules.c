/* Forms of Resize that some compilers lack: inputs that are named but empty, one way to find nearest pixels, cubic
 * interpolation. */
#include "passes/match.h"

#include <math.h>

/* Statically empty: a constant or a value with a size of 0 that no graph input decides. */
static bool is_empty(const struct wml_value *v)
{
    int64_t n;
    const struct wml_tensor *t = wml_constant_of(v);
    uint64_t count;
    if (!v) return false;
    if (t) return wml_tensor_count(t, &count, NULL) && count == 0;
    return v->def && !v->n_inputs && wml_value_count(v, &n) && n == 0;
}

static bool is_mode(const struct wml_node *n, const char *attr, const char *fallback, const char *want)
{
    return wml_str_is(wml_attr_str(n, attr, wml_str(fallback)), want);
}

static bool omit(struct wml_pass_run *r, struct wml_node *n)
{
    if (!wml_node_is(n, "Resize") || is_mode(n, "coordinate_transformation_mode", "half_pixel", "tf_crop_and_resize")) return true;
    bool empty[4] = {false}, any = false;
    for (size_t i = 1; i < 4; i++) any = (empty[i] = is_empty(wml_node_in(n, i))) || any;
    bool scales = wml_node_in(n, 2) && !empty[2], sizes = wml_node_in(n, 3) && !empty[3];
    if (!any || scales == sizes) return true; /* one of them must tell the size */
    for (size_t i = 1; i < 4; i++)
        if (empty[i]) wml_node_set_input(n, i, NULL);
    wml_pass_applied(r, n->op_type, n->name);
    return true;
}

static bool run_omit(struct wml_pass_run *r, struct wml_err *err)
{
    (void)err;
    if (wml_model_opset(r->model, "") < 13)
        return wml_pass_skip(r, "Resize must name all its inputs below opset 13; --opset 13 raises the model's");
    return wml_pass_each(r, omit);
}

const struct wml_pass wml_pass_omit_empty_resize_inputs = {
    .name = "omit-empty-resize-inputs", .category = "rewrite", .pipe = "cgir_rewrite", .cgc = true, .run = run_omit,
    .summary = "Leave out inputs of Resize that are empty",
};

/* Scales that are whole numbers: both ways then pick the same pixel. */
static bool has_whole_scales(struct wml_pass_run *r, const struct wml_node *n)
{
    struct wml_tensor *t = wml_constant_of(wml_node_in(n, 2));
    double *x;
    size_t len;
    if (!t || t->dtype != WML_F32 || t->dims.len != 1 || (wml_node_in(n, 3) && !is_empty(n->in[3]))) return false;
    if (!wml_tensor_doubles(r->model, t, &x, &len, NULL) || !len || (int64_t)len != wml_value_rank(n->in[0])) return false;
    for (size_t i = 0; i < len; i++)
        if (!(x[i] > 0) || x[i] != floor(x[i])) return false;
    return true;
}

static bool to_asymmetric(struct wml_pass_run *r, struct wml_node *n)
{
    if (!wml_node_is(n, "Resize") || !is_mode(n, "mode", "nearest", "nearest") ||
        !is_mode(n, "nearest_mode", "round_prefer_floor", "floor") ||
        !is_mode(n, "coordinate_transformation_mode", "half_pixel", "tf_half_pixel_for_nn"))
        return true;
    if (!has_whole_scales(r, n)) {
        wml_pass_refuse(r, n, "its scales are not constant whole numbers");
        return true;
    }
    wml_attr_set_str(n, "coordinate_transformation_mode", WML_STR("asymmetric"));
    wml_pass_applied(r, n->op_type, n->name);
    return true;
}

static bool run_asymmetric(struct wml_pass_run *r, struct wml_err *err)
{
    (void)err;
    if (wml_model_opset(r->model, "") < 11) return wml_pass_skip(r, "Resize has modes from opset 11");
    return wml_pass_each(r, to_asymmetric);
}

const struct wml_pass wml_pass_resize_tf_half_pixel_for_nn_to_asymmetric = {
    .name = "resize-tf-half-pixel-for-nn-to-asymmetric", .category = "rewrite", .pipe = "cgir_rewrite", .cgc = true,
    .run = run_asymmetric, .summary = "Find nearest pixels of whole-number scales by mode asymmetric",
};

static bool to_linear(struct wml_pass_run *r, struct wml_node *n)
{
    if (!wml_node_is(n, "Resize") || !is_mode(n, "mode", "nearest", "cubic") || wml_attr_int(n, "antialias", 0) ||
        wml_attr_int(n, "exclude_outside", 0) || is_mode(n, "coordinate_transformation_mode", "half_pixel", "tf_crop_and_resize"))
        return true;
    wml_attr_set_str(n, "mode", WML_STR("linear"));
    wml_attr_remove(n, "cubic_coeff_a");
    wml_pass_applied(r, n->op_type, n->name);
    return true;
}

static bool run_linear(struct wml_pass_run *r, struct wml_err *err)
{
    (void)err;
    if (wml_model_opset(r->model, "") < 11) return wml_pass_skip(r, "Resize has modes from opset 11");
    return wml_pass_each(r, to_linear);
}

const struct wml_pass wml_pass_approximate_cubic_resize_with_linear = {
    .name = "approximate-cubic-resize-with-linear", .category = "rewrite", .pipe = "cgir_rewrite", .cgc = true, .lossy = true,
    .run = run_linear, .summary = "Interpolate linearly instead of cubically; changes answers",
};
