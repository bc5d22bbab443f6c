/* Ranges of inputs, e.g. token ids that stay inside the vocabulary; and sizes that the weights behind an input ask for. */
#include "flow/ranges.h"

#include <math.h>

#include "graph/edit.h"
#include "graph/tensor.h"
#include "graph/type.h"
#include "text/json.h"

/* The readers of v, through nodes that hand integers on as they are. */
static bool is_passed_on(const struct wml_node *n)
{
    return wml_node_is(n, "Cast") || wml_node_is(n, "Reshape") || wml_node_is(n, "Unsqueeze") || wml_node_is(n, "Squeeze") ||
           wml_node_is(n, "Identity") || wml_node_is(n, "Flatten");
}

/* The size of the axis that n picks from by the indices in slot 1; -1: n is no Gather, or it is not known. */
static int64_t picked_from(const struct wml_node *n)
{
    const bool blocks = wml_node_is_in(n, "com.microsoft", "GatherBlockQuantized");
    if ((!blocks && !wml_node_is(n, "Gather")) || !n->in[0]) return -1;
    int64_t rank = wml_value_rank(n->in[0]), axis = wml_attr_int(n, blocks ? "gather_axis" : "axis", 0);
    if (axis < 0) axis += rank;
    return axis >= 0 && axis < rank ? wml_value_axis(n->in[0], (size_t)axis).size : -1;
}

static bool range_from_use(struct wml_model *m, const struct wml_value *v, unsigned depth, double *low, double *high)
{
    for (const struct wml_use *u = v->uses; u; u = u->next) {
        const struct wml_node *n = u->node;
        int64_t *at;
        size_t len;
        int64_t size = u->slot == 1 ? picked_from(n) : -1;
        if (size >= 1) {
            *low = 0;
            *high = (double)(size - 1);
            return true;
        }
        if (wml_node_is(n, "Equal") && wml_value_rank(v) == 0) {
            struct wml_value *c = wml_node_in(n, 1 - u->slot);
            struct wml_tensor *t = c ? wml_value_tensor(c) : NULL;
            if (!t || !wml_tensor_ints(m, t, &at, &len, NULL) || len != 1) continue;
            *low = *high = (double)at[0];
            return true;
        }
        if (depth < 4 && is_passed_on(n) && u->slot == 0 && wml_node_out(n, 0) && range_from_use(m, n->out[0], depth + 1, low, high))
            return true;
    }
    return false;
}

static bool is_named(const struct wml_feed_range *range, size_t n, struct wml_str name)
{
    for (size_t i = 0; i < n; i++)
        if (wml_str_eq(range[i].name, name)) return true;
    return false;
}

static size_t from_graph(struct wml_model *m, struct wml_arena *arena, struct wml_feed_range *range, size_t used)
{
    size_t said = used;
    for (size_t i = 0; i < m->graph->inputs.len; i++) {
        const struct wml_value *v = m->graph->inputs.at[i];
        double low, high;
        if (v->init || !wml_dtype_is_integer((int)wml_value_elem(v)) || is_named(range, said, v->name)) continue;
        if (range_from_use(m, v, 0, &low, &high)) range[used++] = (struct wml_feed_range){wml_arena_str(arena, v->name), low, high};
    }
    return used;
}

/* --- sizes --- */

struct fits { int64_t rank, axis, size; }; /* what a reader asks of its input 0; axis < 0: from the end */

static int64_t size_of(const struct wml_value *w, int64_t axis)
{
    int64_t rank = w ? wml_value_rank(w) : 0;
    if (axis < 0) axis += rank;
    return axis >= 0 && axis < rank ? wml_value_axis(w, (size_t)axis).size : -1;
}

static bool asks(const struct wml_node *n, struct fits *out)
{
    const struct wml_value *w = wml_node_in(n, 1);
    const int64_t rank = w ? wml_value_rank(w) : 0, group = wml_attr_int(n, "group", 1);
    if (wml_node_is(n, "Conv") || wml_node_is(n, "ConvInteger")) *out = (struct fits){rank, 1, group > 0 ? size_of(w, 1) * group : -1};
    else if (wml_node_is(n, "ConvTranspose")) *out = (struct fits){rank, 1, size_of(w, 0)};
    else if (wml_node_is(n, "MatMul") || wml_node_is(n, "MatMulInteger")) *out = (struct fits){2, -1, size_of(w, rank > 1 ? -2 : 0)};
    else if (wml_node_is(n, "Gemm"))
        *out = (struct fits){2, wml_attr_int(n, "transA", 0) ? 0 : 1, size_of(w, wml_attr_int(n, "transB", 0) ? 1 : 0)};
    else if (wml_node_is(n, "LSTM") || wml_node_is(n, "GRU") || wml_node_is(n, "RNN")) *out = (struct fits){3, 2, size_of(w, 2)};
    else if (wml_node_is_in(n, "com.microsoft", "MatMulNBits")) *out = (struct fits){2, -1, wml_attr_int(n, "K", -1)};
    else return false;
    return out->rank > 0 && out->size > 0;
}

