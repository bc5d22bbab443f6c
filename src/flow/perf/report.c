/* The report of `perf`: schema version 2 of the Python tool's report, and what it leaves out. */
#include <inttypes.h>
#include <math.h>

#include "flow/perf/internal.h"
#include "flow/machine.h"
#include "flow/placement.h"
#include "os/path.h"

static const struct wml_json_val *reply_of(const struct wml_perf_run *r, const char *key)
{
    return wml_json_get(wml_json_root(r->reply), key);
}

static void put_info(struct wml_item *root, const struct wml_perf_run *r)
{
    const struct wml_perf_args *a = r->args;
    const struct wml_json_val *t = wml_perf_target(r);
    struct wml_item *i = wml_item_object(root, "benchmark_info", NULL);
    wml_item_cstr(i, "runtime", NULL, "winml");
    wml_item_str(i, "model_id", NULL, wml_path_name(wml_str(a->model)));
    wml_item_cstr(i, "running_model_path", NULL, r->running);
    wml_item_cstr(i, "task", NULL, a->task ? a->task : "auto-detected");
    wml_item_str(i, "device", NULL, wml_json_get_str(t, "device"));
    wml_item_str(i, "ep", NULL, wml_json_get_str(t, "ep"));
    wml_item_str(i, "ep_source", NULL, wml_json_get_str(t, "source"));
    if (a->target.n_options) {
        struct wml_item *o = wml_item_object(i, "ep_options", NULL);
        for (size_t k = 0; k < a->target.n_options; k++) wml_item_cstr(o, a->target.option[k].key, NULL, a->target.option[k].value);
    } else wml_item_null(i, "ep_options", NULL);
    wml_item_cstr(i, "precision", NULL, a->precision ? a->precision : "auto");
    wml_item_int(i, "iterations", NULL, a->duration_s > 0 ? (int64_t)r->sample.len : (int64_t)a->iterations, WML_SHOW_PLAIN);
    wml_item_int(i, "warmup", NULL, (int64_t)a->warmup, WML_SHOW_PLAIN);
    if (a->duration_s > 0) wml_item_num(i, "duration_sec", NULL, a->duration_s, 3, WML_SHOW_PLAIN);
    else wml_item_null(i, "duration_sec", NULL);
    wml_item_int(i, "batch_size", NULL, r->feed.batch > 0 ? r->feed.batch : 1, WML_SHOW_PLAIN);
    wml_item_int(i, "effective_batch_size", NULL, wml_json_int(reply_of(r, "batch"), 1), WML_SHOW_PLAIN);
    wml_item_cstr(i, "timestamp", NULL, r->timestamp);
    wml_item_bool(i, "simulated", NULL, wml_json_get_bool(t, "simulated", false));
    wml_item_str(i, "hardware", NULL, wml_json_get_str(t, "hardware"));
    if (t) wml_item_json(i, "provider_options", wml_json_get(t, "options"));
    wml_item_str(i, "ep_version", NULL, wml_json_get_str(t, "ep_version"));
    wml_item_str(i, "ep_library", NULL, wml_json_get_str(t, "library"));
    wml_item_str(i, "ort_version", NULL, wml_json_get_str(t, "ort_version"));
    wml_item_str(i, "session_level", NULL, wml_json_str(reply_of(r, "level")));
    wml_item_str(i, "session_level_note", NULL, wml_json_str(reply_of(r, "level_note")));
    wml_item_num(i, "load_ms", NULL, wml_json_num(reply_of(r, "load_ms"), NAN), 3, WML_SHOW_MS);
    if (reply_of(r, "fed")) wml_item_json(i, "input_shapes", reply_of(r, "fed"));
    wml_item_int(i, "seed", NULL, (int64_t)r->feed.seed, WML_SHOW_PLAIN);
    wml_item_bool(i, "interrupted", NULL, r->interrupted);
    wml_item_cstr(i, "salvaged", NULL, r->salvaged);
}

static void put_names(struct wml_item *to, const char *key, const struct wml_json_val *list, const char *member)
{
    struct wml_item *out = wml_item_array(to, key, NULL);
    for (size_t i = 0; i < wml_json_len(list); i++) {
        const struct wml_json_val *v = wml_json_get(wml_json_at(list, i), member);
        if (wml_json_is_array(v)) wml_item_json(out, NULL, v);
        else wml_item_str(out, NULL, NULL, wml_json_str(v));
    }
}

