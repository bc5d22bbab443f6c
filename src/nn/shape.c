/* nn/shape.c - sizes of values: what is known while the graph is built. */
#include <inttypes.h>
#include "nn/ops.h"

struct wml_nn_shape wml_nn_shape(const struct wml_value *v)
{
    struct wml_nn_shape s = {0};
    const int64_t rank = v ? wml_value_rank(v) : -1;
    if (rank < 0 || rank > WML_NN_MAX_RANK) return s;
    s.rank = (size_t)rank;
    for (size_t i = 0; i < s.rank; i++) s.at[i] = wml_value_axis(v, i);
    return s;
}

size_t wml_nn_rank(const struct wml_value *v)
{
    return v ? (size_t)wml_value_rank(v) : 0;
}

struct wml_axis wml_nn_axis(const struct wml_value *v, int axis)
{
    const struct wml_nn_shape s = wml_nn_shape(v);
    const size_t i = axis < 0 ? s.rank - (size_t)-axis : (size_t)axis;
    return i < s.rank ? s.at[i] : (struct wml_axis){.size = -1};
}

bool wml_nn_is_fixed(const struct wml_value *v, int axis)
{
    return wml_nn_axis(v, axis).size >= 0;
}

static void print_sizes(struct wml_buf *out, const struct wml_nn_shape *s)
{
    wml_buf_char(out, '[');
    for (size_t i = 0; i < s->rank; i++) {
        if (s->at[i].size >= 0) wml_buf_fmt(out, "%s%" PRId64, i ? "," : "", s->at[i].size);
        else wml_buf_fmt(out, "%s%.*s", i ? "," : "", WML_ARG(s->at[i].symbol.len ? s->at[i].symbol : WML_STR("?")));
    }
    wml_buf_char(out, ']');
}

void *wml_nn_misfit(struct wml_nn *b, const char *op, const struct wml_nn_shape *x, const struct wml_nn_shape *y)
{
    struct wml_buf sizes = {.max = 400};
    const struct wml_str path = b->depth ? b->scope[b->depth - 1].path : WML_NO_STR;
    print_sizes(&sizes, x);
    wml_buf_cstr(&sizes, " and ");
    print_sizes(&sizes, y);
    wml_nn_fail(b, WML_E_FORMAT, "the sizes in '%.*s' do not fit: %s of %s", WML_ARG(path), op, wml_buf_text(&sizes));
    wml_nn_hint(b, "numbers in config.json contradict each other, or the sizes given for inputs");
    wml_buf_release(&sizes);
    return NULL;
}

int64_t wml_nn_size(struct wml_nn *b, const struct wml_value *v, int axis, const char *what)
{
    if (b->failed || !v) return 1;
    const struct wml_axis a = wml_nn_axis(v, axis);
    if (a.size >= 0) return a.size;
    if (a.symbol.len) wml_nn_fail(b, WML_E_UNSUPPORTED, "%s must have a fixed size, not '%.*s'", what, WML_ARG(a.symbol));
    else wml_nn_fail(b, WML_E_UNSUPPORTED, "%s must have a fixed size, but it follows from one that is open", what);
    wml_nn_hint(b, "leave that axis out of --dynamic-axes; set its size with --shape-config or --input-specs");
    return 1;
}

struct wml_value *wml_nn_extent(struct wml_nn *b, struct wml_value *v, int axis)
{
    if (b->failed || !v) return NULL;
    const struct wml_axis a = wml_nn_axis(v, axis);
    if (a.size >= 0) return wml_nn_ints(b, 1, &a.size);
    const int64_t at = axis < 0 ? (int64_t)wml_nn_rank(v) + axis : axis;
    const struct wml_str key = wml_arena_fmt(&b->m->arena, "extent %.*s %" PRId64, WML_ARG(v->name), at);
    struct wml_value *known = wml_map_get(&b->shared, key);
    if (known) return known;
    struct wml_node *n = wml_nn_node(b, "", "Shape", 1, &v);
    wml_attr_set_int(n, "start", at);
    wml_attr_set_int(n, "end", at + 1);
    struct wml_value *out = wml_nn_out(b, n, WML_I64, &(struct wml_nn_shape){1, {{.size = 1}}});
    wml_map_put(&b->shared, key, out);
    return out;
}
