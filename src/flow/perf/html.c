/* The HTML report: one file without references to anything else. Charts are inline SVG drawn here; colours
 * follow the reader's light or dark setting. Every text of others is escaped. */
#include "flow/perf/internal.h"

#include <inttypes.h>
#include <math.h>

#include "base/map.h"
#include "flow/html.h"
#include "os/path.h"
#include "text/words.h"

enum { CHART_W = 880, CHART_H = 220, PAD_LEFT = 56, PAD_BOTTOM = 26, PAD_TOP = 12, BINS = 40, MAX_POINTS = 2000, TOP = 25, TOP_TYPES = 12 };

static void row(struct wml_buf *b, const char *label, struct wml_str value)
{
    if (!value.len) return;
    wml_buf_fmt(b, "<tr><th>%s</th><td>", label);
    wml_html_escape(b, value);
    wml_buf_cstr(b, "</td></tr>\n");
}

static void card(struct wml_buf *b, const char *label, double v, const char *unit)
{
    wml_buf_fmt(b, "<div class=card><b>%.*f</b><span>%s, %s</span></div>\n", v < 10 ? 3 : v < 1000 ? 2 : 0, v, label, unit);
}

/* A round step that gives about four lines. */
static double step_for(double range)
{
    double raw = range / 4, power = pow(10, floor(log10(raw > 0 ? raw : 1))), f = raw / power;
    return power * (f < 1.5 ? 1 : f < 3 ? 2 : f < 7 ? 5 : 10);
}

static void y_axis(struct wml_buf *b, double low, double high)
{
    double step = step_for(high - low), h = CHART_H - PAD_TOP - PAD_BOTTOM;
    for (double v = ceil(low / step) * step; v <= high + step * 1e-9; v += step) {
        double y = PAD_TOP + h * (1 - (v - low) / (high - low));
        wml_buf_fmt(b, "<line class=grid x1=%d x2=%d y1=%.1f y2=%.1f />", PAD_LEFT, CHART_W - 10, y, y);
        wml_buf_fmt(b, "<text x=%d y=%.1f text-anchor=end>%.6g</text>\n", PAD_LEFT - 6, y + 4, v);
    }
}

/* Latency over time: every run, or the slowest of each stretch when there are very many. */
static void over_time(const struct wml_perf_run *r, struct wml_buf *b)
{
    size_t n = r->sample.len, every = n > MAX_POINTS ? (n + MAX_POINTS - 1) / MAX_POINTS : 1;
    double high = r->stats.max, low = r->stats.min, pad = (high - low) * 0.08;
    if (high <= low) pad = high > 0 ? high * 0.1 : 1;
    low = fmax(0, low - pad);
    high += pad;
    double w = CHART_W - PAD_LEFT - 10, h = CHART_H - PAD_TOP - PAD_BOTTOM;
    wml_buf_fmt(b, "<svg viewBox=\"0 0 %d %d\" role=img aria-label=\"latency of every run\">\n", CHART_W, CHART_H);
    y_axis(b, low, high);
    wml_buf_cstr(b, n > 1 ? "<polyline class=l points=\"" : "");
    for (size_t i = 0; n > 1 && i < n; i += every) {
        double v = r->sample.at[i];
        for (size_t k = i; k < n && k < i + every; k++) v = fmax(v, r->sample.at[k]);
        wml_buf_fmt(b, "%.1f,%.1f ", PAD_LEFT + w * (double)i / (double)(n - 1), PAD_TOP + h * (1 - (v - low) / (high - low)));
    }
    if (n > 1) wml_buf_cstr(b, "\" />\n");
    for (size_t i = 0; i < n && n <= 60; i++)
        wml_buf_fmt(b, "<circle class=d r=2.5 cx=%.1f cy=%.1f />", PAD_LEFT + (n > 1 ? w * (double)i / (double)(n - 1) : w / 2),
                    PAD_TOP + h * (1 - (r->sample.at[i] - low) / (high - low)));
    double y = PAD_TOP + h * (1 - (r->stats.p50 - low) / (high - low));
    wml_buf_fmt(b, "<line class=m x1=%d x2=%d y1=%.1f y2=%.1f />", PAD_LEFT, CHART_W - 10, y, y);
    wml_buf_fmt(b, "<text x=%d y=%d>run 1</text><text x=%d y=%d text-anchor=end>run %zu</text></svg>\n", PAD_LEFT, CHART_H - 8,
                CHART_W - 10, CHART_H - 8, n);
}

