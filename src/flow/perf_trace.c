/* The traced pass. Its session is the first and only one of its process and carries the profiling options from
 * the start. ORT's own profile is always taken as well, so that every EP has rows; where the EP wrote its own
 * file, its operators replace the fused node that ORT saw. What is missing gets a reason code. */
#include "flow/perf_internal.h"

#include <inttypes.h>

#include "base/map.h"
#include "graph/edit.h"
#include "graph/graph.h"
#include "onnx/onnx.h"
#include "os/file.h"
#include "os/path.h"
#include "worker/target.h"

static const uint64_t MAX_TRACE = UINT64_C(1) << 30;

static const char *keep(struct wml_perf_run *r, struct wml_str s)
{
    return wml_arena_cstr(&r->arena, s);
}

static void refuse(struct wml_perf_run *r, const char *status, const char *reason, struct wml_str error, const char *hint)
{
    if (r->trace.reason) return; /* the first reason counts */
    r->trace.status = status;
    r->trace.reason = reason;
    r->trace.error = keep(r, error);
    r->trace.hint = hint;
}

/* "<report without .json>" + suffix. */
static const char *beside_report(struct wml_perf_run *r, const char *suffix)
{
    struct wml_str path = wml_str(r->output), ext = wml_path_ext(path);
    return wml_arena_fmt(&r->arena, "%.*s%s", WML_ARG(wml_str_sub(path, 0, path.len - ext.len)), suffix).ptr;
}

static const char *in_folder(struct wml_perf_run *r, const char *name)
{
    struct wml_buf path = {0};
    wml_path_join(&path, wml_str(r->trace.folder), wml_str(name));
    const char *copy = keep(r, wml_buf_view(&path));
    wml_buf_release(&path);
    return copy;
}

/* An empty folder of our own, absolute, proven writable. */
static bool make_folder(struct wml_perf_run *r, struct wml_err *err)
{
    struct wml_buf full = {0};
    const char *dir = beside_report(r, "_op_trace");
    bool ok = wml_path_absolute(&full, wml_str(dir), err);
    if (ok) {
        r->trace.folder = keep(r, wml_buf_view(&full));
        if (wml_dir_exists(r->trace.folder)) wml_dir_remove(r->trace.folder);
        ok = wml_dir_make(r->trace.folder, err) && wml_file_write(in_folder(r, "write-test"), WML_STR("x"), err);
        wml_file_remove(in_folder(r, "write-test"));
    }
    wml_buf_release(&full);
    return ok;
}

static size_t nodes_on(const struct wml_json_val *placement, struct wml_str ep)
{
    struct wml_json_iter it = {0};
    struct wml_str key;
    const struct wml_json_val *e;
    size_t n = 0;
    while (wml_json_next(placement, &it, &key, &e))
        if (wml_str_eq(wml_json_get_str(e, "ep"), ep)) n += (size_t)wml_json_get_int(e, "nodes", 0);
    return n;
}

/* The op types that went elsewhere. */
static struct wml_str elsewhere(struct wml_perf_run *r, const struct wml_json_val *placement, struct wml_str ep)
{
    struct wml_json_iter it = {0}, inner;
    struct wml_str key, op;
    const struct wml_json_val *e, *n;
    struct wml_buf text = {0};
    while (wml_json_next(placement, &it, &key, &e)) {
        if (wml_str_eq(wml_json_get_str(e, "ep"), ep)) continue;
        inner = (struct wml_json_iter){0};
        while (wml_json_next(wml_json_get(e, "op_types"), &inner, &op, &n) && text.len < 200)
            wml_buf_fmt(&text, "%s%.*s (%" PRId64 ")", text.len ? ", " : "", WML_ARG(op), wml_json_int(n, 0));
    }
    struct wml_str copy = wml_arena_str(&r->arena, text.len ? wml_buf_view(&text) : WML_STR("none"));
    wml_buf_release(&text);
    return copy;
}

