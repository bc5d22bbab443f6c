/* GatherND whose constant indices visit every slice once, in storage order, is a Reshape. */
#include "passes/pattern.h"

enum { MAX_RANK = 16 };

/* The tuples of every batch are 0, 1, 2, ... as flat positions over the indexed axes. */
static bool visits_all(struct wml_match *m, const struct wml_tensor *t, const int64_t *data, size_t batch, size_t k)
{
    int64_t *at;
    size_t n, slices = 1, batches = 1;
    for (size_t i = 0; i < k; i++) slices *= (size_t)data[batch + i];
    for (size_t i = 0; i < batch; i++) batches *= (size_t)data[i];
    struct wml_value *indices = wml_match_value(m, "i");
    (void)t;
    if (!wml_constant_ints(m->r, indices, &at, &n) || !k || n / k != slices * batches || n % k) return false;
    for (size_t row = 0; row < slices * batches; row++) {
        int64_t flat = 0;
        for (size_t i = 0; i < k; i++) {
            int64_t v = at[row * k + i], size = data[batch + i];
            if (v < 0) v += size;
            if (v < 0 || v >= size) return false;
            flat = flat * size + v;
        }
        if (flat != (int64_t)(row % slices)) return false;
    }
    return true;
}

static bool rewrite(struct wml_match *m)
{
    struct wml_value *x = wml_match_value(m, "x");
    const struct wml_tensor *t = wml_constant_of(wml_match_value(m, "i"));
    int64_t data[MAX_RANK], shape[2 * MAX_RANK], batch = wml_attr_int(m->root, "batch_dims", 0);
    size_t rank = SIZE_MAX, n = 0;
    if (t->dtype != WML_I64 || !t->dims.len || wml_value_rank(x) > MAX_RANK || !wml_static_dims(x, 0, data, &rank))
        return wml_match_refuse(m, "the data's sizes are not fixed");
    int64_t k = t->dims.at[t->dims.len - 1];
    if (batch < 0 || batch + k > (int64_t)rank || (size_t)batch >= t->dims.len || t->dims.len > MAX_RANK) return false;
    for (int64_t i = 0; i < batch; i++)
        if (t->dims.at[i] != data[i]) return false;
    if (!visits_all(m, t, data, (size_t)batch, (size_t)k)) return wml_match_refuse(m, "the indices do not visit every slice in order");
    for (size_t i = 0; i + 1 < t->dims.len; i++) shape[n++] = t->dims.at[i];
    for (size_t i = (size_t)(batch + k); i < rank; i++) shape[n++] = data[i];
    if (rank == t->dims.len && rank == n) return wml_match_refuse(m, "all ranks are equal");
    for (size_t i = 0; i < n; i++)
        if (!shape[i]) return wml_match_refuse(m, "the result is empty");
    struct wml_value *in[2] = {x, wml_match_ints(m, "shape", n, shape)};
    wml_match_replace(m, "", "Reshape", 2, in);
    return true;
}

static const struct wml_rule rules[] = {{"GatherND(x, $i)", rewrite, 0, 11}};

const struct wml_pass wml_pass_gathernd_to_reshape = {
    .name = "gathernd-to-reshape", .category = "rewrite", .pipe = "cgir_rewrite", .cgc = true, .rules = rules, .n_rules = WML_COUNT(rules),
    .summary = "Turn a GatherND that keeps everything in order into Reshape",
};
