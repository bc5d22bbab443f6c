/* Feed specs in the requests of jobs. */
#include <inttypes.h>
#include "worker/feed.h"

void wml_feed_spec_put(struct wml_json *j, const struct wml_feed_spec *s)
{
    wml_json_begin(j, '{');
    wml_json_key(j, "seed");
    wml_json_put_uint(j, s->seed);
    wml_json_key(j, "batch");
    wml_json_put_int(j, s->batch);
    wml_json_key(j, "small");
    wml_json_put_bool(j, s->small);
    wml_json_key(j, "shapes");
    wml_json_begin(j, '{');
    for (size_t i = 0; i < s->n_shapes; i++) {
        wml_json_key_str(j, s->shape[i].name);
        wml_json_begin(j, '[');
        for (size_t k = 0; k < s->shape[i].rank; k++) wml_json_put_int(j, s->shape[i].dim[k]);
        wml_json_end(j, ']');
    }
    wml_json_end(j, '}');
    wml_json_key(j, "dims");
    wml_json_begin(j, '{');
    for (size_t i = 0; i < s->n_dims; i++) {
        wml_json_key_str(j, s->dim[i].symbol);
        wml_json_put_int(j, s->dim[i].size);
    }
    wml_json_end(j, '}');
    wml_json_key(j, "ranges");
    wml_json_begin(j, '{');
    for (size_t i = 0; i < s->n_ranges; i++) {
        wml_json_key_str(j, s->range[i].name);
        wml_json_begin(j, '[');
        wml_json_put_num(j, s->range[i].low);
        wml_json_put_num(j, s->range[i].high);
        wml_json_end(j, ']');
    }
    wml_json_end(j, '}');
    if (s->data) {
        wml_json_key(j, "data");
        wml_json_put_cstr(j, s->data);
    }
    wml_json_end(j, '}');
}

static void get_shapes(const struct wml_json_val *v, struct wml_arena *arena, struct wml_feed_spec *out)
{
    struct wml_json_iter it = {0};
    struct wml_str key;
    const struct wml_json_val *value;
    struct wml_feed_shape *shape = WML_NEW_ARRAY(arena, struct wml_feed_shape, wml_json_len(v) + 1);
    while (wml_json_next(v, &it, &key, &value)) {
        size_t rank = wml_json_len(value);
        int64_t *dim = WML_NEW_ARRAY(arena, int64_t, rank + 1);
        for (size_t k = 0; k < rank; k++) dim[k] = wml_json_int(wml_json_at(value, k), -1);
        shape[out->n_shapes++] = (struct wml_feed_shape){key, dim, rank};
    }
    out->shape = shape;
}

bool wml_feed_spec_get(const struct wml_json_val *v, struct wml_arena *arena, struct wml_feed_spec *out,
                       struct wml_err *err)
{
    struct wml_json_iter it = {0};
    struct wml_str key;
    const struct wml_json_val *value;
    *out = (struct wml_feed_spec){0};
    if (wml_json_is_null(v)) return true;
    if (!wml_json_is_object(v)) return wml_fail(err, WML_E_USAGE, "the feed of a job must be an object");
    out->seed = (uint64_t)wml_json_get_int(v, "seed", 0);
    out->batch = wml_json_get_int(v, "batch", 0);
    out->small = wml_json_get_bool(v, "small", false);
    get_shapes(wml_json_get(v, "shapes"), arena, out);
    const struct wml_json_val *dims = wml_json_get(v, "dims"), *ranges = wml_json_get(v, "ranges");
    struct wml_feed_dim *dim = WML_NEW_ARRAY(arena, struct wml_feed_dim, wml_json_len(dims) + 1);
    while (wml_json_next(dims, &it, &key, &value))
        dim[out->n_dims++] = (struct wml_feed_dim){key, wml_json_int(value, -1)};
    out->dim = dim;
    struct wml_feed_range *range = WML_NEW_ARRAY(arena, struct wml_feed_range, wml_json_len(ranges) + 1);
    it = (struct wml_json_iter){0};
    while (wml_json_next(ranges, &it, &key, &value))
        range[out->n_ranges++] = (struct wml_feed_range){key, wml_json_num(wml_json_at(value, 0), 0),
                                                         wml_json_num(wml_json_at(value, 1), 1)};
    out->range = range;
    struct wml_str data = wml_json_get_str(v, "data");
    if (data.len) out->data = wml_arena_cstr(arena, data);
    return true;
}