static bool keeps_sizes(const struct wml_node *n)
{
    return wml_node_is(n, "Cast") || wml_node_is(n, "Identity") || wml_str_ends(n->op_type, "QuantizeLinear") || wml_str_is(n->op_type, "DequantizeLinear");
}

static bool sizes_from_use(const struct wml_value *v, unsigned depth, struct fits *out)
{
    for (const struct wml_use *u = v->uses; u; u = u->next) {
        if (u->slot) continue;
        if (asks(u->node, out)) return true;
        if (depth < 4 && keeps_sizes(u->node) && wml_node_out(u->node, 0) && sizes_from_use(u->node->out[0], depth + 1, out)) return true;
    }
    return false;
}

static bool has_shape(const struct wml_feed_spec *spec, struct wml_str name)
{
    for (size_t i = 0; i < spec->n_shapes; i++)
        if (wml_str_eq(spec->shape[i].name, name)) return true;
    return false;
}

/* One size of input v, when the file leaves it open: by its symbol, so that other inputs follow, or by the axis. */
static void add_size(const struct wml_value *v, struct wml_arena *arena, struct wml_feed_shape *shape, size_t *n_shapes,
                     struct wml_feed_dim *dim, size_t *n_dims)
{
    struct fits f;
    int64_t rank = wml_value_rank(v);
    if (!sizes_from_use(v, 0, &f) || (rank >= 0 && rank != f.rank && f.axis >= 0)) return;
    int64_t wide = rank < 0 ? f.rank : rank, axis = f.axis < 0 ? f.axis + wide : f.axis;
    struct wml_axis open = {.size = -1};
    if (axis < 0 || axis >= wide) return;
    if (rank >= 0) open = wml_value_axis(v, (size_t)axis);
    if (open.size >= 0) return;
    if (open.symbol.len) {
        dim[(*n_dims)++] = (struct wml_feed_dim){wml_arena_str(arena, open.symbol), f.size};
        return;
    }
    int64_t *sizes = WML_NEW_ARRAY(arena, int64_t, (size_t)wide);
    for (int64_t i = 0; i < wide; i++) sizes[i] = i == axis ? f.size : -1;
    shape[(*n_shapes)++] = (struct wml_feed_shape){wml_arena_str(arena, v->name), sizes, (size_t)wide};
}

static void add_sizes(struct wml_model *m, struct wml_arena *arena, struct wml_feed_spec *into)
{
    const size_t n = m->graph->inputs.len;
    struct wml_feed_shape *shape = WML_NEW_ARRAY(arena, struct wml_feed_shape, into->n_shapes + n + 1);
    struct wml_feed_dim *dim = WML_NEW_ARRAY(arena, struct wml_feed_dim, into->n_dims + n + 1);
    size_t n_shapes = into->n_shapes, n_dims = into->n_dims;
    for (size_t i = 0; i < n_shapes; i++) shape[i] = into->shape[i];
    for (size_t i = 0; i < n_dims; i++) dim[i] = into->dim[i];
    for (size_t i = 0; i < n; i++) {
        const struct wml_value *v = m->graph->inputs.at[i];
        if (!v->init && !has_shape(into, v->name)) add_size(v, arena, shape, &n_shapes, dim, &n_dims);
    }
    into->shape = shape;
    into->n_shapes = n_shapes;
    into->dim = dim;
    into->n_dims = n_dims;
}

void wml_model_ranges(struct wml_model *m, struct wml_arena *arena, struct wml_feed_spec *into)
{
    struct wml_str text = wml_entries_get(&m->metadata, "winml.io.inputs");
    struct wml_json_doc *doc = NULL;
    struct wml_err ignored = {0};
    bool has = text.len && wml_json_parse(text, &doc, &ignored);
    const struct wml_json_val *list = has ? wml_json_root(doc) : NULL;
    size_t n = wml_json_is_array(list) ? wml_json_len(list) : 0, used = 0;
    struct wml_feed_range *range = WML_NEW_ARRAY(arena, struct wml_feed_range, n + m->graph->inputs.len + 1);
    for (size_t i = 0; i < n; i++) {
        const struct wml_json_val *v = wml_json_at(list, i), *r = wml_json_get(v, "value_range");
        struct wml_str name = wml_json_get_str(v, "name"), dtype = wml_json_get_str(v, "dtype");
        double low = wml_json_num(wml_json_at(r, 0), NAN), high = wml_json_num(wml_json_at(r, 1), NAN);
        if (!name.len || !(low < high) || fabs(low) > 1e15 || fabs(high) > 1e15) continue;
        /* The upper bound is not in the range; ours is, for integers. */
        bool whole = !wml_str_starts(dtype, "float") && !wml_str_starts(dtype, "bfloat");
        range[used++] = (struct wml_feed_range){wml_arena_str(arena, name), low, whole && high - low >= 1 ? high - 1 : high};
    }
    wml_json_free(doc);
    into->range = range;
    into->n_ranges = from_graph(m, arena, range, used);
    add_sizes(m, arena, into);
}