static void io_text(struct wml_buf *out, const struct wml_json_val *list)
{
    for (size_t i = 0; i < wml_json_len(list); i++) {
        const struct wml_json_val *v = wml_json_at(list, i), *shape = wml_json_get(v, "shape");
        struct wml_str name = wml_json_get_str(v, "name"), dtype = wml_json_get_str(v, "dtype");
        wml_buf_fmt(out, "%s%.*s %.*s[", i ? ", " : "", WML_ARG(name), WML_ARG(dtype));
        for (size_t k = 0; k < wml_json_len(shape); k++) {
            const struct wml_json_val *d = wml_json_at(shape, k);
            if (k) wml_buf_char(out, ',');
            if (wml_json_is_null(d)) wml_buf_char(out, '?');
            else wml_buf_fmt(out, "%" PRId64, wml_json_int(d, 0));
        }
        wml_buf_char(out, ']');
    }
}

static void put_model(struct wml_item *root, const struct wml_perf_run *r)
{
    const struct wml_json_val *in = reply_of(r, "inputs"), *out = reply_of(r, "outputs"), *t = wml_perf_target(r);
    struct wml_item *m = wml_item_object(root, "model_info", NULL);
    put_names(m, "input_names", in, "name");
    put_names(m, "input_shapes", in, "shape");
    put_names(m, "input_types", in, "dtype");
    put_names(m, "output_names", out, "name");
    put_names(m, "output_shapes", out, "shape");
    wml_item_cstr(m, "precision", NULL, r->precision);
    wml_item_bool(m, "compiled", NULL, r->compiled);
    struct wml_buf text = {0};
    wml_item_cstr(root, NULL, "Model", r->running);
    io_text(&text, in);
    wml_item_str(root, NULL, "Inputs", wml_buf_view(&text));
    wml_buf_clear(&text);
    io_text(&text, out);
    wml_item_str(root, NULL, "Outputs", wml_buf_view(&text));
    wml_buf_release(&text);
    if (r->precision) wml_item_cstr(root, NULL, "Precision", r->precision);
    struct wml_str ep = wml_json_get_str(t, "ep"), device = wml_json_get_str(t, "device"), hw = wml_json_get_str(t, "hardware");
    struct wml_str version = wml_json_get_str(t, "ep_version");
    bool simulated = wml_json_get_bool(t, "simulated", false);
    wml_item_fmt(root, NULL, "Device", "%.*s on %.*s%s%.*s%s", WML_ARG(ep), WML_ARG(device), hw.len ? ", " : "", WML_ARG(hw),
                 version.len ? "" : "");
    wml_item_fmt(root, NULL, "Provider", "%.*s (%.*s), ONNX Runtime %.*s", WML_ARG(version.len ? version : WML_STR("?")),
                 WML_ARG(wml_json_get_str(t, "source")), WML_ARG(wml_json_get_str(t, "ort_version")));
    if (simulated) {
        wml_item_cstr(root, NULL, "Simulated", "there is no such hardware here: times are not hardware times");
        wml_item_tone(root, WML_TONE_WARN);
    }
    struct wml_str note = wml_json_str(reply_of(r, "level_note"));
    if (note.len) wml_item_str(root, NULL, "Session level", note);
}

