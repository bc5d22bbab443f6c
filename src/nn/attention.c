/* nn/attention.c - attention over heads, masks, positions. */
#include <math.h>
#include "nn/attention.h"

/* length: of x that is rows; 0: x has three axes. */
static struct wml_value *heads_of(struct wml_nn *b, struct wml_value *x, int64_t heads, int64_t length, const char *perm)
{
    if (b->failed || !x) return NULL;
    const int64_t width = wml_nn_size(b, x, -1, "the width of attention");
    if (heads < 1 || width % heads)
        return wml_nn_fail(b, WML_E_FORMAT, "config.json: a width of %lld does not divide into %lld attention heads",
                           (long long)width, (long long)heads);
    x = length ? wml_nn_reshape(b, x, WML_DIMS(-1, length, heads, width / heads)) : wml_nn_reshape(b, x, WML_DIMS(0, 0, heads, width / heads));
    return wml_nn_transpose(b, x, perm);
}

struct wml_value *wml_nn_split_heads(struct wml_nn *b, struct wml_value *x, int64_t heads)
{
    return heads_of(b, x, heads, 0, "0213");
}

struct wml_value *wml_nn_split_rows(struct wml_nn *b, struct wml_value *x, int64_t heads, int64_t length)
{
    return heads_of(b, x, heads, length, "0213");
}

struct wml_value *wml_nn_split_turned(struct wml_nn *b, struct wml_value *x, int64_t heads)
{
    return heads_of(b, x, heads, 0, "0231");
}

static int64_t width_of(struct wml_nn *b, struct wml_value *x)
{
    return wml_nn_size(b, x, 1, "the number of heads") * wml_nn_size(b, x, 3, "the size of a head");
}

struct wml_value *wml_nn_join_heads(struct wml_nn *b, struct wml_value *x)
{
    if (b->failed || !x) return NULL;
    return wml_nn_reshape(b, wml_nn_transpose(b, x, "0213"), WML_DIMS(0, 0, width_of(b, x)));
}

struct wml_value *wml_nn_join_rows(struct wml_nn *b, struct wml_value *x)
{
    if (b->failed || !x) return NULL;
    return wml_nn_reshape(b, wml_nn_transpose(b, x, "0213"), WML_DIMS(-1, width_of(b, x)));
}

const float *wml_nn_query_scales(struct wml_nn *b, int64_t out, int64_t heads, int64_t n)
{
    if (heads < 1 || out % heads)
        return wml_nn_fail(b, WML_E_FORMAT, "config.json: a width of %lld does not divide into %lld attention heads", (long long)out, (long long)heads);
    float *scale = wml_nn_room(b, "scales of queries", sizeof *scale, WML_DIMS(n));
    for (int64_t i = 0; scale && i < n; i++) scale[i] = i < out ? (float)(1 / sqrt((double)(out / heads))) : 1;
    return scale;
}

struct wml_value *wml_nn_queries(struct wml_nn *b, struct wml_value *x, const char *name, int64_t out, int64_t heads)
{
    return b->failed ? NULL : wml_nn_linear_scaled(b, x, name, out, wml_nn_query_scales(b, out, heads, out));
}

struct wml_value *wml_nn_keys(struct wml_nn *b, struct wml_value *x, const char *name, int64_t out)
{
    if (b->failed || !x) return NULL;
    wml_nn_enter_layer(b, "Linear", "%s", name);
    x = wml_nn_linear_with(b, x, wml_nn_need(b, "weight", WML_DIMS(out, wml_nn_size(b, x, -1, "the width of attention"))), NULL);
    if (wml_nn_has(b, "bias")) wml_nn_need(b, "bias", WML_DIMS(out));
    wml_nn_leave(b);
    return x;
}

struct wml_value *wml_nn_queries_packed(struct wml_nn *b, struct wml_value *x, const char *name, int64_t out, int64_t heads)
{
    return b->failed ? NULL : wml_nn_linear_scaled(b, x, name, 3 * out, wml_nn_query_scales(b, out, heads, 3 * out));
}

/* [batch, kv heads, length, size] -> [batch, heads, length, size], each kv head for several neighbours. */
static struct wml_value *repeat_heads(struct wml_nn *b, struct wml_value *x, int64_t times)
{
    if (b->failed || !x || times == 1) return x;
    const int64_t heads = wml_nn_size(b, x, 1, "the number of heads"), size = wml_nn_size(b, x, 3, "the size of a head");
    struct wml_nn_shape s = wml_nn_shape(x);
    s = (struct wml_nn_shape){5, {s.at[0], {.size = heads}, {.size = times}, s.at[2], {.size = size}}};
    x = wml_nn_unsqueeze(b, x, WML_DIMS(2));
    const int64_t one = 1;
    struct wml_value *keep = wml_nn_ints(b, 1, &one);
    if (s.at[0].size >= 0 && s.at[3].size >= 0) x = wml_nn_expand(b, x, 5, NULL, &s);
    else x = wml_nn_expand(b, x, 5, (struct wml_value *[]){keep, keep, wml_nn_ints(b, 1, &times), keep, keep}, &s);
    if (wml_nn_is_fixed(x, 3)) return wml_nn_reshape(b, x, WML_DIMS(0, heads * times, wml_nn_axis(x, 3).size, size));
    return wml_nn_reshape(b, x, WML_DIMS(0, heads * times, -1, size));
}