static void histogram(const struct wml_perf_run *r, struct wml_buf *b)
{
    size_t bin[BINS] = {0}, most = 1;
    double low = r->stats.min, high = r->stats.max;
    if (high <= low) high = low + (low > 0 ? low * 0.01 : 1);
    for (size_t i = 0; i < r->sample.len; i++) {
        size_t k = (size_t)((r->sample.at[i] - low) / (high - low) * BINS);
        k = WML_MIN(k, (size_t)BINS - 1);
        most = WML_MAX(most, ++bin[k]);
    }
    double w = CHART_W - PAD_LEFT - 10, h = CHART_H - PAD_TOP - PAD_BOTTOM;
    wml_buf_fmt(b, "<svg viewBox=\"0 0 %d %d\" role=img aria-label=\"histogram of latency\">\n", CHART_W, CHART_H);
    y_axis(b, 0, (double)most);
    for (size_t i = 0; i < BINS; i++) {
        double bar = h * (double)bin[i] / (double)most;
        if (!bin[i]) continue;
        wml_buf_fmt(b, "<rect class=h x=%.1f y=%.1f width=%.1f height=%.1f><title>%zu runs from %.3f ms</title></rect>\n",
                    PAD_LEFT + w * (double)i / BINS + 1, PAD_TOP + h - bar, w / BINS - 2, bar, bin[i], low + (high - low) * (double)i / BINS);
    }
    for (int i = 0; i <= 4; i++)
        wml_buf_fmt(b, "<text x=%.1f y=%d text-anchor=%s>%.3g ms</text>", PAD_LEFT + w * i / 4, CHART_H - 8, i == 0 ? "start" : i == 4 ? "end" : "middle",
                    low + (high - low) * i / 4);
    wml_buf_cstr(b, "</svg>\n");
}

static void traffic(const struct wml_trace_htp *h, struct wml_buf *b)
{
    const double bytes[] = {h ? h->dram_read : NAN, h ? h->vtcm_read : NAN};
    for (size_t i = 0; i < WML_COUNT(bytes); i++) {
        wml_buf_cstr(b, "</td><td class=n>");
        if (bytes[i] >= 0) wml_size_text(b, (uint64_t)fmin(bytes[i], 1e18));
    }
    wml_buf_cstr(b, "</td><td class=n>");
    if (h && !isnan(h->vtcm_hit)) wml_buf_fmt(b, "%.0f %%", 100 * h->vtcm_hit);
}

static void operators(const struct wml_perf_run *r, struct wml_buf *b)
{
    const struct wml_perf_trace *t = &r->trace;
    if (!t->asked) return;
    wml_buf_cstr(b, "<h2>Operators</h2>\n");
    if (t->reason) {
        wml_buf_fmt(b, "<p class=warn>No trace (%s): ", t->reason);
        wml_html_escape(b, wml_str(t->error));
        wml_buf_cstr(b, "</p>\n");
        return;
    }
    wml_buf_fmt(b, "<p class=sub>The %zu slowest of %zu, from %zu traced runs of %.2f ms. Tracing slows a run down.</p>\n",
                WML_MIN((size_t)TOP, t->rows.row.len), t->rows.row.len, t->rows.runs, t->latency_ms);
    bool detail = t->rows.has_qhas;
    wml_buf_fmt(b, "<table><tr><th>Node</th><th>Type</th><th>Provider</th>%s<th class=n>us</th><th class=n>%%</th><th style=\"width:20%%\"></th></tr>\n",
                detail ? "<th class=n>DRAM read</th><th class=n>VTCM read</th><th class=n>VTCM hit</th>" : "");
    double most = t->rows.row.len ? t->rows.row.at[0].percent : 1;
    for (size_t i = 0; i < t->rows.row.len && i < TOP; i++) {
        const struct wml_trace_row *o = &t->rows.row.at[i];
        const struct wml_ep *ep = wml_ep_find(o->ep);
        wml_buf_cstr(b, "<tr><td>");
        wml_html_escape(b, o->name);
        wml_buf_cstr(b, "</td><td>");
        wml_html_escape(b, o->op_type);
        wml_buf_cstr(b, "</td><td>");
        wml_html_escape(b, ep ? wml_str(ep->label) : o->ep);
        if (detail) traffic(o->htp, b);
        wml_buf_fmt(b, "</td><td class=n>%.1f</td><td class=n>%.1f</td><td><div class=bar style=\"width:%.0f%%\"></div></td></tr>\n",
                    o->duration_us, o->percent, most > 0 ? 100 * o->percent / most : 0);
    }
    wml_buf_cstr(b, "</table>\n");
}

