/* nn/relative.c - see relative.h. */
#include <math.h>
#include "nn/relative.h"

enum { FOLD = 1024 /* the longest text whose scores are written out as a constant */ };

/* In float32, as the models were trained with. */
int64_t wml_nn_bucket(const struct wml_nn_buckets *how, int64_t distance)
{
    int64_t n = how->buckets, first = 0, far = distance;
    if (how->both_ways) {
        n /= 2;
        if (distance > 0) first = n;
        else far = -distance;
    } else {
        far = distance < 0 ? -distance : 0;
    }
    const int64_t exact = n / 2;
    if (far < exact) return first + far;
    const float steps = logf((float)far / (float)exact) / (float)log((double)how->max_distance / (double)exact) * (float)(n - exact);
    const int64_t at = exact + (int64_t)steps;
    return first + (at < n ? at : n - 1);
}

static bool buckets_fit(struct wml_nn *b, int64_t rows, const struct wml_nn_buckets *how)
{
    const int64_t one_way = how->both_ways ? how->buckets / 2 : how->buckets;
    if (one_way >= 2 && how->max_distance > one_way / 2 && how->max_distance <= 1 << 20 && rows >= how->buckets) return true;
    wml_nn_fail(b, WML_E_FORMAT, "config.json: %lld buckets of relative positions up to a distance of %lld (the table has %lld)",
                (long long)how->buckets, (long long)how->max_distance, (long long)rows);
    return false;
}

/* Scores of [heads] for every distance from -reach to reach. */
static float *by_distance(struct wml_nn *b, const struct wml_weight *table, const struct wml_nn_buckets *how, bool turned, int64_t reach)
{
    const int64_t rows = table->dims[turned], heads = table->dims[!turned], n = 2 * reach + 1;
    const float *t = buckets_fit(b, rows, how) ? wml_nn_read(b, table) : NULL;
    if (!t) return NULL;
    float *out = wml_nn_room(b, "relative positions", sizeof *out, WML_DIMS(heads, n));
    if (!out) return NULL;
    for (int64_t i = 0; i < n; i++) {
        const int64_t row = wml_nn_bucket(how, i - reach);
        for (int64_t h = 0; h < heads; h++) out[h * n + i] = turned ? t[h * rows + row] : t[row * heads + h];
    }
    return out;
}

static struct wml_value *fixed_bias(struct wml_nn *b, const struct wml_weight *table, const struct wml_nn_buckets *how, int64_t n)
{
    const float *d = by_distance(b, table, how, false, n - 1);
    if (!d) return NULL;
    const int64_t dims[4] = {1, table->dims[1], n, n}, wide = 2 * n - 1;
    float *out = wml_nn_room(b, "relative positions", sizeof *out, WML_DIMS(dims[1], n, n));
    if (!out) return NULL;
    for (int64_t h = 0; h < dims[1]; h++)
        for (int64_t q = 0; q < n; q++) memcpy(out + (h * n + q) * n, d + h * wide + n - 1 - q, (size_t)n * sizeof *out);
    return wml_nn_const(b, "relative_bias", WML_F32, 4, dims, out);
}

struct wml_value *wml_nn_bucket_last_row(struct wml_nn *b, const struct wml_weight *table, const struct wml_nn_buckets *how, int64_t n)
{
    if (b->failed || !table) return NULL;
    if (n < 1 || n > 1 << 20) return wml_nn_fail(b, WML_E_UNSUPPORTED, "relative positions of %lld places", (long long)n);
    const float *d = by_distance(b, table, how, false, n - 1);
    if (!d) return NULL;
    const int64_t dims[4] = {1, table->dims[1], 1, n}, wide = 2 * n - 1;
    float *out = wml_nn_room(b, "relative positions", sizeof *out, WML_DIMS(dims[1], n));
    if (!out) return NULL;
    for (int64_t h = 0; h < dims[1]; h++) memcpy(out + h * n, d + h * wide, (size_t)n * sizeof *out);
    return wml_nn_const(b, "relative_bias", WML_F32, 4, dims, out);
}

