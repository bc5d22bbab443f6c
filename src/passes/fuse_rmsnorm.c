/* RMS normalisation over the last axis as LpNormalization and Mul, for targets that have the former:
 * x / sqrt(mean(x^2) + eps) * w = x / |x| * (w * sqrt(N)). Epsilon is dropped, so answers change for vectors
 * near zero; a row of zeros stays zero in ORT. */
#include "passes/rms_norm_rules.h"

#include <math.h>

/* w * sqrt(N); [1] when all of w is one. */
static struct wml_value *adjusted(struct wml_match *m, struct wml_value *scale, int64_t n)
{
    struct wml_tensor *t = wml_constant_of(scale);
    double *w, root = sqrt((double)n);
    size_t count, width = wml_dtype_info(t->dtype)->bits / 8;
    if (!wml_tensor_doubles(m->r->model, t, &w, &count, NULL)) return NULL;
    bool ones = true;
    for (size_t i = 0; i < count; i++) ones = ones && fabs(w[i] - 1) <= 1e-6;
    int64_t len = ones ? 1 : (int64_t)count;
    unsigned char *bytes = wml_arena_alloc(m->r->scratch, (size_t)len * width);
    for (int64_t i = 0; i < len; i++) wml_dtype_store(t->dtype, bytes, (size_t)i, (ones ? 1 : w[i]) * root);
    struct wml_str name = wml_arena_fmt(m->r->scratch, "%.*s_l2norm_adjusted", WML_ARG(scale->name));
    return wml_match_const(m, name.ptr, wml_tensor_copy(m->r->model, (enum wml_dtype)t->dtype, 1, &len, bytes,
                                                        (size_t)len * width, NULL));
}

static bool rewrite(struct wml_match *m)
{
    struct wml_rms_norm n;
    if (!wml_rms_norm_of(m, &n)) return false;
    if (n.axis != n.rank - 1) return wml_match_refuse(m, "the mean is not over the last axis alone");
    if (n.eps > 1e-3f) return wml_match_refuse(m, "epsilon is not small");
    struct wml_value *in[2] = {NULL, adjusted(m, n.scale, wml_value_axis(n.x, (size_t)n.axis).size)};
    if (!in[1]) return wml_match_refuse(m, "the scale cannot be read");
    in[0] = wml_match_add(m, "LpNormalization", "l2norm", 1, &n.x);
    wml_attr_set_int(in[0]->def, "p", 2);
    wml_attr_set_int(in[0]->def, "axis", -1);
    wml_match_replace(m, "", "Mul", 2, in);
    return true;
}

static bool run(struct wml_pass_run *r, struct wml_err *err)
{
    return wml_rms_norm_run(r, false, rewrite, err);
}

const struct wml_pass wml_pass_fuse_rmsnorm = {
    .name = "fuse-rmsnorm", .category = "layer_norm", .pipe = "ort_fusion", .lossy = true, .run = run,
    .summary = "Turn RMS normalisation into LpNormalization and Mul; drops epsilon",
};
