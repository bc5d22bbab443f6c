/* The operator trace as JSON: keys of the Python tool's file, and what it leaves out. */
#include "flow/perf/internal.h"

#include <math.h>

#include "os/file.h"

static void put_number_or_null(struct wml_json *j, const char *key, double v, bool known)
{
    wml_json_key(j, key);
    if (known) wml_json_put_fixed(j, v, 3);
    else wml_json_put_null(j);
}

/* Counts without a point; NaN: null. */
static void put_whole_or_not(struct wml_json *j, const char *key, double v)
{
    if (fabs(v) < 9e15 && v == floor(v)) {
        wml_json_key(j, key);
        wml_json_put_int(j, (int64_t)v);
    } else {
        put_number_or_null(j, key, v, !isnan(v));
    }
}

static void put_row(struct wml_json *j, const struct wml_trace_row *row)
{
    static const struct wml_trace_htp unknown = {NAN, NAN, NAN, NAN, NAN, NAN, NAN};
    const struct wml_trace_htp *h = row->htp ? row->htp : &unknown;
    const struct { const char *key; double v; } fact[] = {
        {"hardware_time_us", NAN}, {"memory_time_us", NAN}, {"dominant_path_us", h->dominant_us}, {"dram_read_bytes", h->dram_read},
        {"dram_write_bytes", h->dram_write}, {"vtcm_read_bytes", h->vtcm_read}, {"vtcm_write_bytes", h->vtcm_write},
        {"vtcm_hit_ratio", h->vtcm_hit}, {"num_htp_ops", h->ops}, {"data_type", NAN}, {"dims", NAN}};
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
    for (size_t i = 0; i < WML_COUNT(fact); i++) put_whole_or_not(j, fact[i].key, fact[i].v);
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
    if (!t->has_qhas) put_number_or_null(j, "execute_us", t->execute_us, t->execute_us > 0);
    put_number_or_null(j, "host_call_us", r->trace.call_us, r->trace.call_us > 0);
    put_number_or_null(j, "finalize_us", t->finalize_us, t->finalize_us > 0);
    put_number_or_null(j, "traced_latency_ms", r->trace.latency_ms, r->trace.latency_ms > 0);
    wml_json_key(j, "partitions");
    wml_json_put_uint(j, t->partitions);
    for (size_t i = 0; i < WML_QHAS_FACTS && t->has_qhas; i++) put_whole_or_not(j, t->qhas[i].key, t->qhas[i].v);
    wml_json_end(j, '}');
    wml_json_key(j, "artifacts");
    wml_json_begin(j, '{');
    wml_json_key(j, "csv");
    wml_json_put_cstr(j, r->trace.csv);
    wml_json_key(j, "qhas");
    wml_json_put_cstr(j, r->trace.qhas);
    wml_json_key(j, "schematic");
    wml_json_put_cstr(j, r->trace.schematic);
    wml_json_key(j, "profile");
    wml_json_put_cstr(j, r->trace.profile);
    wml_json_key(j, "log");
    wml_json_put_cstr(j, r->trace.log);
    wml_json_end(j, '}');
    wml_json_key(j, "looked_for");
    wml_json_begin(j, '[');
    for (size_t i = 0; i < r->trace.looked.len; i++) wml_json_put_cstr(j, r->trace.looked.at[i]);
    wml_json_end(j, ']');
}

void wml_perf_trace_write(struct wml_perf_run *r, const char *path)
{
    struct wml_buf text = {0};
    struct wml_json j = {.out = &text, .indent = 2};
    struct wml_err err = {0};
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
    wml_json_parse(wml_buf_view(&text), &r->trace.document, &err);
    wml_buf_release(&text);
}