struct wml_value *wml_nn_bucket_scores(struct wml_nn *b, const struct wml_weight *table, const struct wml_nn_buckets *how, bool turned, double scale)
{
    if (b->failed || !table) return NULL;
    const int64_t dims[2] = {table->dims[!turned], 2 * how->max_distance + 1};
    float *d = by_distance(b, table, how, turned, how->max_distance);
    for (int64_t i = 0; d && i < dims[0] * dims[1]; i++) d[i] = (float)(d[i] * scale);
    return d ? wml_nn_const(b, "relative_bias", WML_F32, 2, dims, d) : NULL;
}

/* Distances are computed, and cut where the last bucket is reached for sure. */
struct wml_value *wml_nn_bucket_lookup(struct wml_nn *b, struct wml_value *scores, const struct wml_nn_buckets *how, struct wml_value *at)
{
    if (b->failed || !scores || !at) return NULL;
    const enum wml_dtype dtype = wml_value_elem(at);
    const int64_t reach = how->max_distance;
    struct wml_value *far = wml_nn_sub(b, wml_nn_unsqueeze(b, at, WML_DIMS(-2)), wml_nn_unsqueeze(b, at, WML_DIMS(-1)));
    far = wml_nn_binary(b, "Min", far, wml_nn_int(b, dtype, reach));
    far = wml_nn_binary(b, "Max", far, wml_nn_int(b, dtype, -reach));
    return wml_nn_gather(b, scores, wml_nn_add(b, far, wml_nn_int(b, dtype, reach)), 1);
}

struct wml_value *wml_nn_bucket_bias(struct wml_nn *b, const struct wml_weight *table, const struct wml_nn_buckets *how,
                                     struct wml_value *ids, int axis)
{
    if (b->failed || !table || !ids) return NULL;
    const int64_t n = wml_nn_axis(ids, axis).size;
    if (n >= 1 && n <= FOLD) return fixed_bias(b, table, how, n);
    return wml_nn_bucket_lookup(b, wml_nn_bucket_scores(b, table, how, false, 1), how, wml_nn_positions(b, ids, axis, 0));
}

/* ------------------------------------------------------ a column per distance */

/* A value of sizes that every layer asks for is computed once. */
static struct wml_value *once(struct wml_nn *b, const char *what, struct wml_value *of, struct wml_value *(*make)(struct wml_nn *, struct wml_value *))
{
    const struct wml_str key = wml_arena_fmt(&b->m->arena, "%s %.*s", what, WML_ARG(of->name));
    struct wml_value *v = wml_map_get(&b->shared, key);
    if (v) return v;
    v = make(b, of);
    if (v) wml_map_put(&b->shared, key, v);
    return v;
}

static struct wml_value *less_one(struct wml_nn *b, struct wml_value *n)
{
    return wml_nn_sub(b, n, wml_nn_ints(b, WML_DIMS(1)));
}

static struct wml_value *square(struct wml_nn *b, struct wml_value *n)
{
    return wml_nn_concat(b, 0, WML_VALUES(wml_nn_ints(b, WML_DIMS(0, 0)), n, wml_nn_ints(b, WML_DIMS(-1))));
}

static struct wml_value *cut(struct wml_nn *b, struct wml_value *x, int64_t axis, struct wml_value *from, struct wml_value *to,
                             struct wml_axis size)
{
    if (b->failed || !x || !from || !to) return NULL;
    struct wml_nn_shape s = wml_nn_shape(x);
    s.at[axis] = size;
    struct wml_node *n = wml_nn_node(b, "", "Slice", WML_VALUES(x, from, to, wml_nn_ints(b, 1, &axis)));
    return wml_nn_out(b, n, wml_value_elem(x), &s);
}

