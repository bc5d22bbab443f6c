/* Ranges of inputs from metadata, e.g. token ids that stay inside the vocabulary. */
#include "flow/ranges.h"

#include <math.h>

#include "graph/edit.h"
#include "text/json.h"

void wml_model_ranges(const struct wml_model *m, struct wml_arena *arena, struct wml_feed_spec *into)
{
    struct wml_str text = wml_entries_get(&m->metadata, "winml.io.inputs");
    struct wml_json_doc *doc = NULL;
    struct wml_err ignored = {0};
    if (!text.len || !wml_json_parse(text, &doc, &ignored)) return;
    const struct wml_json_val *list = wml_json_root(doc);
    size_t n = wml_json_is_array(list) ? wml_json_len(list) : 0, used = 0;
    struct wml_feed_range *range = WML_NEW_ARRAY(arena, struct wml_feed_range, n + 1);
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
    into->n_ranges = used;
}
