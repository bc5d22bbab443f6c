/* The extremes of all samples: ORT's MinMax. Nothing is clipped. */
#include "calib/internal.h"

static struct wml_range finish(const struct wml_range_state *s, const struct wml_range_opts *o)
{
    return wml_range_make(s->dtype, s->extent.low, s->extent.high, o->form == WML_RANGE_SYMMETRIC);
}

const struct wml_range_collect wml_collect_extent = {0};

const struct wml_range_method wml_range_minmax = {
    .name = "minmax", .ort_name = "MinMax", .passes = 1, .extremes = true, .collect = &wml_collect_extent, .finish = finish,
    .summary = "the smallest and the largest value of all samples",
};
