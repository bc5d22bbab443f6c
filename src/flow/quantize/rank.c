/* Runs the float and the quantised model side by side, their inner values as outputs, and sums up the differences. The values
 * are shown group by group, since all of them at once can take many times the memory of the model. */
#include "flow/quantize/rank_internal.h"

#include <math.h>

#include "flow/oracle.h"
#include "flow/ranges.h"
#include "flow/watch.h"
#include "graph/edit.h"
#include "graph/graph.h"
#include "onnx/onnx.h"
#include "os/crew.h"
#include "os/thread.h"

static const uint64_t GROUP_BYTES = UINT64_C(256) << 20;

struct side { /* one of the two models, with a group's values as outputs */
    struct wml_model *model;
    struct wml_session *session;
    struct wml_map output; /* name -> number + 1 */
    struct wml_run *run;
};

struct run {
    struct wml_ctx *cx;
    struct wml_rank *out;
    struct wml_arena *arena; /* of the group */
    struct side before, after;
    struct wml_rank_pairs pairs;
    struct wml_samples *samples;
    size_t done, total; /* runs */
};

/* --- groups --- */

/* What a pair takes: its value, twice in the quantised model and once in the float model. */
static void note_size(void *arg, int64_t slot, const int64_t *tag, const struct wml_tensor_view *view)
{
    uint64_t *bytes = arg;
    (void)tag;
    bytes[slot] = 3 * (uint64_t)view->bytes;
}

/* The sizes that values have in the first sample, in the order of the pairs. */
static bool measure_pairs(struct run *r, struct wml_feed *feed, uint64_t *bytes, struct wml_err *err)
{
    static const int64_t size[] = {WML_WATCH_TAG};
    const int64_t tag[WML_WATCH_TAG] = {0};
    struct wml_tensor_view view = {.dtype = WML_I64, .rank = 1, .dim = size, .data = tag, .bytes = sizeof tag, .is_tensor = true};
    const struct wml_observer observer = {.arg = bytes, .see = note_size};
    struct wml_value **show = WML_NEW_ARRAY(r->arena, struct wml_value *, r->pairs.v.len);
    struct wml_session *session = NULL;
    struct wml_run *run = NULL;
    for (size_t i = 0; i < r->pairs.v.len; i++) show[i] = r->pairs.v.at[i].post;
    WML_PUSH(&feed->view, view);
    bool ok = wml_flow_watch(r->cx, r->after.model, show, r->pairs.v.len, &observer, 0, &session, err) &&
              wml_run_new(session, feed->view.at, feed->view.len, &run, err) && wml_run_watched(run, 0, err);
    wml_run_free(run);
    wml_session_close(session);
    return ok || wml_wrap(err, "the result");
}

static size_t group_end(const uint64_t *bytes, size_t from, size_t n)
{
    uint64_t sum = bytes[from];
    size_t i = from + 1;
    while (i < n && sum + bytes[i] <= GROUP_BYTES) sum += bytes[i++];
    return i;
}

/* --- one group --- */

static bool open_side(struct run *r, struct side *s, struct wml_value *const *show, size_t n, struct wml_err *err)
{
    struct wml_skeleton_opts part = {.also = show, .n_also = n};
    struct wml_session_opts opts = {0};
    size_t n_out;
    if (!wml_flow_session(r->cx, s->model, &part, &opts, &s->session, err)) return false;
    const struct wml_io *io = wml_session_outputs(s->session, &n_out);
    for (size_t i = 0; i < n_out; i++) wml_map_put(&s->output, wml_str(io[i].name), (void *)(uintptr_t)(i + 1));
    return true;
}

static void close_side(struct side *s)
{
    wml_session_close(s->session);
    wml_map_release(&s->output);
    s->session = NULL;
}

static bool view_of(const struct side *s, const struct wml_value *v, struct wml_tensor_view *out, struct wml_err *err)
{
    size_t at = (size_t)(uintptr_t)wml_map_get(&s->output, v->name);
    if (!at) return wml_fail(err, WML_E_INTERNAL, "ONNX Runtime does not show value '%.*s'", WML_ARG(v->name));
    return wml_run_output(s->run, at - 1, out, err);
}

struct views { struct wml_tensor_view pre, post, real; };

/* What the cores share while they go from pair to pair. */
struct look {
    const struct run *r;
    const struct views *views;
    size_t from;
};