static bool run_job(struct wml_perf_run *r, const char *csv)
{
    struct wml_buf request = {0};
    struct wml_worker_reply reply = {0};
    struct wml_err err = {0};
    bool cpu = wml_target_is_plain_cpu(&r->args->target);
    wml_perf_request(r, NULL, csv, in_folder(r, "ort_profile"), &request);
    struct wml_worker_call call = {.job = "bench", .request = wml_buf_view(&request), .dir = cpu ? NULL : r->trace.folder,
                                   .timeout_ms = r->args->timeout_ms, .in_process = cpu};
    bool ok = wml_worker_call(r->cx, &call, &reply, &err);
    r->trace.reply = reply.json;
    reply.json = NULL;
    if (!ok) refuse(r, "not_run", "session_failed", wml_arena_fmt(&r->arena, "the traced pass failed: %s", err.msg), NULL);
    else if (reply.salvaged)
        wml_perf_warn(r, wml_arena_fmt(&r->arena, "the traced child process %s; its results were there before", reply.ended));
    wml_worker_reply_release(&reply);
    wml_buf_release(&request);
    return ok;
}

/* The first of the files that an EP may have written. */
static const char *find_csv(struct wml_perf_run *r, const char *wanted)
{
    const char *const other[] = {wanted, in_folder(r, "qnn-profiling-data.csv")};
    for (size_t i = 0; i < WML_COUNT(other); i++) {
        WML_PUSH(&r->trace.looked, other[i]);
        if (wml_file_info(other[i]).size > 0) return other[i];
    }
    return NULL;
}

static void read_profile(struct wml_perf_run *r, size_t warmup, size_t runs)
{
    struct wml_str path = wml_json_get_str(wml_json_root(r->trace.reply), "ort_profile");
    struct wml_buf text = {0};
    struct wml_err err = {0};
    if (path.len) r->trace.profile = keep(r, path);
    bool ok = path.len && wml_file_read(r->trace.profile, MAX_TRACE, &text, &err) &&
              wml_trace_ort(wml_buf_view(&text), warmup, runs, &r->trace.rows, &err);
    if (!ok)
        refuse(r, "parse_failed", "parse_failed", wml_arena_fmt(&r->arena, "ONNX Runtime's profile: %s",
               path.len ? err.msg : "it was not written"), NULL);
    wml_buf_release(&text);
}

/* Rows of the EP's CSV in place of the nodes that ORT saw as one. Without rows only its totals are taken. */
static void merge(struct wml_perf_run *r, struct wml_trace *own, const char *ep)
{
    struct wml_trace *t = &r->trace.rows;
    size_t kept = 0;
    double rest = 0;
    for (size_t i = 0; i < t->row.len; i++) {
        bool replaced = t->row.at[i].fused && wml_str_is(t->row.at[i].ep, ep);
        if (replaced) r->trace.call_us += t->row.at[i].duration_us;
        else rest += t->row.at[i].duration_us;
        if (replaced && own->row.len) WML_VEC_RELEASE(&t->row.at[i].sample_us);
        else t->row.at[kept++] = t->row.at[i];
    }
    t->row.len = kept;
    for (size_t i = 0; i < own->row.len; i++) {
        struct wml_trace_row row = own->row.at[i];
        row.name = wml_arena_str(&t->arena, row.name);
        row.ep = wml_arena_str(&t->arena, row.ep);
        WML_PUSH(&t->row, row);
    }
    if (own->row.len) t->total_us = own->total_us + rest;
    own->row.len = 0; /* the samples moved */
    t->hvx_threads = own->hvx_threads;
    t->accel_cycles = own->accel_cycles;
    t->accel_us = own->accel_us;
    t->finalize_us = own->finalize_us;
    t->execute_us = own->execute_us;
    if (own->partitions) t->partitions = own->partitions;
    t->node_rows = own->node_rows;
    t->dropped += own->dropped;
}

