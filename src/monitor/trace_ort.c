/* ONNX Runtime's session profile: JSON events. A run is a "model_run" span; an event belongs to the run whose
 * span holds its start. Node events are "<node>_kernel_time" with the provider in args; nodes that an EP
 * compiled together appear as one event. The OpenVINO EP adds its own operators as "OV::<name>" events with the
 * name of the ORT event around them. Nodes inside sub-graphs are counted in their parent as well. */
#include "monitor/trace.h"

#include "base/map.h"
#include "text/json.h"

enum { MAX_EVENTS = 20 << 20 };

struct span { double from, to; };

struct reader {
    struct wml_trace *t;
    WML_VEC(struct span) run; /* in order of time */
    size_t warmup;
    struct wml_map index;    /* key -> row + 1 */
    struct wml_map expanded; /* ORT events that an EP explains by its own */
};

static int by_start(const void *a, const void *b)
{
    double x = ((const struct span *)a)->from, y = ((const struct span *)b)->from;
    return x < y ? -1 : x > y;
}

static void find_runs(struct reader *r, const struct wml_json_val *events)
{
    struct wml_json_iter it = {0};
    struct wml_str key;
    const struct wml_json_val *e;
    while (wml_json_next(events, &it, &key, &e)) {
        if (!wml_str_is(wml_json_get_str(e, "name"), "model_run")) continue;
        double from = wml_json_get_num(e, "ts", 0);
        struct span s = {from, from + wml_json_get_num(e, "dur", 0)};
        WML_PUSH(&r->run, s);
    }
    if (r->run.len) qsort(r->run.at, r->run.len, sizeof *r->run.at, by_start);
}

/* Index of the run that holds the time, SIZE_MAX: none. */
static size_t run_at(const struct reader *r, double ts)
{
    size_t low = 0, high = r->run.len;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (r->run.at[mid].to < ts) low = mid + 1;
        else high = mid;
    }
    return low < r->run.len && r->run.at[low].from <= ts ? low : SIZE_MAX;
}

static void add(struct reader *r, struct wml_str name, struct wml_str op, struct wml_str ep, bool fused, size_t run,
                double ts, double us)
{
    struct wml_trace *t = r->t;
    struct wml_str key = wml_arena_fmt(&t->arena, "%.*s|%.*s|%.*s", WML_ARG(ep), WML_ARG(op), WML_ARG(name));
    uintptr_t at = (uintptr_t)wml_map_get(&r->index, key);
    if (!at) {
        struct wml_trace_row row = {.name = wml_arena_str(&t->arena, name), .op_type = wml_arena_str(&t->arena, op),
                                    .ep = wml_arena_str(&t->arena, ep), .op_id = -1, .fused = fused,
                                    .start_us = ts - r->run.at[run].from};
        for (size_t i = r->warmup; i < r->run.len; i++) WML_PUSH(&row.sample_us, 0.0);
        WML_PUSH(&t->row, row);
        at = t->row.len;
        wml_map_put(&r->index, key, (void *)at);
    }
    t->row.at[at - 1].sample_us.at[run - r->warmup] += us;
}

/* "QNNExecutionProvider_123_0": an EP's name for what it compiled. */
static bool is_fused(struct wml_str op, struct wml_str ep)
{
    return wml_str_is(op, "EPContext") || (op.len > ep.len && ep.len && memcmp(op.ptr, ep.ptr, ep.len) == 0);
}

static void take(struct reader *r, const struct wml_json_val *e)
{
    struct wml_str name = wml_json_get_str(e, "name"), suffix = WML_STR("_kernel_time");
    const struct wml_json_val *args = wml_json_get(e, "args");
    double ts = wml_json_get_num(e, "ts", -1), us = wml_json_get_num(e, "dur", 0);
    bool node = wml_str_ends(name, suffix.ptr) && wml_json_is_string(wml_json_get(args, "provider"));
    bool ov = wml_str_starts(name, "OV::") && wml_str_is(wml_json_get_str(args, "ov_status"), "EXECUTED");
    if (!node && !ov) return;
    size_t run = run_at(r, ts);
    if (run == SIZE_MAX) {
        r->t->dropped++;
        return;
    }
    if (ov) {
        struct wml_str parent = wml_arena_str(&r->t->arena, wml_json_get_str(args, "parent_ort_event_name"));
        if (parent.len) wml_map_put(&r->expanded, parent, r);
    }
    if (run < r->warmup) return;
    if (node) {
        struct wml_str op = wml_json_get_str(args, "op_name"), ep = wml_json_get_str(args, "provider");
        add(r, wml_str_sub(name, 0, name.len - suffix.len), op, ep, is_fused(op, ep), run, ts, us);
    } else {
        add(r, wml_str_sub(name, 4, name.len), wml_json_get_str(args, "ov_node_type"), wml_json_get_str(args, "ep"), false,
            run, ts, us);
        r->t->node_rows++;
    }
}

/* Fused rows that the EP explained go; means are taken. */
static void finish(struct reader *r)
{
    struct wml_trace *t = r->t;
    size_t kept = 0;
    t->runs = r->run.len > r->warmup ? r->run.len - r->warmup : 0;
    for (size_t i = 0; i < t->row.len; i++) {
        struct wml_trace_row *row = &t->row.at[i];
        struct wml_str event = wml_arena_fmt(&t->arena, "%.*s_kernel_time", WML_ARG(row->name));
        if (row->fused) t->partitions++;
        if (row->fused && wml_map_has(&r->expanded, event)) {
            WML_VEC_RELEASE(&row->sample_us);
            continue;
        }
        double sum = 0;
        for (size_t k = 0; k < row->sample_us.len; k++) sum += row->sample_us.at[k];
        row->duration_us = row->sample_us.len ? sum / (double)row->sample_us.len : 0;
        t->row.at[kept++] = *row;
    }
    t->row.len = kept;
}

bool wml_trace_ort(struct wml_str json, size_t warmup, size_t runs, struct wml_trace *out, struct wml_err *err)
{
    struct reader r = {.t = out, .warmup = warmup};
    struct wml_json_doc *doc = NULL;
    struct wml_json_iter it = {0};
    struct wml_str key;
    const struct wml_json_val *e;
    (void)runs;
    if (!wml_json_parse(json, &doc, err)) return wml_wrap(err, "ONNX Runtime's profile");
    const struct wml_json_val *events = wml_json_root(doc);
    bool ok = wml_json_is_array(events) && wml_json_len(events) <= MAX_EVENTS;
    if (!ok) wml_fail(err, WML_E_FORMAT, "ONNX Runtime's profile is no list of events");
    if (ok) {
        find_runs(&r, events);
        while (wml_json_next(events, &it, &key, &e)) take(&r, e);
        finish(&r);
    }
    wml_map_release(&r.index);
    wml_map_release(&r.expanded);
    WML_VEC_RELEASE(&r.run);
    wml_json_free(doc);
    return ok;
}
