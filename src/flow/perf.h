/* flow/perf.h - the verb `perf`. */
#ifndef WML_FLOW_PERF_H
#define WML_FLOW_PERF_H

#include "base/ctx.h"
#include "ep/ep.h"
#include "report/report.h"
#include "worker/feed.h"

struct wml_perf_args {
    const char *model;
    const char *running;  /* what is loaded, when it is not `model` (a compiled form of it); NULL: model */
    const char *output;   /* JSON report; NULL: <cache>/perf/<stem>/<time>.json */
    const char *html;     /* HTML report; NULL: none */
    bool overwrite;
    size_t iterations, warmup;
    double duration_s;    /* > 0: replaces iterations */
    struct wml_target_spec target;
    struct wml_feed_spec feed;
    const char *shape_config; /* JSON: input name or symbol -> shape or size; NULL */
    const char *precision, *task; /* as typed, for the report */
    const char *level;    /* session level: "all", ... */
    unsigned threads;
    bool monitor, memory;
    bool live;            /* progress carries the monitor's numbers, see monitor/chart.h */
    const char *trace;    /* "basic", "detail"; NULL: no trace */
    size_t trace_iterations;
    size_t top_k;
    const char *source_model; /* names and types of operators of a compiled model; NULL: told by its metadata */
    double fail_on_fallback;  /* percent of nodes that must run on the EP; < 0: do not ask */
    uint64_t timeout_ms;      /* of each child; 0: none */
};

/* The report is written (and r filled) also when the trace, the placement or a run failed after something
 * was measured; err then says what. WML_E_LOAD, WML_E_RUN, WML_E_TRACE, WML_E_FALLBACK, WML_E_CANCELLED. */
bool wml_flow_perf(const struct wml_perf_args *a, struct wml_ctx *cx, struct wml_report *r, struct wml_err *err);

#endif