struct by_type { struct wml_str type; size_t n; double us, percent; };

static int slower(const void *a, const void *b)
{
    const struct by_type *x = a, *y = b;
    return x->us < y->us ? 1 : x->us > y->us ? -1 : wml_str_cmp(x->type, y->type);
}

/* Time per type of operator. */
static void types(const struct wml_perf_run *r, struct wml_buf *b)
{
    const struct wml_perf_trace *t = &r->trace;
    struct wml_map index = {0};
    WML_VEC(struct by_type) sum = {0};
    if (!t->asked || t->reason || !t->rows.row.len) return;
    for (size_t i = 0; i < t->rows.row.len; i++) {
        const struct wml_trace_row *o = &t->rows.row.at[i];
        uintptr_t at = (uintptr_t)wml_map_get(&index, o->op_type);
        if (!at) {
            struct by_type fresh = {.type = o->op_type};
            WML_PUSH(&sum, fresh);
            at = sum.len;
            wml_map_put(&index, o->op_type, (void *)at);
        }
        sum.at[at - 1].n++;
        sum.at[at - 1].us += o->duration_us;
        sum.at[at - 1].percent += o->percent;
    }
    qsort(sum.at, sum.len, sizeof *sum.at, slower);
    wml_buf_cstr(b, "<h2>Types of operators</h2>\n<table><tr><th>Type</th><th class=n>Nodes</th><th class=n>us</th><th class=n>%</th>"
                    "<th style=\"width:45%\"></th></tr>\n");
    for (size_t i = 0; i < sum.len && i < TOP_TYPES; i++) {
        wml_buf_cstr(b, "<tr><td>");
        wml_html_escape(b, sum.at[i].type);
        wml_buf_fmt(b, "</td><td class=n>%zu</td><td class=n>%.1f</td><td class=n>%.1f</td><td><div class=bar style=\"width:%.0f%%\"></div></td></tr>\n",
                    sum.at[i].n, sum.at[i].us, sum.at[i].percent, sum.at[0].us > 0 ? 100 * sum.at[i].us / sum.at[0].us : 0);
    }
    wml_buf_cstr(b, "</table>\n");
    wml_map_release(&index);
    WML_VEC_RELEASE(&sum);
}

static void placement(const struct wml_perf_run *r, struct wml_buf *b)
{
    const struct wml_json_val *list = wml_json_get(wml_json_root(r->reply), "placement");
    size_t all = 0;
    for (size_t i = 0; i < wml_json_len(list); i++) all += (size_t)wml_json_get_int(wml_json_at(list, i), "nodes", 0);
    if (!all) return;
    wml_buf_cstr(b, "<h2>Where the nodes run</h2>\n<table><tr><th>Provider</th><th class=n>Nodes</th><th style=\"width:50%\"></th></tr>\n");
    for (size_t i = 0; i < wml_json_len(list); i++) {
        const struct wml_json_val *e = wml_json_at(list, i);
        int64_t n = wml_json_get_int(e, "nodes", 0);
        wml_buf_cstr(b, "<tr><td>");
        wml_html_escape(b, wml_json_get_str(e, "ep"));
        wml_buf_fmt(b, "</td><td class=n>%" PRId64 "</td><td><div class=bar style=\"width:%.0f%%\"></div></td></tr>\n", n,
                    100 * (double)n / (double)all);
    }
    wml_buf_cstr(b, "</table>\n");
}

static void memory(const struct wml_perf_run *r, struct wml_buf *b)
{
    const struct wml_json_val *m = wml_json_get(wml_json_root(r->reply), "memory");
    if (!r->args->memory || !m) return;
    wml_buf_cstr(b, "<h2>Memory</h2>\n<div class=cards>\n");
    card(b, "before the model", wml_json_get_num(m, "baseline", 0) / 1048576, "MB");
    card(b, "after loading", wml_json_get_num(m, "loaded", 0) / 1048576, "MB");
    card(b, "after running", wml_json_get_num(m, "after", 0) / 1048576, "MB");
    card(b, "peak", wml_json_get_num(m, "peak", 0) / 1048576, "MB");
    wml_buf_cstr(b, "</div>\n");
}