/* softmax(q k^T scale + bias + mask) v, k turned already. */
static struct wml_value *weigh(struct wml_nn *b, const struct wml_nn_attention *a, struct wml_value *q, struct wml_value *turned,
                               struct wml_value *v)
{
    const double scale = a->scale != 0 ? a->scale : 1 / sqrt((double)wml_nn_size(b, q, 3, "the size of a head"));
    struct wml_value *scores = wml_nn_matmul(b, a->scale_q ? wml_nn_scale(b, q, scale) : q, turned);
    if (!a->scale_q) scores = wml_nn_scale(b, scores, scale);
    if (a->cap != 0) scores = wml_nn_scale(b, wml_nn_unary(b, "Tanh", wml_nn_scale(b, scores, 1 / a->cap)), a->cap);
    if (a->bias) scores = wml_nn_add(b, scores, a->bias);
    if (a->mask) scores = wml_nn_add(b, scores, a->mask);
    return wml_nn_matmul(b, wml_nn_softmax(b, scores, -1), v);
}

struct wml_value *wml_nn_attention_scores(struct wml_nn *b, struct wml_value *q, struct wml_value *k, double scale)
{
    if (b->failed || !q || !k) return NULL;
    if (scale == 0) scale = 1 / sqrt((double)wml_nn_size(b, q, 3, "the size of a head"));
    return wml_nn_scale(b, wml_nn_matmul(b, q, wml_nn_transpose(b, k, "0132")), scale);
}

struct wml_value *wml_nn_attention_heads(struct wml_nn *b, const struct wml_nn_attention *a)
{
    if (b->failed || !a->q || !a->k || !a->v) return NULL;
    if (a->turned) return weigh(b, a, a->q, a->k, a->v);
    const int64_t times = a->kv_heads ? a->heads / a->kv_heads : 1;
    struct wml_value *k = repeat_heads(b, a->k, times), *v = repeat_heads(b, a->v, times);
    return weigh(b, a, a->q, wml_nn_transpose(b, k, "0132"), v);
}

struct wml_value *wml_nn_attention(struct wml_nn *b, const struct wml_nn_attention *a)
{
    if (b->failed || !a->q || !a->k || !a->v) return NULL;
    struct wml_nn_attention split = *a;
    split.q = heads_of(b, a->q, a->heads, a->length, "0213");
    if (a->kv_heads && a->kv_heads != a->heads) {
        split.k = wml_nn_split_heads(b, a->k, a->kv_heads);
        split.v = wml_nn_split_heads(b, a->v, a->kv_heads);
        return wml_nn_join_heads(b, wml_nn_attention_heads(b, &split));
    }
    struct wml_value *k = heads_of(b, a->k, a->heads, a->kv_length, "0231"), *v = heads_of(b, a->v, a->heads, a->kv_length, "0213");
    struct wml_value *y = weigh(b, a, split.q, k, v);
    return a->length ? wml_nn_join_rows(b, y) : wml_nn_join_heads(b, y);
}

/* ------------------------------------------------------- masks, positions */

struct wml_value *wml_nn_key_mask(struct wml_nn *b, struct wml_value *mask)
{
    if (b->failed || !mask) return NULL;
    const struct wml_str key = wml_arena_fmt(&b->m->arena, "key mask %.*s", WML_ARG(mask->name));
    struct wml_value *v = wml_map_get(&b->shared, key);
    if (v) return v;
    v = wml_nn_cast(b, wml_nn_unsqueeze(b, mask, WML_DIMS(1, 2)), WML_F32);
    if (v) wml_map_put(&b->shared, key, v);
    return v;
}

/* Of 1 and 0, as it is added to scores. */
static struct wml_value *as_added(struct wml_nn *b, struct wml_value *see)
{
    return wml_nn_scale(b, wml_nn_sub(b, wml_nn_float(b, 1), see), WML_NN_MASKED);
}

struct wml_value *wml_nn_padding_mask(struct wml_nn *b, struct wml_value *mask)
{
    if (b->failed || !mask) return NULL;
    return as_added(b, wml_nn_key_mask(b, mask));
}