static uint64_t count_of(const struct wml_tensor_view *v)
{
    unsigned bits = wml_dtype_info((int)v->dtype)->bits;
    return v->is_tensor && v->data && bits ? v->bytes / (bits / 8) : 0;
}

static void compare_cut(const struct wml_rank_pair *p, const struct wml_tensor_view *x, const struct wml_tensor_view *y, uint64_t n, struct wml_compare *sum)
{
    for (uint64_t i = 0; i < n; i++) {
        double a = wml_dtype_load((int)x->dtype, x->data, (size_t)i), b = wml_dtype_load((int)y->dtype, y->data, (size_t)i);
        a = isnan(a) ? a : fmin(fmax(a, p->low), p->high);
        wml_compare_more(WML_F64, &a, WML_F64, &b, 1, sum);
    }
}

static bool look_at(void *arg, size_t i, unsigned worker, struct wml_err *err)
{
    const struct look *l = arg;
    const struct views *v = &l->views[i];
    const struct wml_rank_pair *p = &l->r->pairs.v.at[l->from + i];
    struct wml_rank_row *row = &l->r->out->row.at[p->row];
    uint64_t n = count_of(&v->post);
    (void)worker, (void)err;
    if (count_of(&v->pre) == n && p->cuts) compare_cut(p, &v->pre, &v->post, n, &row->own);
    else if (count_of(&v->pre) == n) wml_compare_more((int)v->pre.dtype, v->pre.data, (int)v->post.dtype, v->post.data, n, &row->own);
    row->has_total = row->has_total && count_of(&v->real) == n;
    if (row->has_total && p->masks) compare_cut(p, &v->real, &v->post, n, &row->total);
    else if (row->has_total) wml_compare_more((int)v->real.dtype, v->real.data, (int)v->post.dtype, v->post.data, n, &row->total);
    return true;
}

static bool compare(struct run *r, size_t from, size_t to, struct wml_err *err)
{
    struct views *views = WML_NEW_ARRAY(r->arena, struct views, to - from);
    struct look l = {.r = r, .views = views, .from = from};
    for (size_t i = from; i < to; i++) {
        const struct wml_rank_pair *p = &r->pairs.v.at[i];
        struct views *v = &views[i - from];
        if (!view_of(&r->after, p->pre, &v->pre, err) || !view_of(&r->after, p->post, &v->post, err)) return false;
        if (p->real && !view_of(&r->before, p->real, &v->real, err)) return false;
    }
    (void)wml_crew_run(wml_cpu_count(), to - from, look_at, &l, NULL);
    return true;
}

static bool one_run(const struct wml_feed *feed, struct side *s, struct wml_err *err)
{
    return wml_run_new(s->session, feed->view.at, feed->view.len, &s->run, err) && wml_run_watched(s->run, 0, err);
}

static bool one_sample(struct run *r, size_t i, size_t from, size_t to, struct wml_err *err)
{
    struct wml_feed feed = {0};
    bool ok = wml_samples_make(r->samples, i, &feed, err) && (one_run(&feed, &r->before, err) || wml_wrap(err, "the source")) &&
              (one_run(&feed, &r->after, err) || wml_wrap(err, "the result")) && compare(r, from, to, err);
    wml_run_free(r->before.run);
    wml_run_free(r->after.run);
    r->before.run = r->after.run = NULL;
    wml_feed_release(&feed);
    return ok || wml_wrap(err, "sample %zu", i + 1);
}

static bool open_group(struct run *r, size_t from, size_t to, struct wml_err *err)
{
    struct wml_value **before = WML_NEW_ARRAY(r->arena, struct wml_value *, to - from), **after = WML_NEW_ARRAY(r->arena, struct wml_value *, 2 * (to - from));
    size_t n_before = 0, n_after = 0;
    struct wml_map seen[2] = {{0}, {0}}; /* two pairs may share a value: one that is converted */
    for (size_t i = from; i < to; i++) {
        const struct wml_rank_pair *p = &r->pairs.v.at[i];
        if (p->real && !wml_map_put(&seen[0], p->real->name, p->real)) before[n_before++] = p->real;
        if (!wml_map_put(&seen[1], p->pre->name, p->pre)) after[n_after++] = p->pre;
        if (!wml_map_put(&seen[1], p->post->name, p->post)) after[n_after++] = p->post;
    }
    bool ok = open_side(r, &r->before, before, n_before, err) && open_side(r, &r->after, after, n_after, err);
    wml_map_release(&seen[0]);
    wml_map_release(&seen[1]);
    return ok;
}

