/* The map of ranges: names and values live in its arena. */
#include "calib/ranges.h"

#include <assert.h>
#include <math.h>

void wml_ranges_release(struct wml_ranges *r)
{
    wml_map_release(&r->map);
    wml_arena_release(&r->arena);
    *r = (struct wml_ranges){0};
}

const struct wml_range *wml_ranges_find(const struct wml_ranges *r, struct wml_str tensor)
{
    return wml_map_get(&r->map, tensor);
}

void wml_ranges_put(struct wml_ranges *r, struct wml_str tensor, struct wml_range range)
{
    assert(isfinite(range.low) && isfinite(range.high) && range.low <= range.high);
    struct wml_range *at = wml_map_get(&r->map, tensor);
    if (!at) {
        at = WML_NEW(&r->arena, struct wml_range);
        wml_map_put(&r->map, wml_arena_str(&r->arena, tensor), at);
    }
    *at = range;
}
