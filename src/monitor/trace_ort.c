/* ONNX Runtime's session profile: JSON events. A run is a "model_run" span; an event belongs to the run whose
 * span holds its start. Node events are "<node>_kernel_time" with the provider in args; nodes that an EP
 * compiled together appear as one event. A node that holds graphs (If, Loop, Scan) spans the events of the
 * nodes inside: it keeps the time that is its own. The OpenVINO EP adds its operators as "OV::<name>" events
 * with the name of the ORT event around them. */
#include "monitor/trace.h"

#include "base/map.h"
#include "text/json.h"

enum { MAX_EVENTS = 20 << 20, MAX_SAMPLES = 1 << 26 };

struct span { double from, to; };

struct event { /* strings are the document's */
    struct wml_str name, op, ep;
    int64_t thread;
    double from, us;
    double own_us; /* without the events inside */
    size_t run;
    bool fused;
};

struct reader {
    struct wml_trace *t;
    WML_VEC(struct span) run; /* in order of time */
    WML_VEC(struct event) event;
    size_t warmup;
    struct wml_map index;    /* key -> row + 1 */
    struct wml_map expanded; /* ORT events that an EP explains by its own */
};

static int by_start(const void *a, const void *b)
{
    double x = ((const struct span *)a)->from, y = ((const struct span *)b)->from;
    return x < y ? -1 : x > y;
}

/* At most as many as there were. */
static void find_runs(struct reader *r, const struct wml_json_val *events, size_t most)
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
    r->run.len = WML_MIN(r->run.len, most);
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

static void add(struct reader *r, const struct event *e)
{
    struct wml_trace *t = r->t;
    struct wml_str key = wml_arena_fmt(&t->arena, "%.*s|%.*s|%.*s", WML_ARG(e->ep), WML_ARG(e->op), WML_ARG(e->name));
    uintptr_t at = (uintptr_t)wml_map_get(&r->index, key);
    if (!at) {
        if (t->row.len >= MAX_SAMPLES / (r->run.len - r->warmup)) {
            t->dropped++;
            return;
        }
        struct wml_trace_row row = {.name = wml_arena_str(&t->arena, e->name), .op_type = wml_arena_str(&t->arena, e->op),
                                    .ep = wml_arena_str(&t->arena, e->ep), .op_id = -1, .fused = e->fused,
                                    .start_us = e->from - r->run.at[e->run].from};
        for (size_t i = r->warmup; i < r->run.len; i++) WML_PUSH(&row.sample_us, 0.0);
        WML_PUSH(&t->row, row);
        at = t->row.len;
        wml_map_put(&r->index, key, (void *)at);
    }
    t->row.at[at - 1].sample_us.at[e->run - r->warmup] += e->own_us;
}

/* Events of one thread in order of time, outer ones first. */
static int by_place(const void *a, const void *b)
{
    const struct event *x = a, *y = b;
    if (x->thread != y->thread) return x->thread < y->thread ? -1 : 1;
    if (x->from != y->from) return x->from < y->from ? -1 : 1;
    return x->us > y->us ? -1 : x->us < y->us;
}

/* Takes the time of the events inside from the event around them. */
static void take_out_inner(struct reader *r)
{
    WML_VEC(size_t) open = {0};
    if (r->event.len) qsort(r->event.at, r->event.len, sizeof *r->event.at, by_place);
    for (size_t i = 0; i < r->event.len; i++) {
        const struct event *e = &r->event.at[i];
        while (open.len) {
            struct event *outer = &r->event.at[open.at[open.len - 1]];
            if (outer->thread == e->thread && e->from + e->us <= outer->from + outer->us && e->from < outer->from + outer->us) {
                outer->own_us = WML_MAX(0.0, outer->own_us - e->us);
                break;
            }
            open.len--;
        }
        WML_PUSH(&open, i);
    }
    WML_VEC_RELEASE(&open);
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
    struct event v = {.from = wml_json_get_num(e, "ts", -1), .us = wml_json_get_num(e, "dur", 0),
                      .thread = wml_json_get_int(e, "tid", 0)};
    bool node = wml_str_ends(name, suffix.ptr) && wml_json_is_string(wml_json_get(args, "provider"));
    bool ov = wml_str_starts(name, "OV::") && wml_str_is(wml_json_get_str(args, "ov_status"), "EXECUTED");
    if (!node && !ov) return;
    v.run = run_at(r, v.from);
    if (v.run == SIZE_MAX || v.us < 0) {
        r->t->dropped++;
        return;
    }
    if (ov) {
        struct wml_str parent = wml_arena_str(&r->t->arena, wml_json_get_str(args, "parent_ort_event_name"));
        if (parent.len) wml_map_put(&r->expanded, parent, r);
    }
    if (v.run < r->warmup) return;
    v.name = node ? wml_str_sub(name, 0, name.len - suffix.len) : wml_str_sub(name, 4, name.len);
    v.op = wml_json_get_str(args, node ? "op_name" : "ov_node_type");
    v.ep = wml_json_get_str(args, node ? "provider" : "ep");
    v.fused = node && is_fused(v.op, v.ep);
    v.own_us = v.us;
    if (node) {
        WML_PUSH(&r->event, v);
    } else {
        add(r, &v); /* spans of their own clock: they are not compared with ORT's */
        r->t->node_rows++;
    }
}

/* Fused rows that the EP explained go; means are taken. */
static void finish(struct reader *r)
{
    struct wml_trace *t = r->t;
    size_t kept = 0;
    if (r->run.len <= r->warmup) return; /* no measured run, no row */
    t->runs = r->run.len - r->warmup;
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
    if (!wml_json_parse(json, &doc, err)) return wml_wrap(err, "ONNX Runtime's profile");
    const struct wml_json_val *events = wml_json_root(doc);
    bool ok = wml_json_is_array(events) && wml_json_len(events) <= MAX_EVENTS;
    if (!ok) wml_fail(err, WML_E_FORMAT, "ONNX Runtime's profile is no list of events");
    if (ok) {
        find_runs(&r, events, runs);
        while (wml_json_next(events, &it, &key, &e)) take(&r, e);
        take_out_inner(&r);
        for (size_t i = 0; i < r.event.len; i++) add(&r, &r.event.at[i]);
        finish(&r);
    }
    wml_map_release(&r.index);
    wml_map_release(&r.expanded);
    WML_VEC_RELEASE(&r.run);
    WML_VEC_RELEASE(&r.event);
    wml_json_free(doc);
    return ok;
}