/* What the monitor saw; unknown loads have no card. */
static void load(const struct wml_perf_run *r, struct wml_buf *b)
{
    static const struct { const char *key, *mean, *peak; } row[] = {
        {"npu", "NPU, mean", "NPU, peak"}, {"gpu", "GPU, mean", "GPU, peak"}, {"machine", "all CPUs, mean", "all CPUs, peak"}};
    const struct wml_json_val *u = wml_json_get(wml_json_root(r->reply), "usage");
    if (!r->args->monitor || !u) return;
    wml_buf_cstr(b, "<h2>Load</h2>\n<div class=cards>\n");
    card(b, "this process, of one CPU", wml_json_get_num(u, "cpu_mean", 0), "%");
    for (size_t i = 0; i < WML_COUNT(row); i++) {
        const struct wml_json_val *v = wml_json_get(u, row[i].key);
        if (!wml_json_get_int(v, "samples", 0)) continue;
        card(b, row[i].mean, wml_json_get_num(v, "mean", 0), "%");
        card(b, row[i].peak, wml_json_get_num(v, "peak", 0), "%");
    }
    wml_buf_cstr(b, "</div>\n");
}

static void identity(const struct wml_perf_run *r, struct wml_buf *b)
{
    const struct wml_json_val *t = wml_perf_target(r), *v;
    struct wml_json_iter it = {0};
    struct wml_str key;
    struct wml_buf options = {0};
    wml_buf_cstr(b, "<h2>What was measured</h2>\n<table>\n");
    row(b, "Model", wml_str(r->running));
    row(b, "Precision", wml_str(r->precision));
    row(b, "Provider", wml_json_get_str(t, "ep"));
    row(b, "Provider version", wml_json_get_str(t, "ep_version"));
    row(b, "Provider library", wml_json_get_str(t, "library"));
    row(b, "Device", wml_json_get_str(t, "device"));
    row(b, "Hardware", wml_json_get_str(t, "hardware"));
    row(b, "ONNX Runtime", wml_json_get_str(t, "ort_version"));
    while (wml_json_next(wml_json_get(t, "options"), &it, &key, &v))
        wml_buf_fmt(&options, "%s%.*s=%.*s", options.len ? ", " : "", WML_ARG(key), WML_ARG(wml_json_str(v)));
    row(b, "Provider options", wml_buf_view(&options));
    row(b, "Session level", wml_json_get_str(wml_json_root(r->reply), "level"));
    row(b, "Time", wml_str(r->timestamp));
    wml_buf_cstr(b, "</table>\n");
    wml_buf_release(&options);
}

void wml_perf_html(const struct wml_perf_run *r, struct wml_buf *b)
{
    const struct wml_json_val *t = wml_perf_target(r);
    struct wml_str name = wml_path_name(wml_str(r->args->model));
    wml_buf_cstr(b, "<!doctype html>\n<html lang=en><meta charset=utf-8><meta name=viewport content=\"width=device-width\">\n<title>");
    wml_html_escape(b, name);
    wml_buf_fmt(b, " - winml perf</title>\n<style>%s</style>\n<main><h1>", wml_html_style);
    wml_html_escape(b, name);
    wml_buf_cstr(b, "</h1>\n<p class=sub>");
    wml_html_escape(b, wml_json_get_str(t, "ep"));
    wml_buf_fmt(b, " on %.*s, %zu runs", WML_ARG(wml_json_get_str(t, "device")), r->sample.len);
    if (wml_json_get_bool(t, "simulated", false)) wml_buf_cstr(b, "<br><span class=warn>Simulated: times are not hardware times.</span>");
    for (size_t i = 0; i < r->warning.len; i++) {
        wml_buf_cstr(b, "<br><span class=warn>");
        wml_html_escape(b, wml_str(r->warning.at[i]));
        wml_buf_cstr(b, "</span>");
    }
    wml_buf_cstr(b, "</p>\n<div class=cards>\n");
    card(b, "median", r->stats.p50, "ms");
    card(b, "mean", r->stats.mean, "ms");
    card(b, "p90", r->stats.p90, "ms");
    card(b, "p95", r->stats.p95, "ms");
    card(b, "p99", r->stats.p99, "ms");
    card(b, "fastest", r->stats.min, "ms");
    card(b, "slowest", r->stats.max, "ms");
    card(b, "deviation", r->stats.std, "ms");
    wml_buf_cstr(b, "</div>\n<h2>Latency of every run (ms) <small>dashed: the median</small></h2>\n");
    over_time(r, b);
    wml_buf_cstr(b, "<h2>Histogram (runs)</h2>\n");
    histogram(r, b);
    types(r, b);
    operators(r, b);
    placement(r, b);
    memory(r, b);
    load(r, b);
    identity(r, b);
    wml_buf_cstr(b, "</main></html>\n");
}