static void read_csv(struct wml_perf_run *r, const char *wanted, size_t warmup, size_t runs, const char *ep)
{
    struct wml_buf text = {0};
    struct wml_trace own = {0};
    struct wml_err err = {0};
    struct wml_str log = wml_json_get_str(wml_json_root(r->trace.reply), "ep_log");
    r->trace.csv = find_csv(r, wanted);
    if (!r->trace.csv) {
        refuse(r, "no_data", "options_ignored", wml_arena_fmt(&r->arena, "%s accepted the profiling options and wrote no file "
               "(looked for %s)%s%.*s", ep, wanted, log.len ? "; it said: " : "", WML_ARG(wml_str_sub(log, 0, 200))),
               "on Windows an ETW session with the provider Microsoft.ML.ONNXRuntime switches the file off: stop it");
        return;
    }
    bool ok = wml_file_read(r->trace.csv, MAX_TRACE, &text, &err) &&
              wml_trace_qnn(wml_buf_view(&text), warmup, runs, ep, &own, &err);
    if (!ok) refuse(r, "parse_failed", "parse_failed", wml_arena_fmt(&r->arena, "%s: %s", r->trace.csv, err.msg), NULL);
    else if (!own.node_rows)
        refuse(r, "no_data", "no_node_rows", wml_arena_fmt(&r->arena, "%s holds no row of an operator: this back end gives totals only",
               r->trace.csv), NULL);
    if (ok) merge(r, &own, ep);
    wml_trace_release(&own);
    wml_buf_release(&text);
}

/* Types by the names of nodes, from the model or from the source of a compiled one. */
struct names { struct wml_map map; };

static bool note_name(void *arg, struct wml_node *n)
{
    struct names *names = arg;
    if (n->name.len && !wml_map_has(&names->map, n->name)) wml_map_put(&names->map, n->name, n);
    return true;
}

/* "/features/0/Conv" -> "Conv". */
static struct wml_str last_segment(struct wml_str path)
{
    size_t at = wml_str_rfind(path, '/');
    return at == SIZE_MAX || at + 1 == path.len ? path : wml_str_sub(path, at + 1, path.len);
}

static void name_types(struct wml_perf_run *r)
{
    struct wml_model *m = NULL;
    struct wml_err ignored = {0};
    struct names names = {0};
    const char *path = r->compiled && r->source_model ? r->source_model : r->running;
    if (wml_onnx_load(path, &m, &ignored)) wml_graph_walk(m->graph, note_name, &names);
    for (size_t i = 0; i < r->trace.rows.row.len; i++) {
        struct wml_trace_row *row = &r->trace.rows.row.at[i];
        const struct wml_node *n = wml_map_get(&names.map, row->name);
        if (n) row->op_type = wml_arena_str(&r->trace.rows.arena, n->op_type);
        else if (!row->op_type.len) row->op_type = last_segment(row->name);
    }
    wml_map_release(&names.map);
    wml_model_free(m);
}

/* --- the trace's own JSON --- */

static void put_number_or_null(struct wml_json *j, const char *key, double v, bool known)
{
    wml_json_key(j, key);
    if (known) wml_json_put_fixed(j, v, 3);
    else wml_json_put_null(j);
}

static void put_row(struct wml_json *j, const struct wml_trace_row *row)
{
    static const char *const unknown[] = {"hardware_time_us", "memory_time_us", "dominant_path_us", "dram_read_bytes",
                                          "dram_write_bytes", "vtcm_read_bytes", "vtcm_write_bytes", "vtcm_hit_ratio",
                                          "num_htp_ops", "data_type", "dims"};
    wml_json_begin(j, '{');
    wml_json_key(j, "name");
    wml_json_put_str(j, row->op_type);
    wml_json_key(j, "op_path");
    wml_json_put_str(j, row->name);
    wml_json_key(j, "op_id");
    if (row->op_id >= 0) wml_json_put_int(j, row->op_id);
    else wml_json_put_null(j);
    wml_json_key(j, "ep");
    wml_json_put_str(j, row->ep);
    wml_json_key(j, "partition");
    wml_json_put_uint(j, row->partition);
    put_number_or_null(j, "start_time_us", row->start_us, row->start_us >= 0);
    put_number_or_null(j, "duration_us", row->duration_us, true);
    put_number_or_null(j, "percent_of_total", row->percent, true);
    for (size_t i = 0; i < WML_COUNT(unknown); i++) {
        wml_json_key(j, unknown[i]);
        wml_json_put_null(j);
    }
    wml_json_key(j, "samples_us");
    wml_json_begin(j, '[');
    for (size_t i = 0; i < row->sample_us.len; i++) wml_json_put_fixed(j, row->sample_us.at[i], 3);
    wml_json_end(j, ']');
    wml_json_end(j, '}');
}

