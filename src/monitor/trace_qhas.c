/* What qnn-profile-viewer makes of a detailed QNN trace: the HTP analysis summary ("QHAS"), JSON.
 *
 *     {"data": {"htp_overall_summary": {"data": [{"time_us", "timeline_cycles", ...}]},
 *               "qnn_op_instances_nodes": {"data": [{"qnn_op", "qnn_op_type", "cycles", ...}]}}}
 *
 * Numbers may be written as strings. A missing total is an error that names it; of the operators only name, type,
 * cycles and percent are required. */
#include "monitor/trace.h"

#include <math.h>

#include "base/num.h"
#include "text/json.h"

enum { MAX_OPERATORS = 1 << 20 };

static double number_of(const struct wml_json_val *object, const char *key)
{
    const struct wml_json_val *v = wml_json_get(object, key);
    double n;
    if (wml_json_is_number(v)) n = wml_json_num(v, NAN);
    else if (!wml_json_is_string(v) || !wml_parse_f64(wml_str_trim(wml_json_str(v)), &n)) return NAN;
    return isfinite(n) ? n : NAN;
}

static bool read_summary(const struct wml_json_val *row, struct wml_trace *out, struct wml_err *err)
{
    static const struct { const char *from, *to; } key[WML_QHAS_FACTS] = {
        {"time_us", "inference_us"}, {"graph_execute_us", "execute_us"}, {"inf_per_s", "inf_per_s"},
        {"timeline_cycles", "timeline_cycles"}, {"percent_utilization", "utilization_pct"},
        {"total_dram_read", "dram_read_bytes"}, {"total_dram_write", "dram_write_bytes"},
        {"total_vtcm_read", "vtcm_read_bytes"}, {"total_vtcm_write", "vtcm_write_bytes"}, {"peak_vtcm_alloc", "vtcm_peak_bytes"},
        {"qnn_nodes", "qnn_nodes"}, {"htp_nodes", "htp_nodes"}, {"unique_qnn_ops", "unique_qnn_ops"},
        {"unique_htp_ops", "unique_htp_ops"}};
    for (size_t i = 0; i < WML_QHAS_FACTS; i++) {
        out->qhas[i] = (struct wml_trace_fact){key[i].to, number_of(row, key[i].from)};
        if (isnan(out->qhas[i].v))
            return wml_fail(err, WML_E_FORMAT, "the HTP analysis has no number '%s' in htp_overall_summary", key[i].from);
    }
    return true;
}

static bool read_operator(const struct wml_json_val *v, double us_per_cycle, const char *ep, struct wml_trace *t, struct wml_err *err)
{
    double cycles = number_of(v, "cycles"), percent = number_of(v, "percent_active_cycles");
    struct wml_str path = wml_json_get_str(v, "qnn_op"), type = wml_json_get_str(v, "qnn_op_type");
    const char *missing = isnan(cycles) ? "cycles" : isnan(percent) ? "percent_active_cycles" : !path.len ? "qnn_op" : !type.len ? "qnn_op_type" : NULL;
    if (missing) return wml_fail(err, WML_E_FORMAT, "the HTP analysis has no '%s' in operator %zu", missing, t->row.len);
    struct wml_trace_htp *htp = WML_NEW(&t->arena, struct wml_trace_htp);
    *htp = (struct wml_trace_htp){
        .dominant_us = number_of(v, "num_dominant_path_cycles_htp_0") * us_per_cycle, .ops = number_of(v, "num_htp_ops"),
        .dram_read = number_of(v, "dram_read"), .dram_write = number_of(v, "dram_write"),
        .vtcm_read = number_of(v, "vtcm_read"), .vtcm_write = number_of(v, "vtcm_write")};
    double reads = htp->vtcm_read + htp->dram_read;
    htp->vtcm_hit = reads > 0 ? htp->vtcm_read / reads : NAN;
    struct wml_trace_row row = {.name = wml_arena_str(&t->arena, wml_qnn_name(path)), .op_type = wml_arena_str(&t->arena, type),
                                .ep = wml_str(ep), .op_id = -1, .start_us = -1, .duration_us = cycles * us_per_cycle,
                                .percent = percent, .cycles = cycles, .htp = htp};
    WML_PUSH(&row.sample_us, row.duration_us);
    WML_PUSH(&t->row, row);
    t->node_rows++;
    return true;
}

bool wml_trace_qhas(struct wml_str json, const char *ep, struct wml_trace *out, struct wml_err *err)
{
    struct wml_json_doc *doc = NULL;
    struct wml_json_iter it = {0};
    struct wml_str key;
    const struct wml_json_val *v;
    if (!wml_json_parse(json, &doc, err)) return wml_wrap(err, "the HTP analysis");
    const struct wml_json_val *data = wml_json_get(wml_json_root(doc), "data");
    const struct wml_json_val *rows = wml_json_get(wml_json_get(data, "qnn_op_instances_nodes"), "data");
    const struct wml_json_val *totals = wml_json_get(wml_json_get(data, "htp_overall_summary"), "data");
    bool ok = read_summary(wml_json_is_array(totals) ? wml_json_at(totals, 0) : NULL, out, err);
    double cycles = ok ? out->qhas[3].v : 0, us_per_cycle = cycles > 0 ? out->qhas[0].v / cycles : 0;
    if (ok && (!wml_json_is_array(rows) || !wml_json_len(rows) || wml_json_len(rows) > MAX_OPERATORS))
        ok = wml_fail(err, WML_E_FORMAT, "the HTP analysis has no operators in qnn_op_instances_nodes");
    while (ok && wml_json_next(rows, &it, &key, &v)) ok = read_operator(v, us_per_cycle, ep, out, err);
    out->has_qhas = ok;
    out->total_us = ok ? out->qhas[0].v : 0;
    out->runs = out->partitions = ok;
    wml_json_free(doc);
    return ok;
}
