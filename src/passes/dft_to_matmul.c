/* DFT of a fixed length as MatMul with cosine and sine bases, computed in double: X[k] = sum x[n] exp(-2 pi i k n /
 * L); the inverse has the other sign and is divided by L. Samples beyond the length are cut; missing ones would be
 * zero, so their rows are left out of the bases. */
#include "passes/pattern.h"

#include <math.h>

enum { MAX_RANK = 8, MAX_BASIS = 1 << 24 };

struct dft {
    struct wml_value *x;
    int64_t rank, axis, samples, length, bins; /* samples: that are there and count */
    bool complex, inverse;
    enum wml_dtype dtype;
};

static bool length_of(struct wml_match *m, struct dft *d)
{
    double v;
    int64_t size = wml_value_axis(d->x, (size_t)d->axis).size;
    struct wml_value *given = wml_match_value(m, "length");
    if (size <= 0) return wml_match_refuse(m, "the axis has no fixed size");
    d->length = size;
    if (given) {
        if (!wml_constant_scalar(m->r, given, &v) || v < 1 || v > MAX_BASIS) return wml_match_refuse(m, "the length is not constant");
        d->length = (int64_t)v;
    }
    d->samples = WML_MIN(size, d->length);
    return true;
}

static bool read(struct wml_match *m, struct dft *d)
{
    double axis;
    const struct wml_node *n = m->root;
    *d = (struct dft){.x = wml_match_value(m, "x"), .inverse = wml_attr_int(n, "inverse", 0) != 0};
    d->rank = wml_value_rank(d->x);
    d->dtype = wml_value_elem(d->x);
    if (d->rank < 2 || d->rank > MAX_RANK || (d->dtype != WML_F32 && d->dtype != WML_F64 && d->dtype != WML_F16))
        return wml_match_refuse(m, "type or rank are not known");
    int64_t parts = wml_value_axis(d->x, (size_t)d->rank - 1).size;
    if (parts != 1 && parts != 2) return wml_match_refuse(m, "the last axis is not 1 or 2 long");
    d->complex = parts == 2;
    if (wml_model_opset(m->r->model, "") >= 20) {
        axis = -2;
        if (wml_match_value(m, "axis") && !wml_constant_scalar(m->r, wml_match_value(m, "axis"), &axis))
            return wml_match_refuse(m, "the axis is not constant");
        d->axis = (int64_t)axis;
    } else d->axis = wml_attr_int(n, "axis", 1);
    if (d->axis < 0) d->axis += d->rank;
    if (d->axis < 0 || d->axis >= d->rank - 1) return wml_match_refuse(m, "the axis is the last one");
    if (!length_of(m, d)) return false;
    bool onesided = wml_attr_int(n, "onesided", 0) != 0;
    if (onesided && (d->complex || d->inverse)) return wml_match_refuse(m, "one-sided, but complex or inverse");
    d->bins = onesided ? d->length / 2 + 1 : d->length;
    return d->samples * d->bins <= MAX_BASIS || wml_match_refuse(m, "the bases would be larger than 16 M elements");
}

/* cos or sin of turns/of of a full turn: quarters are exact. */
static double circle(int64_t turns, int64_t of, bool sine)
{
    static const double quarter[] = {1, 0, -1, 0};
    if (turns * 4 % of == 0) return quarter[(turns * 4 / of + (sine ? 3 : 0)) % 4];
    double angle = 2 * 3.14159265358979323846 * (double)turns / (double)of;
    return sine ? sin(angle) : cos(angle);
}

/* sign * cos or sin (2 pi k n / L) [/ L], as [samples, bins]. k n is reduced first: the angle stays exact. */
static struct wml_value *basis(struct wml_match *m, const struct dft *d, bool sine, double sign)
{
    size_t width = wml_dtype_info(d->dtype)->bits / 8, count = (size_t)(d->samples * d->bins);
    unsigned char *bytes = wml_big_alloc((uint64_t)count * width, NULL);
    int64_t dims[] = {d->samples, d->bins};
    if (!bytes) return NULL;
    for (int64_t n = 0; n < d->samples; n++)
        for (int64_t k = 0; k < d->bins; k++) {
            double v = circle(n * k % d->length, d->length, sine) * sign / (d->inverse ? (double)d->length : 1);
            wml_dtype_store(d->dtype, bytes, (size_t)(n * d->bins + k), v + 0.0); /* no -0 */
        }
    return wml_match_const(m, sine ? "dft_sine" : "dft_cosine", wml_tensor_own(m->r->model, d->dtype, 2, dims, bytes, count * width, NULL));
}