static bool one_group(struct run *r, size_t from, size_t to, struct wml_err *err)
{
    struct wml_arena arena = {0};
    r->arena = &arena;
    bool ok = open_group(r, from, to, err);
    for (size_t i = 0; ok && i < wml_samples_count(r->samples); i++) {
        wml_note_progress(r->cx, "Ranking", NULL, r->done++, r->total, "samples");
        ok = wml_check_cancel(r->cx, err) && one_sample(r, i, from, to, err);
    }
    close_side(&r->before);
    close_side(&r->after);
    wml_arena_release(&arena);
    return ok;
}

/* --- all --- */

static bool run_groups(struct run *r, const struct wml_samples_spec *spec, struct wml_err *err)
{
    struct wml_session *look = NULL;
    struct wml_session_opts opts = {.look_only = true};
    struct wml_feed feed = {0};
    struct wml_arena arena = {0};
    struct wml_samples_spec samples = *spec;
    size_t n_inputs = 0, n = r->pairs.v.len, groups = 0;
    uint64_t *bytes = WML_NEW_ARRAY(&arena, uint64_t, n);
    r->arena = &arena;
    wml_model_ranges(r->before.model, &arena, &samples.feed);
    bool ok = wml_flow_session(r->cx, r->before.model, NULL, &opts, &look, err);
    const struct wml_io *input = ok ? wml_session_inputs(look, &n_inputs) : NULL;
    ok = ok && wml_samples_open(&samples, input, n_inputs, &r->samples, err) && wml_samples_make(r->samples, 0, &feed, err) &&
         measure_pairs(r, &feed, bytes, err);
    for (size_t i = 0; ok && i < n; groups++) i = group_end(bytes, i, n);
    r->out->samples = ok ? wml_samples_count(r->samples) : 0;
    r->total = groups * r->out->samples;
    for (size_t i = 0, end; ok && i < n; i = end) {
        end = group_end(bytes, i, n);
        ok = one_group(r, i, end, err);
    }
    wml_feed_release(&feed);
    wml_samples_close(r->samples);
    wml_session_close(look);
    wml_arena_release(&arena);
    return ok;
}

static double ratio(const struct wml_rank_row *r)
{
    return r->own.n == 0 || r->own.equal ? INFINITY : r->own.sqnr_db;
}

static int worse(const void *a, const void *b)
{
    const struct wml_rank_row *const *x = a, *const *y = b;
    double p = ratio(*x), q = ratio(*y);
    return p < q ? -1 : p > q ? 1 : *x < *y ? -1 : *x > *y;
}

static void sort(struct wml_rank *out)
{
    size_t n = out->row.len;
    struct wml_rank_row *all = WML_NEW_ARRAY(&out->arena, struct wml_rank_row, n + 1);
    const struct wml_rank_row **at = WML_NEW_ARRAY(&out->arena, const struct wml_rank_row *, n + 1);
    for (size_t i = 0; i < n; i++) {
        all[i] = out->row.at[i];
        at[i] = &all[i];
    }
    if (n) qsort(at, n, sizeof(void *), worse);
    for (size_t i = 0; i < n; i++) out->row.at[i] = *at[i];
}

bool wml_rank_measure(struct wml_ctx *cx, const char *before, const char *after, const struct wml_samples_spec *samples,
                      const struct wml_quant_mask *mask, size_t n_masks, struct wml_rank *out, struct wml_err *err)
{
    struct run r = {.cx = cx, .out = out};
    *out = (struct wml_rank){0};
    wml_note_progress(cx, "Ranking", NULL, 0, 0, NULL);
    bool ok = wml_onnx_load(before, &r.before.model, err) && wml_onnx_load(after, &r.after.model, err) &&
              wml_rank_find(cx, r.before.model, r.after.model, mask, n_masks, out, &r.pairs, err) && (!r.pairs.v.len || run_groups(&r, samples, err));
    wml_model_free(r.before.model);
    wml_model_free(r.after.model);
    if (ok) sort(out);
    else wml_rank_release(out);
    return ok;
}

void wml_rank_release(struct wml_rank *r)
{
    WML_VEC_RELEASE(&r->row);
    wml_arena_release(&r->arena);
    *r = (struct wml_rank){0};
}