static void put_metadata(struct wml_perf_run *r, struct wml_json *j)
{
    const struct wml_json_val *target = wml_json_get(wml_json_root(r->trace.reply), "target");
    if (!target) target = wml_perf_target(r);
    wml_json_key(j, "metadata");
    wml_json_begin(j, '{');
    wml_json_key(j, "model");
    wml_json_put_cstr(j, r->running);
    wml_json_key(j, "source_model");
    wml_json_put_cstr(j, r->source_model);
    wml_json_key(j, "device");
    wml_json_put_str(j, wml_json_get_str(target, "device"));
    wml_json_key(j, "ep");
    wml_json_put_str(j, wml_json_get_str(target, "ep"));
    wml_json_key(j, "ep_version");
    wml_json_put_str(j, wml_json_get_str(target, "ep_version"));
    wml_json_key(j, "ep_library");
    wml_json_put_str(j, wml_json_get_str(target, "library"));
    wml_json_key(j, "simulated");
    wml_json_put_bool(j, wml_json_get_bool(target, "simulated", false));
    wml_json_key(j, "tracing_level");
    wml_json_put_cstr(j, r->args->trace);
    wml_json_key(j, "tracing_backend");
    wml_json_put_cstr(j, r->ep && r->ep->trace == WML_TRACE_QNN_CSV ? "qnn" : "ort");
    wml_json_key(j, "timestamp");
    wml_json_put_cstr(j, r->timestamp);
    wml_json_key(j, "num_samples");
    wml_json_put_uint(j, r->trace.rows.runs);
    wml_json_key(j, "placement");
    wml_json_put_val(j, wml_json_get(wml_json_root(r->trace.reply), "placement"));
    wml_json_end(j, '}');
}

static void put_artifacts(struct wml_perf_run *r, struct wml_json *j)
{
    const struct wml_trace *t = &r->trace.rows;
    wml_json_key(j, "summary");
    wml_json_begin(j, '{');
    put_number_or_null(j, "hvx_threads", t->hvx_threads, t->hvx_threads > 0);
    put_number_or_null(j, "accel_execute_cycles", t->accel_cycles, t->accel_cycles > 0);
    put_number_or_null(j, "accel_execute_us", t->accel_us, t->accel_us > 0);
    put_number_or_null(j, "execute_us", t->execute_us, t->execute_us > 0);
    put_number_or_null(j, "host_call_us", r->trace.call_us, r->trace.call_us > 0);
    put_number_or_null(j, "finalize_us", t->finalize_us, t->finalize_us > 0);
    put_number_or_null(j, "traced_latency_ms", r->trace.latency_ms, r->trace.latency_ms > 0);
    wml_json_key(j, "partitions");
    wml_json_put_uint(j, t->partitions);
    wml_json_end(j, '}');
    wml_json_key(j, "artifacts");
    wml_json_begin(j, '{');
    wml_json_key(j, "csv");
    wml_json_put_cstr(j, r->trace.csv);
    wml_json_key(j, "profile");
    wml_json_put_cstr(j, r->trace.profile);
    wml_json_end(j, '}');
    wml_json_key(j, "looked_for");
    wml_json_begin(j, '[');
    for (size_t i = 0; i < r->trace.looked.len; i++) wml_json_put_cstr(j, r->trace.looked.at[i]);
    wml_json_end(j, ']');
}

