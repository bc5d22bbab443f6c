/* The traced pass. Its session is the first and only one of its process and carries the profiling options from
 * the start. ORT's own profile is always taken as well, so that every EP has rows; where the EP wrote its own
 * file, its operators replace the fused node that ORT saw. What is missing gets a reason code. */
#include "flow/perf/internal.h"

#include <inttypes.h>

#include "base/map.h"
#include "flow/compile_steps.h"
#include "graph/edit.h"
#include "graph/graph.h"
#include "onnx/onnx.h"
#include "ops/ops.h"
#include "os/file.h"
#include "os/path.h"
#include "os/sys.h"
#include "monitor/etw.h"
#include "text/words.h"
#include "worker/target.h"

enum { SETTLE_MS = 100, SETTLE_TRIES = 50 };
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
    return wml_path_in(&r->arena, r->trace.folder, name);
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

/* What ORT, the EP and its libraries said, for whoever looks for the cause. */
static void keep_log(struct wml_perf_run *r, const struct wml_worker_reply *reply)
{
    struct wml_buf text = {0};
    struct wml_err ignored = {0};
    wml_buf_str(&text, wml_json_get_str(wml_json_root(r->trace.reply), "ep_log"));
    wml_buf_str(&text, wml_buf_view(&reply->log));
    if (text.len && wml_file_write(in_folder(r, "ep.log"), wml_buf_view(&text), &ignored)) r->trace.log = in_folder(r, "ep.log");
    wml_buf_release(&text);
}