static void put_latency(struct wml_item *root, const struct wml_perf_run *r)
{
    static const struct wml_column columns[] = {
        {.label = "Avg", .right = true}, {.label = "P50", .right = true}, {.label = "P90", .right = true},
        {.label = "P95", .right = true}, {.label = "P99", .right = true}, {.label = "Min", .right = true},
        {.label = "Max", .right = true}, {.label = "Std", .right = true}};
    const struct wml_stats *s = &r->stats;
    const double value[] = {s->mean, s->p50, s->p90, s->p95, s->p99, s->min, s->max, s->std};
    bool simulated = wml_json_get_bool(wml_perf_target(r), "simulated", false);
    struct wml_item *l = wml_item_object(root, "latency_ms", NULL);
    double warm = wml_mean(r->warmup.at, r->warmup.len), batch = (double)wml_json_int(reply_of(r, "batch"), 1);
    wml_item_num(l, "mean", NULL, s->mean, 3, WML_SHOW_PLAIN);
    wml_item_num(l, "min", NULL, s->min, 3, WML_SHOW_PLAIN);
    wml_item_num(l, "max", NULL, s->max, 3, WML_SHOW_PLAIN);
    wml_item_num(l, "p50", NULL, s->p50, 3, WML_SHOW_PLAIN);
    wml_item_num(l, "p90", NULL, s->p90, 3, WML_SHOW_PLAIN);
    wml_item_num(l, "p95", NULL, s->p95, 3, WML_SHOW_PLAIN);
    wml_item_num(l, "p99", NULL, s->p99, 3, WML_SHOW_PLAIN);
    wml_item_num(l, "std", NULL, s->std, 3, WML_SHOW_PLAIN);
    wml_item_num(l, "warmup_mean", NULL, warm, 3, WML_SHOW_PLAIN);
    struct wml_item *t = wml_item_object(root, "throughput", NULL);
    double per_s = s->mean > 0 ? 1000 / s->mean : 0;
    wml_item_num(t, "samples_per_sec", NULL, batch * per_s, 2, WML_SHOW_PLAIN);
    wml_item_num(t, "batches_per_sec", NULL, per_s, 2, WML_SHOW_PLAIN);
    struct wml_item *table = wml_item_table(root, NULL, simulated ? "Latency (ms, simulated)" : "Latency (ms)", columns, WML_COUNT(columns));
    struct wml_item *row = wml_table_row(table);
    for (size_t i = 0; i < WML_COUNT(columns); i++) wml_item_fmt(row, NULL, columns[i].label, "%.*f", s->mean < 0.1 ? 4 : 2, value[i]);
    char of_batch[40] = "";
    if (batch > 1) snprintf(of_batch, sizeof of_batch, " (batch %.0f)", batch);
    wml_item_line(root, WML_TONE_PLAIN, "%zu runs, warmup %.2f ms on average (first %zu), throughput %.2f samples/s%s", s->n, warm,
                  r->warmup.len, batch * per_s, of_batch);
}

static void put_samples(struct wml_item *root, const struct wml_perf_run *r)
{
    struct wml_item *raw = wml_item_array(root, "raw_samples_ms", NULL);
    for (size_t i = 0; i < r->sample.len; i++) wml_item_num(raw, NULL, NULL, r->sample.at[i], 3, WML_SHOW_PLAIN);
}

static void put_monitor(struct wml_item *root, const struct wml_perf_run *r)
{
    const struct wml_json_val *t = wml_perf_target(r);
    bool traced = r->trace.asked && r->trace.document;
    if (!r->args->monitor && !traced) return;
    struct wml_item *m = wml_machine_put_monitor(root, r->args->monitor ? reply_of(r, "usage") : NULL, wml_json_get_str(t, "device"),
                                              wml_json_get_bool(t, "simulated", false));
    if (traced) wml_item_json(m, "ep_proof", wml_json_root(r->trace.document));
}

static void put_memory(struct wml_item *root, const struct wml_perf_run *r)
{
    if (r->args->memory) wml_machine_put_memory(root, reply_of(r, "memory"));
}

/* p90 with inclusive interpolation, as the trace table defines it. */
static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double p90(const struct wml_trace_row *row)
{
    size_t n = row->sample_us.len;
    if (!n) return 0;
    double *s = wml_xcalloc(n, sizeof *s);
    memcpy(s, row->sample_us.at, n * sizeof *s);
    qsort(s, n, sizeof *s, by_value);
    double at = 0.9 * (double)(n - 1);
    size_t low = (size_t)at;
    double v = low + 1 < n ? s[low] + (at - (double)low) * (s[low + 1] - s[low]) : s[n - 1];
    free(s);
    return v;
}

static void put_bytes(struct wml_item *line, const char *label, double v)
{
    if (isnan(v)) wml_item_cstr(line, NULL, label, NULL);
    else wml_item_int(line, NULL, label, (int64_t)v, WML_SHOW_BYTES);
}

