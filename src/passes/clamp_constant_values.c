/* Infinities in constants, and masks of enormous numbers, become the largest finite value that targets take: masks
 * made of -inf or -3.4e38 overflow in half precision. Weights proper are left alone. */
#include "passes/match.h"

#include <math.h>

static const double bound = 1000; /* in the Python tool every constant was clipped to this */

/* Only constants that say "masked": every element is 0, 1, or beyond the bound by far. */
static bool is_mask(const double *x, size_t n)
{
    bool found = false;
    for (size_t i = 0; i < n; i++) {
        if (isnan(x[i])) return false;
        if (fabs(x[i]) > 1e4) found = true;
        else if (x[i] != 0 && x[i] != 1) return false;
    }
    return found;
}

static bool each_graph(void *arg, struct wml_graph *g)
{
    struct wml_pass_run *r = arg;
    for (struct wml_value *v = g->first_value; v; v = v->next) {
        struct wml_tensor *t = wml_constant_of(v), *s;
        double *x;
        size_t n;
        if (!t || !wml_dtype_is_float(t->dtype) || wml_dtype_info(t->dtype)->bits < 16 || v->pinned) continue;
        uint64_t count = 0;
        if (!wml_tensor_count(t, &count, NULL) || !count || count > 1 << 24) continue;
        if (!wml_tensor_doubles(r->model, t, &x, &n, NULL) || !is_mask(x, n)) continue;
        size_t width = wml_dtype_info(t->dtype)->bits / 8;
        unsigned char *bytes = wml_big_alloc((uint64_t)n * width, NULL);
        if (!bytes) continue;
        for (size_t i = 0; i < n; i++) wml_dtype_store(t->dtype, bytes, i, x[i] > bound ? bound : x[i] < -bound ? -bound : x[i]);
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
    .summary = "Clip infinite and enormous numbers of mask constants to +-1000",
};
