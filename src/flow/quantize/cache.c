/* What the ranges in a calibration cache depend on, so that those of other options are refused. */
#include "flow/quantize/internal.h"

#include <inttypes.h>

#include "os/path.h"

static const char *yes(bool v)
{
    return v ? "yes" : "no";
}

static const char *earlier_passes(struct wml_quantize_run *r, const struct wml_quantize_step *s)
{
    struct wml_buf names = {0};
    for (const struct wml_quantize_step *p = r->step; p < s; p++) wml_buf_fmt(&names, "%s%s", names.len ? " " : "", p->method->name);
    const char *text = names.len ? wml_arena_cstr(&r->arena, wml_buf_view(&names)) : "none";
    wml_buf_release(&names);
    return text;
}

/* Its factors come from the samples. */
static const char *smoothing(struct wml_quantize_run *r)
{
    const struct wml_quantize_args *a = r->args;
    const double alpha = a->quant.smooth;
    if (alpha <= 0) return "no";
    if (a->data) return wml_arena_fmt(&r->arena, "%g on %zu samples of %.*s", alpha, a->samples, WML_ARG(wml_path_name(wml_str(a->data)))).ptr;
    return wml_arena_fmt(&r->arena, "%g on %zu random samples of seed %" PRIu64, alpha, a->samples, a->seed).ptr;
}

void wml_quantize_cache_facts(struct wml_quantize_run *r, const struct wml_quantize_step *s, const struct wml_range_opts *o, struct wml_cache_facts *out)
{
    enum { MOST = 8 };
    struct wml_cache_fact *at = WML_NEW_ARRAY(&r->arena, struct wml_cache_fact, MOST);
    const struct wml_range_method *m = wml_range_method_find(r->args->method);
    size_t n = 0;
    at[n++] = (struct wml_cache_fact){"earlier passes", earlier_passes(r, s), "none", NULL};
    at[n++] = (struct wml_cache_fact){"equalize", yes(s->opts.equalize), "no", NULL};
    at[n++] = (struct wml_cache_fact){"smooth-quant", smoothing(r), "no", NULL};
    if (m && m->bins) at[n++] = (struct wml_cache_fact){"bins", wml_arena_fmt(&r->arena, "%u", o->bins ? o->bins : m->bins).ptr, NULL, NULL};
    if (m && m->percentile > 0)
        at[n++] = (struct wml_cache_fact){"percentile", wml_arena_fmt(&r->arena, "%.10g", o->percentile > 0 ? o->percentile : m->percentile).ptr, NULL, NULL};
    if (m && m->fits_type) {
        at[n++] = (struct wml_cache_fact){"activation type", wml_dtype_name((int)o->integer), NULL, NULL};
        at[n++] = (struct wml_cache_fact){"symmetric", yes(o->form == WML_RANGE_SYMMETRIC), "no", NULL};
    }
    if (r->fingerprint[0]) at[n++] = (struct wml_cache_fact){"model", r->fingerprint, NULL, &r->other_model};
    *out = (struct wml_cache_facts){at, n, s->opts.smooth > 0};
}