struct wml_value *wml_nn_distance_rows(struct wml_nn *b, struct wml_value *ids, int64_t max,
                                       int64_t (*row)(const void *arg, int64_t distance), const void *arg)
{
    if (b->failed || !ids) return NULL;
    const struct wml_axis n = wml_nn_axis(ids, 1);
    const int64_t most = n.size >= 0 ? n.size : max, count = 2 * most;
    int64_t *at = wml_nn_room(b, "relative positions", sizeof *at, WML_DIMS(count));
    if (!at) return NULL;
    for (int64_t i = 0; i < count; i++) at[i] = row(arg, i - most + 1);
    struct wml_value *v = wml_nn_const(b, "distances", WML_I64, 1, &count, at);
    if (n.size >= 0) return v;
    struct wml_value *half = wml_nn_ints(b, 1, &max), *len = wml_nn_extent(b, ids, 1);
    return cut(b, v, 0, wml_nn_sub(b, half, len), wml_nn_add(b, half, len), (struct wml_axis){.size = -1});
}

struct wml_value *wml_nn_distance_columns(struct wml_nn *b, const float *table, int64_t size, int64_t n,
                                          int64_t (*row)(const void *arg, int64_t distance), const void *arg, double by)
{
    if (b->failed || !table) return NULL;
    float *out = wml_nn_room(b, "relative positions", sizeof *out, WML_DIMS(size, 2 * n));
    if (!out) return NULL;
    for (int64_t i = 0; i < 2 * n; i++) {
        const int64_t from = row(arg, i - n + 1);
        for (int64_t c = 0; c < size; c++) out[c * 2 * n + i] = (float)(table[from * size + c] * by);
    }
    return wml_nn_const(b, "distances", WML_F32, WML_DIMS(size, 2 * n), out);
}

struct wml_value *wml_nn_distance_vectors(struct wml_nn *b, const struct wml_weight *table, struct wml_value *ids, int64_t max,
                                          int64_t (*row)(const void *arg, int64_t distance), const void *arg, double by)
{
    if (b->failed || !table || !ids) return NULL;
    const int64_t n = wml_nn_axis(ids, 1).size;
    if (n >= 0) return wml_nn_distance_columns(b, wml_nn_read(b, table), table->dims[1], n, row, arg, by);
    struct wml_value *v = wml_nn_gather(b, wml_nn_param_of(b, table), wml_nn_distance_rows(b, ids, max, row, arg), 0);
    return wml_nn_scale(b, wml_nn_transpose(b, v, "10"), by);
}

/* Row q of the flat x starts at 2nq; the key k of query q is in its column k - q + n - 1, which is (2n - 1) q + k places
 * after the first n - 1: rows of 2n - 1 whose first n columns are the keys. */
struct wml_value *wml_nn_to_keys(struct wml_nn *b, struct wml_value *x, struct wml_value *ids)
{
    if (b->failed || !x || !ids) return NULL;
    const struct wml_axis n = wml_nn_axis(ids, 1);
    struct wml_value *flat = wml_nn_reshape(b, x, WML_DIMS(0, 0, -1));
    if (n.size >= 0) {
        flat = wml_nn_slice(b, flat, 2, n.size - 1, -1);
        return wml_nn_slice(b, wml_nn_reshape(b, flat, WML_DIMS(0, 0, n.size, 2 * n.size - 1)), 3, 0, n.size);
    }
    struct wml_value *len = wml_nn_extent(b, ids, 1);
    const struct wml_axis open = {.size = -1};
    struct wml_nn_shape s = wml_nn_shape(x);
    s.at[2] = n;
    s.at[3] = open;
    flat = cut(b, flat, 2, once(b, "less one", len, less_one), wml_nn_ints(b, WML_DIMS(-1)), open);
    if (b->failed) return NULL;
    struct wml_node *node = wml_nn_node(b, "", "Reshape", WML_VALUES(flat, once(b, "square", len, square)));
    return wml_nn_slice_to(b, wml_nn_out(b, node, wml_value_elem(x), &s), 3, len, n);
}