static struct wml_value *two(struct wml_match *m, const char *op, struct wml_value *a, struct wml_value *b)
{
    struct wml_value *in[2] = {a, b};
    return wml_match_add(m, op, "dft", 2, in);
}

static struct wml_value *index_of(struct wml_match *m, int64_t i)
{
    return wml_match_const(m, "dft_part", wml_tensor_copy(m->r->model, WML_I64, 0, NULL, &i, sizeof i, NULL));
}

static struct wml_value *prepared(struct wml_match *m, const struct dft *d, const int64_t *perm, bool moved)
{
    struct wml_value *x = d->x;
    if (d->samples < wml_value_axis(d->x, (size_t)d->axis).size) {
        int64_t zero = 0;
        struct wml_value *in[4] = {x, wml_match_ints(m, "dft_from", 1, &zero), wml_match_ints(m, "dft_to", 1, &d->samples),
                                   wml_match_ints(m, "dft_axis", 1, &d->axis)};
        x = wml_match_add(m, "Slice", "dft_cut", 4, in);
    }
    if (moved) {
        x = wml_match_add(m, "Transpose", "dft_moved", 1, &x);
        wml_attr_set_ints(x->def, "perm", (size_t)d->rank, perm);
    }
    return x;
}

static struct wml_value *part(struct wml_match *m, struct wml_value *x, int64_t i)
{
    struct wml_value *v = two(m, "Gather", x, index_of(m, i));
    wml_attr_set_int(v->def, "axis", -1);
    return v;
}

static bool rewrite(struct wml_match *m)
{
    struct dft d;
    int64_t perm[MAX_RANK], last = -1;
    if (!read(m, &d)) return false;
    for (int64_t i = 0; i < d.rank; i++) perm[i] = i;
    bool moved = d.axis != d.rank - 2;
    perm[d.axis] = d.rank - 2; /* a swap is its own inverse */
    perm[d.rank - 2] = d.axis;
    struct wml_value *c = basis(m, &d, false, 1), *s = basis(m, &d, true, d.inverse ? 1 : -1);
    if (!c || !s) return wml_match_refuse(m, "no memory for the bases");
    struct wml_value *x = prepared(m, &d, perm, moved), *re = part(m, x, 0);
    struct wml_value *out_re = two(m, "MatMul", re, c), *out_im = two(m, "MatMul", re, s);
    if (d.complex) {
        struct wml_value *im = part(m, x, 1);
        out_re = two(m, "Sub", out_re, two(m, "MatMul", im, s));
        out_im = two(m, "Add", out_im, two(m, "MatMul", im, c));
    }
    struct wml_value *axes = wml_match_ints(m, "dft_axes", 1, &last);
    struct wml_value *pair[2] = {two(m, "Unsqueeze", out_re, axes), two(m, "Unsqueeze", out_im, axes)};
    if (!moved) {
        wml_attr_set_int(wml_match_replace(m, "", "Concat", 2, pair), "axis", -1);
        return true;
    }
    struct wml_value *y = wml_match_add(m, "Concat", "dft", 2, pair);
    wml_attr_set_int(y->def, "axis", -1);
    wml_attr_set_ints(wml_match_replace(m, "", "Transpose", 1, &y), "perm", (size_t)d.rank, perm);
    return true;
}

static const struct wml_rule rules[] = {{"DFT(x, ?length, ?axis)", rewrite, 0, 17}};

const struct wml_pass wml_pass_dft_to_matmul = {
    .name = "dft-to-matmul", .category = "rewrite", .pipe = "cgir_rewrite", .cgc = true, .rules = rules, .n_rules = WML_COUNT(rules),
    .summary = "Turn a DFT of fixed length into MatMul with cosines and sines",
};