/* [1, 1, n, n]: `yes` where the key is no later than the query and nearer than the window (0: any), else `no`. */
static struct wml_value *triangle(struct wml_nn *b, int64_t n, int64_t window, float yes, float no)
{
    const int64_t dims[4] = {1, 1, n, n};
    float *m = wml_nn_room(b, "causal mask", sizeof *m, WML_DIMS(n, n));
    if (!m) return NULL;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) m[i * n + j] = j <= i && (!window || i - j < window) ? yes : no;
    return wml_nn_const(b, window ? "sliding" : "causal", WML_F32, 4, dims, m);
}

/* The same of 1 and 0; made of positions where n is open. */
static struct wml_value *visible(struct wml_nn *b, struct wml_value *ids, int64_t window)
{
    const struct wml_axis n = wml_nn_axis(ids, 1);
    if (n.size >= 0) return triangle(b, n.size, window, 1, 0);
    struct wml_value *at = wml_nn_positions(b, ids, 1, 0);
    struct wml_value *key = wml_nn_unsqueeze(b, at, WML_DIMS(0)), *query = wml_nn_unsqueeze(b, at, WML_DIMS(1));
    struct wml_value *see = wml_nn_compare(b, "LessOrEqual", key, query);
    if (window) {
        struct wml_value *near = wml_nn_compare(b, "Less", wml_nn_sub(b, query, key), wml_nn_int(b, WML_I64, window));
        see = wml_nn_binary(b, "And", see, near);
    }
    return wml_nn_unsqueeze(b, wml_nn_cast(b, see, WML_F32), WML_DIMS(0, 1));
}

struct wml_value *wml_nn_sliding_mask(struct wml_nn *b, struct wml_value *ids, struct wml_value *mask, int64_t window)
{
    if (b->failed || !ids) return NULL;
    const int64_t n = wml_nn_axis(ids, 1).size;
    if (n >= 0 && n <= window) window = 0;
    if (n >= 0 && !mask) return triangle(b, n, window, 0, (float)WML_NN_MASKED);
    struct wml_value *see = visible(b, ids, window);
    return as_added(b, mask ? wml_nn_mul(b, see, wml_nn_key_mask(b, mask)) : see);
}

struct wml_value *wml_nn_causal_mask(struct wml_nn *b, struct wml_value *ids, struct wml_value *mask)
{
    return wml_nn_sliding_mask(b, ids, mask, 0);
}

struct wml_value *wml_nn_positions(struct wml_nn *b, struct wml_value *ids, int axis, int64_t max)
{
    if (b->failed || !ids) return NULL;
    const struct wml_axis n = wml_nn_axis(ids, axis);
    if (n.size < 0 && !max) { /* no table to cut: counted */
        struct wml_value *len = wml_nn_squeeze(b, wml_nn_extent(b, ids, axis), WML_DIMS(0));
        struct wml_value *in[] = {wml_nn_int(b, WML_I64, 0), len, wml_nn_int(b, WML_I64, 1)};
        const struct wml_nn_shape s = {1, {n}};
        return wml_nn_out(b, wml_nn_node(b, "", "Range", 3, in), WML_I64, &s);
    }
    const int64_t count = n.size >= 0 ? n.size : max;
    if (max && count > max) return wml_nn_fail(b, WML_E_UNSUPPORTED, "%lld tokens, but the model has %lld positions", (long long)count, (long long)max);
    int64_t *at = wml_nn_room(b, "positions", sizeof *at, WML_DIMS(count));
    if (!at) return NULL;
    for (int64_t i = 0; i < count; i++) at[i] = i;
    struct wml_value *table = wml_nn_const(b, "positions", WML_I64, 1, &count, at);
    return n.size >= 0 ? table : wml_nn_slice_to(b, table, 0, wml_nn_extent(b, ids, axis), n);
}

struct wml_value *wml_nn_position_rows(struct wml_nn *b, const struct wml_weight *table, struct wml_value *ids, int axis, int64_t offset)
{
    if (b->failed || !table || !ids) return NULL;
    const struct wml_axis n = wml_nn_axis(ids, axis);
    const int64_t rows = table->dims[0] - offset;
    if (n.size > rows) {
        wml_nn_fail(b, WML_E_UNSUPPORTED, "%lld tokens, but the model has %lld positions", (long long)n.size, (long long)rows);
        return wml_nn_hint(b, "give a smaller sequence_length with --shape-config");
    }
    struct wml_value *part = wml_nn_rows(b, table, offset, offset + (n.size >= 0 ? n.size : rows));
    if (n.size < 0) part = wml_nn_slice_to(b, part, 0, wml_nn_extent(b, ids, axis), n);
    return part; /* [n, width]: broadcasts over the batch */
}
