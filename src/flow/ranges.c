/* Ranges of inputs, e.g. token ids that stay inside the vocabulary. */
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
}