/* again: an earlier pass was cut short for want of the file, which came late. */
static bool run_job(struct wml_perf_run *r, const char *csv, bool again)
{
    struct wml_buf request = {0};
    struct wml_worker_reply reply = {0};
    struct wml_err err = {0};
    bool cpu = wml_target_is_plain_cpu(&r->target);
    wml_perf_request(r, NULL, csv, !again, in_folder(r, "ort_profile"), &request);
    struct wml_worker_call call = {.job = "bench", .request = wml_buf_view(&request), .dir = cpu ? NULL : r->trace.folder,
                                   .timeout_ms = r->args->timeout_ms, .in_process = cpu};
    bool ok = wml_worker_call(r->cx, &call, &reply, &err);
    wml_json_free(r->trace.reply);
    r->trace.reply = reply.json;
    reply.json = NULL;
    keep_log(r, &reply);
    if (err.code == WML_E_CANCELLED || wml_json_get_bool(wml_json_root(r->trace.reply), "interrupted", false)) r->interrupted = true;
    if (!ok) refuse(r, "not_run", "session_failed", wml_arena_fmt(&r->arena, "the traced pass failed: %s", err.msg), NULL);
    else if (reply.salvaged)
        wml_perf_warn(r, wml_arena_fmt(&r->arena, "the traced child process %s; its results were there before", reply.ended));
    wml_worker_reply_release(&reply);
    wml_buf_release(&request);
    return ok;
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

/* The EP's own words on the matter: its last line about profiling, else its last line. ORT's two lines on nodes
 * that went to the CPU say nothing here. */
static struct wml_str ep_words(const struct wml_perf_run *r)
{
    struct wml_str log = wml_json_get_str(wml_json_root(r->trace.reply), "ep_log"), last = WML_NO_STR, line;
    bool about = false;
    for (size_t from = 0; from < log.len; from += line.len + 1) {
        line = wml_str_sub(log, from, log.len);
        const char *end = memchr(line.ptr, '\n', line.len);
        if (end) line.len = (size_t)(end - line.ptr);
        if (!line.len || wml_str_has(line, "not assigned to the preferred") || wml_str_has(line, "Rerunning with verbose")) continue;
        bool now = wml_str_has(line, "rofil");
        if (now || !about) last = line;
        about = about || now;
    }
    last.len = wml_utf8_prefix(last, 160);
    return last;
}

/* Files that an EP may have written: the one it was told, its default name, anything new in its folder. */
static void list_csv(struct wml_perf_run *r, const char *wanted)
{
    struct wml_dir_list list = {0};
    struct wml_err ignored = {0};
    r->trace.looked.len = 0;
    WML_PUSH(&r->trace.looked, wanted);
    WML_PUSH(&r->trace.looked, in_folder(r, "qnn-profiling-data.csv"));
    if (!wml_dir_list(r->trace.folder, &list, &ignored)) return;
    for (size_t i = 0; i < list.v.len; i++) {
        struct wml_str name = list.v.at[i].name;
        const char *path = in_folder(r, wml_arena_cstr(&r->arena, name));
        if (wml_str_ends(name, ".csv") && strcmp(path, wanted) != 0 && !wml_str_is(name, "qnn-profiling-data.csv"))
            WML_PUSH(&r->trace.looked, path);
    }
    wml_dir_list_release(&list);
}

/* Waits until the file does not grow any more: some drivers write it from a service of theirs. */
static uint64_t settled_size(const char *path)
{
    uint64_t before = wml_file_info(path).size;
    for (unsigned i = 0; i < SETTLE_TRIES; i++) {
        wml_sleep_ms(SETTLE_MS);
        uint64_t now = wml_file_info(path).size;
        if (now == before) break;
        before = now;
    }
    return before;
}

/* The first file with operators; else the first with anything. */
static bool parse_csv(struct wml_perf_run *r, const char *wanted, size_t warmup, size_t runs, const char *ep, struct wml_trace *out,
                      struct wml_err *err)
{
    bool any = false;
    list_csv(r, wanted);
    settled_size(wanted);
    for (size_t i = 0; i < r->trace.looked.len; i++) {
        const char *path = r->trace.looked.at[i];
        struct wml_buf text = {0};
        struct wml_trace t = {0};
        struct wml_err now = {0};
        if (!wml_file_info(path).size) continue;
        bool ok = wml_file_read(path, MAX_TRACE, &text, &now) && wml_trace_qnn(wml_buf_view(&text), warmup, runs, ep, &t, &now);
        wml_buf_release(&text);
        bool better = ok && t.row.len;
        if (!r->trace.csv || better) {
            r->trace.csv = path;
            *err = now;
            any = ok;
            wml_trace_release(out);
            *out = t;
        } else {
            wml_trace_release(&t);
        }
        if (better) break;
    }
    return any;
}

static void no_csv(struct wml_perf_run *r, const char *ep)
{
    struct wml_str words = ep_words(r);
    struct wml_buf session = {0};
    if (wml_etw_ort_session(&session)) {
        refuse(r, "no_data", "etw_active", wml_arena_fmt(&r->arena, "%s wrote no profiling file because the ETW session '%s' listens to "
               "Microsoft.ML.ONNXRuntime, which switches the file off", ep, wml_buf_text(&session)), "stop it: logman stop NAME -ets");
    } else {
        struct wml_str log = r->trace.log ? wml_arena_fmt(&r->arena, "; its log: %s", r->trace.log) : WML_STR("");
        refuse(r, "no_data", "options_ignored", wml_arena_fmt(&r->arena, "%s accepted %s and %s and wrote no file (looked for %s)%s%.*s%.*s",
               ep, r->ep->trace_level_key, r->ep->trace_file_key, r->trace.looked.at[0], words.len ? "; it said: " : "", WML_ARG(words),
               WML_ARG(log)), "this build of the EP may know the options by other names, or may not profile");
    }
    wml_buf_release(&session);
}

static void read_csv(struct wml_perf_run *r, const char *wanted, size_t warmup, size_t runs, const char *ep)
{
    struct wml_trace own = {0};
    struct wml_err err = {0};
    bool ok = parse_csv(r, wanted, warmup, runs, ep, &own, &err);
    if (!r->trace.csv) no_csv(r, ep);
    else if (!ok) refuse(r, "parse_failed", "parse_failed", wml_arena_fmt(&r->arena, "%s: %s", r->trace.csv, err.msg), NULL);
    else if (!own.node_rows)
        refuse(r, "no_data", "no_node_rows", wml_arena_fmt(&r->arena, "%s holds no row of an operator: this back end gives totals only",
               r->trace.csv), NULL);
    if (ok) merge(r, &own, ep);
    if (ok && own.dropped)
        wml_perf_warn(r, wml_arena_fmt(&r->arena, "%s: %zu incomplete rows or blocks were left out", r->trace.csv, own.dropped));
    wml_trace_release(&own);
}

/* Types by the names of nodes, from the model or from the source of a compiled one. */
struct names { struct wml_map map; };

static bool note_name(void *arg, struct wml_node *n)
{
    struct names *names = arg;
    if (n->name.len && !wml_map_has(&names->map, n->name)) wml_map_put(&names->map, n->name, n);
    return true;
}

/* "/features/0/Conv" -> "Conv"; "Mul_75", as ORT and EPs name nodes that they make -> "Mul". */
static struct wml_str type_in_name(struct wml_str path)
{
    size_t at = wml_str_rfind(path, '/');
    struct wml_str s = at == SIZE_MAX || at + 1 == path.len ? path : wml_str_sub(path, at + 1, path.len);
    size_t n = s.len;
    while (n && s.ptr[n - 1] >= '0' && s.ptr[n - 1] <= '9') n--;
    struct wml_str op = n > 1 && n < s.len && s.ptr[n - 1] == '_' ? wml_str_sub(s, 0, n - 1) : s;
    return wml_op_find(WML_STR(""), op) || wml_op_find(WML_STR("com.microsoft"), op) ? op : s;
}

static void name_types(struct wml_perf_run *r)
{
    struct wml_model *m = NULL;
    struct wml_err ignored = {0};
    struct names names = {0};
    const struct wml_json_val *seen = wml_json_get(wml_json_root(r->trace.reply), "node_types"), *type;
    struct wml_json_iter it = {0};
    struct wml_str key;
    struct wml_map types = {0}; /* as ORT saw them */
    bool source = r->compiled && r->source_model;
    const char *path = source ? r->source_model : r->running;
    char sha[WML_SHA256_HEX];
    if (source && r->source_sha && (!wml_compile_source_sha(path, sha, &ignored) || strcmp(sha, r->source_sha) != 0))
        wml_perf_warn(r, wml_arena_fmt(&r->arena, "%s is not what %s was compiled from: names and types of operators may be wrong",
                                       path, r->running));
    if (wml_onnx_load(path, &m, &ignored)) wml_graph_walk(m->graph, note_name, &names);
    while (wml_json_next(seen, &it, &key, &type)) wml_map_put(&types, key, (void *)(uintptr_t)type);
    for (size_t i = 0; i < r->trace.rows.row.len; i++) {
        struct wml_trace_row *row = &r->trace.rows.row.at[i];
        const struct wml_node *n = wml_map_get(&names.map, row->name);
        struct wml_str told = wml_json_str(wml_map_get(&types, row->name));
        if (n) row->op_type = wml_arena_str(&r->trace.rows.arena, n->op_type);
        else if (!row->op_type.len) row->op_type = told.len ? told : type_in_name(row->name);
    }
    wml_map_release(&types);
    wml_map_release(&names.map);
    wml_model_free(m);
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
    if (r->trace.viewer && !r->trace.reason) wml_perf_detail(r, csv, r->trace.rows.partitions, ep_name);
    name_types(r);
    wml_trace_finish(&r->trace.rows);
    if (!r->trace.reason && !r->trace.rows.row.len)
        refuse(r, "no_data", "no_node_rows", WML_STR("the profile holds no operator"), NULL);
}

/* Detail is QNN's, and takes the vendor's viewer. */
static void plan_detail(struct wml_perf_run *r)
{
    if (!r->ep || strcmp(r->ep->name, "QNNExecutionProvider") != 0) {
        r->trace.fallback = "ep_unsupported";
        wml_perf_warn(r, WML_STR("no detailed trace (ep_unsupported): only QNN has one; the basic trace is taken"));
    } else if (!wml_perf_find_viewer(r)) {
        r->trace.fallback = "sdk_missing";
        wml_perf_warn(r, WML_STR("no detailed trace (sdk_missing): qnn-profile-viewer of the Qualcomm AI Engine Direct SDK was not found; set "
                                 "QNN_SDK_ROOT to the SDK's folder; the basic trace is taken"));
    }
}

/* One pass, or two when the first showed that it must be another. */
static bool run_passes(struct wml_perf_run *r, const char *csv)
{
    bool ran = run_job(r, csv, false);
    if (!ran && r->trace.viewer && !r->interrupted) { /* an EP that knows no such level */
        wml_perf_warn(r, wml_arena_fmt(&r->arena, "no detailed trace (optrace_failed): %s; the basic trace is taken", r->trace.error));
        r->trace.viewer = NULL;
        r->trace.fallback = "optrace_failed";
        r->trace.reason = NULL;
        ran = run_job(r, csv, false);
    }
    /* An EP that writes its file only when it is released was cut short: once more, to the end. */
    if (ran && csv && wml_json_get_num(wml_json_root(r->trace.reply), "csv_after_run", 0) == 0 && wml_file_info(csv).size) {
        wml_file_remove(csv);
        ran = run_job(r, csv, true);
    }
    return ran;
}

void wml_perf_trace_run(struct wml_perf_run *r)
{
    struct wml_err err = {0};
    const char *csv = NULL;
    if (!make_folder(r, &err)) {
        refuse(r, "not_run", "file_unwritable", wml_str(err.msg), "choose another place for the report with -o");
        return;
    }
    if (strcmp(r->args->trace, "detail") == 0) plan_detail(r);
    if (r->ep && r->ep->trace == WML_TRACE_QNN_CSV) csv = in_folder(r, "profiling_output.csv");
    wml_note_progress(r->cx, "Tracing", NULL, 0, 0, NULL);
    if (run_passes(r, csv)) read_all(r, csv);
    if (r->trace.fallback && !r->trace.reason) r->trace.status = "basic_fallback";
    wml_perf_trace_write(r, beside_report(r, "_op_trace.json"));
}

void wml_perf_trace_release(struct wml_perf_trace *t)
{
    wml_trace_release(&t->rows);
    wml_json_free(t->reply);
    wml_json_free(t->document);
    WML_VEC_RELEASE(&t->looked);
}
