/* What all traces share. */
#include "monitor/trace.h"

static int by_duration(const void *a, const void *b)
{
    const struct wml_trace_row *x = a, *y = b;
    if (x->duration_us != y->duration_us) return x->duration_us < y->duration_us ? 1 : -1;
    return wml_str_cmp(x->name, y->name);
}

void wml_trace_finish(struct wml_trace *t)
{
    double sum = 0;
    for (size_t i = 0; i < t->row.len; i++) sum += t->row.at[i].duration_us;
    if (t->total_us <= 0) t->total_us = sum;
    for (size_t i = 0; i < t->row.len; i++)
        if (!t->row.at[i].htp) t->row.at[i].percent = t->total_us > 0 ? 100 * t->row.at[i].duration_us / t->total_us : 0;
    if (t->row.len) qsort(t->row.at, t->row.len, sizeof *t->row.at, by_duration);
}

void wml_trace_release(struct wml_trace *t)
{
    for (size_t i = 0; i < t->row.len; i++) WML_VEC_RELEASE(&t->row.at[i].sample_us);
    WML_VEC_RELEASE(&t->row);
    wml_arena_release(&t->arena);
    *t = (struct wml_trace){0};
}