/* Rows of QNN's detailed trace have more to tell; others leave these columns empty. */
static void put_operators(struct wml_item *root, const struct wml_perf_run *r, const char *title)
{
    static const struct wml_column columns[] = {
        {.label = "Node", .max_width = 60}, {.label = "Type"}, {.label = "Provider"}, {.label = "p90 us", .right = true},
        {.label = "% Tot", .right = true}, {.label = "% Cum", .right = true}, {.label = "DRAM read", .right = true},
        {.label = "VTCM read", .right = true}, {.label = "VTCM hit", .right = true}};
    enum { BASIC = 5 };
    const struct wml_trace *t = &r->trace.rows;
    struct wml_item *table = wml_item_table(root, NULL, title, columns, t->has_qhas ? WML_COUNT(columns) : (size_t)BASIC);
    double sum = 0;
    for (size_t i = 0; i < t->row.len; i++) {
        const struct wml_trace_row *row = &t->row.at[i];
        struct wml_item *line = wml_table_row(table);
        const struct wml_ep *ep = wml_ep_find(row->ep);
        wml_item_str(line, NULL, "Node", row->name);
        wml_item_str(line, NULL, "Type", row->op_type);
        wml_item_str(line, NULL, "Provider", ep ? wml_str(ep->label) : row->ep);
        wml_item_fmt(line, NULL, "p90 us", "%.1f", p90(row));
        wml_item_fmt(line, NULL, "% Tot", "%.1f", row->percent);
        sum += row->percent;
        if (!t->has_qhas) continue;
        wml_item_fmt(line, NULL, "% Cum", "%.1f", sum);
        if (!row->htp) continue;
        put_bytes(line, "DRAM read", row->htp->dram_read);
        put_bytes(line, "VTCM read", row->htp->vtcm_read);
        if (!isnan(row->htp->vtcm_hit)) wml_item_fmt(line, NULL, "VTCM hit", "%.0f %%", 100 * row->htp->vtcm_hit);
    }
    wml_table_limit(table, r->args->top_k);
}

static void put_trace(struct wml_item *root, const struct wml_perf_run *r)
{
    const struct wml_perf_trace *t = &r->trace;
    if (!t->asked) return;
    if (t->reason) {
        wml_item_null(root, "op_trace", NULL);
        wml_item_cstr(root, "op_trace_reason", NULL, t->reason);
        wml_item_cstr(root, "op_trace_error", NULL, t->error);
        return;
    }
    struct wml_item *o = wml_item_object(root, "op_trace", NULL);
    wml_item_cstr(o, "status", NULL, t->status);
    wml_item_cstr(o, "fallback_reason", NULL, t->fallback);
    wml_item_num(o, "traced_latency_ms", NULL, t->latency_ms, 3, WML_SHOW_MS);
    wml_item_int(o, "operators", NULL, (int64_t)t->rows.row.len, WML_SHOW_COUNT);
    wml_item_int(o, "partitions", NULL, (int64_t)t->rows.partitions, WML_SHOW_COUNT);
    wml_item_cstr(o, "json", NULL, t->json);
    wml_item_cstr(o, "csv", NULL, t->csv);
    char title[160];
    snprintf(title, sizeof title, "Op-Tracing (%s): %zu operators, %zu traced runs of %.2f ms%s", t->rows.has_qhas ? "detail" : "basic",
             t->rows.row.len, t->rows.runs, t->latency_ms, wml_json_get_bool(wml_perf_target(r), "simulated", false) ? ", simulated" : "");
    put_operators(root, r, wml_item_name(root, wml_str(title)));
}

void wml_perf_report(struct wml_perf_run *r, struct wml_report *out, const struct wml_err *failure)
{
    struct wml_item *root = wml_report_root(out);
    const struct wml_json_val *notes = reply_of(r, "notes");
    wml_item_int(root, "schema_version", NULL, 2, WML_SHOW_PLAIN);
    put_info(root, r);
    put_model(root, r);
    put_latency(root, r);
    put_samples(root, r);
    put_monitor(root, r);
    put_memory(root, r);
    wml_item_placement(root, "placement", root, "Where the nodes run", reply_of(r, "placement"));
    put_trace(root, r);
    struct wml_item *list = wml_item_array(root, "input_notes", NULL);
    for (size_t i = 0; i < wml_json_len(notes); i++) {
        wml_item_str(list, NULL, NULL, wml_json_str(wml_json_at(notes, i)));
        wml_item_line(root, WML_TONE_DIM, "Note: %.*s", WML_ARG(wml_json_str(wml_json_at(notes, i))));
    }
    struct wml_item *warnings = wml_item_array(root, "warnings", NULL);
    for (size_t i = 0; i < r->warning.len; i++) wml_item_cstr(warnings, NULL, NULL, r->warning.at[i]);
    if (failure) wml_item_cstr(root, "error_message", NULL, failure->msg);
}
