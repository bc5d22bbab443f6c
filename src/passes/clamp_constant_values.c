/* Infinities in constants, and masks of enormous numbers, become the largest finite value that targets take: masks
 * made of -inf or -3.4e38 overflow in half precision. Weights proper are left alone. */
#include "passes/match.h"

#include <math.h>

static const double default_bound = 1000; /* in the Python tool every constant was clipped to this */

static bool is_huge(double x)
{
    return fabs(x) > 1e4;
}

/* Only constants that say "masked": every element is 0, 1, or enormous. Looked at one by one, since weights proper are
 * known by their first element. */
static bool is_mask(const struct wml_tensor *t, const void *data, size_t n, double low, double high)
{
    bool found = false;
    for (size_t i = 0; i < n; i++) {
        double x = wml_dtype_load(t->dtype, data, i);
        if (isnan(x) || (!is_huge(x) && x != 0 && x != 1)) return false;
        found = found || (is_huge(x) && (x < low || x > high));
    }
    return found;
}

static bool each_graph(void *arg, struct wml_graph *g)
{
    struct wml_pass_run *r = arg;
    double low = r->env->clamp ? r->env->clamp_min : -default_bound, high = r->env->clamp ? r->env->clamp_max : default_bound;
    for (struct wml_value *v = g->first_value; v; v = v->next) {
        struct wml_tensor *t = wml_constant_of(v), *s;
        struct wml_span data;
        if (!t || !wml_dtype_is_float(t->dtype) || wml_dtype_info(t->dtype)->bits < 16 || v->pinned) continue;
        uint64_t count = 0;
        if (!wml_tensor_count(t, &count, NULL) || !count || count > 1 << 24 || t->payload == WML_PAYLOAD_DERIVED) continue;
        size_t n = (size_t)count, width = wml_dtype_info(t->dtype)->bits / 8;
        if (!wml_tensor_bytes(r->model, t, &data, NULL) || !is_mask(t, data.ptr, n, low, high)) continue;
        unsigned char *bytes = wml_big_alloc((uint64_t)n * width, NULL);
        if (!bytes) continue;
        for (size_t i = 0; i < n; i++) {
            double x = wml_dtype_load(t->dtype, data.ptr, i);
            wml_dtype_store(t->dtype, bytes, i, !is_huge(x) ? x : x > high ? high : x < low ? low : x);
        }
        s = wml_tensor_own(r->model, (enum wml_dtype)t->dtype, t->dims.len, t->dims.at, bytes, n * width, NULL);
        if (!s) continue;
        wml_value_set_init(v, s);
        wml_pass_applied(r, WML_STR("Constant"), v->name);
    }
    return true;
}

static bool run(struct wml_pass_run *r, struct wml_err *err)
{
    (void)err;
    return wml_model_each_graph(r->model, each_graph, r);
}

const struct wml_pass wml_pass_clamp_constant_values = {
    .name = "clamp-constant-values", .category = "surgery", .pipe = "surgery", .lossy = true, .run = run,
    .summary = "Clip infinite and enormous numbers of mask constants to +-1000 (--clamp-min, --clamp-max)",
};