static void write_json(struct wml_perf_run *r)
{
    struct wml_buf text = {0};
    struct wml_json j = {.out = &text, .indent = 2};
    struct wml_err err = {0};
    const char *path = beside_report(r, "_op_trace.json");
    wml_json_begin(&j, '{');
    put_metadata(r, &j);
    put_artifacts(r, &j);
    wml_json_key(&j, "operators");
    wml_json_begin(&j, '[');
    for (size_t i = 0; i < r->trace.rows.row.len; i++) put_row(&j, &r->trace.rows.row.at[i]);
    wml_json_end(&j, ']');
    wml_json_key(&j, "statistics");
    wml_json_begin(&j, '{');
    wml_json_key(&j, "dropped_rows");
    wml_json_put_uint(&j, r->trace.rows.dropped);
    wml_json_end(&j, '}');
    wml_json_key(&j, "status");
    wml_json_put_cstr(&j, r->trace.status);
    wml_json_key(&j, "error");
    wml_json_put_cstr(&j, r->trace.error);
    wml_json_key(&j, "reason");
    wml_json_put_cstr(&j, r->trace.reason);
    wml_json_key(&j, "fallback_reason");
    wml_json_put_cstr(&j, r->trace.fallback);
    wml_json_end(&j, '}');
    wml_buf_char(&text, '\n');
    if (wml_file_write(path, wml_buf_view(&text), &err)) r->trace.json = path;
    else wml_perf_warn(r, wml_str(err.msg));
    wml_buf_release(&text);
}

static double mean_latency(const struct wml_json_val *samples)
{
    double sum = 0;
    size_t n = wml_json_len(samples);
    for (size_t i = 0; i < n; i++) sum += wml_json_num(wml_json_at(samples, i), 0);
    return n ? sum / (double)n : 0;
}

static void read_all(struct wml_perf_run *r, const char *csv)
{
    const struct wml_json_val *root = wml_json_root(r->trace.reply), *placement = wml_json_get(root, "placement");
    struct wml_str ep = wml_json_get_str(wml_json_get(root, "target"), "ep");
    const char *ep_name = keep(r, ep);
    size_t warmup = WML_MIN(r->args->warmup, (size_t)1), runs = warmup + wml_json_len(wml_json_get(root, "samples_ms"));
    r->trace.latency_ms = mean_latency(wml_json_get(root, "samples_ms"));
    r->trace.status = "ok";
    bool none = wml_json_is_array(placement) && !nodes_on(placement, ep) && !r->compiled;
    read_profile(r, warmup, runs);
    if (none)
        refuse(r, "no_data", "no_nodes_on_ep", wml_arena_fmt(&r->arena, "%s took no node of the model; they ran elsewhere: %.*s",
               ep_name, WML_ARG(elsewhere(r, placement, ep))), "the EP does not support these operators in this form: try `winml optimize` with fixed "
               "shapes (--input-shape) first");
    else if (csv) read_csv(r, csv, warmup, runs, ep_name);
    name_types(r);
    wml_trace_finish(&r->trace.rows);
    if (!r->trace.reason && !r->trace.rows.row.len)
        refuse(r, "no_data", "no_node_rows", WML_STR("the profile holds no operator"), NULL);
}

void wml_perf_trace_run(struct wml_perf_run *r)
{
    struct wml_err err = {0};
    const char *csv = NULL;
    if (strcmp(r->args->trace, "detail") == 0) {
        r->trace.fallback = "sdk_missing";
        wml_perf_warn(r, WML_STR("detailed tracing needs the vendor's SDK, which this version does not drive: the basic trace is taken"));
    }
    if (!make_folder(r, &err)) {
        refuse(r, "not_run", "file_unwritable", wml_str(err.msg), "choose another place for the report with -o");
        return;
    }
    if (r->ep && r->ep->trace == WML_TRACE_QNN_CSV) csv = in_folder(r, "profiling_output.csv");
    wml_note_progress(r->cx, "Tracing", NULL, 0, 0, NULL);
    if (run_job(r, csv)) read_all(r, csv);
    if (r->trace.fallback && !r->trace.reason) r->trace.status = "basic_fallback";
    write_json(r);
}

void wml_perf_trace_release(struct wml_perf_trace *t)
{
    wml_trace_release(&t->rows);
    wml_json_free(t->reply);
    WML_VEC_RELEASE(&t->looked);
}
