/* calib/ranges.h - the range of values that each tensor took: what calibration finds, a cache keeps and quant uses.
 *
 * Order of insertion is kept. low <= high, both finite: who has no such numbers has no range. They are exact values of
 * the tensor's own type where they were observed. Zero is a valid empty set. */
#ifndef WML_CALIB_RANGES_H
#define WML_CALIB_RANGES_H

#include "base/dtype.h"
#include "base/map.h"
#include "base/vec.h"

struct wml_range {
    double low, high;
    enum wml_dtype dtype; /* of the tensor's elements: WML_F32 or WML_F16. ORT's caches can lose it: then WML_F32 */
};

struct wml_ranges {
    struct wml_arena arena; /* names and ranges */
    struct wml_map map;     /* name -> struct wml_range *; walk entry[0 .. len) that are live */
};

void wml_ranges_release(struct wml_ranges *r);
/* NULL: no range of this tensor. */
const struct wml_range *wml_ranges_find(const struct wml_ranges *r, struct wml_str tensor);
/* Adds, or replaces in its old place; the name is copied. */
void wml_ranges_put(struct wml_ranges *r, struct wml_str tensor, struct wml_range range);

#endif
