/* flow/perf/internal.h - the parts of `perf`. Internal to this folder. */
#ifndef WML_FLOW_PERF_INTERNAL_H
#define WML_FLOW_PERF_INTERNAL_H

#include "flow/perf.h"
#include "monitor/stats.h"
#include "monitor/trace.h"
#include "text/json.h"
#include "worker/worker.h"

struct wml_perf_trace { /* the traced pass */
    bool asked;
    const char *status;        /* "ok", "no_data", "parse_failed", "not_run", "basic_fallback" */
    const char *reason;        /* code of perf.md: "no_nodes_on_ep", ...; NULL: none */
    const char *error;         /* for people; NULL: none */
    const char *hint;
    const char *fallback;      /* why detail became basic; NULL */
    const char *viewer, *viewer_libs; /* the vendor's tool and its libraries; NULL: no detail */
    const char *qhas, *schematic;     /* files of a detailed trace; NULL: none */
    const char *json, *csv, *profile, *log, *folder; /* files; NULL: not there */
    struct wml_trace rows;
    struct wml_json_doc *reply; /* of the traced job; NULL: none */
    struct wml_json_doc *document; /* the trace as it was written; NULL: none */
    double latency_ms;          /* mean of the traced runs */
    double call_us;             /* of a run inside the EP as ORT saw it, with the EP's own overhead */
    WML_VEC(const char *) looked; /* paths that were looked at */
};

struct wml_perf_run {
    const struct wml_perf_args *args;
    struct wml_ctx *cx;
    struct wml_arena arena;
    const char *running;
    const char *output;
    const char *precision; /* of the model, NULL: not known */
    bool compiled;         /* holds EPContext nodes */
    size_t n_nodes;
    const char *source_model; /* for names of operators; NULL: the model itself */
    const char *source_sha;   /* what the compiled model says it was; NULL: not said */
    struct wml_feed_spec feed;
    struct wml_feed_spec ranges; /* only its ranges: from the model's metadata */
    struct wml_target_spec target; /* what was asked for, or the CPU EP after an automatic choice failed */
    const struct wml_ep *ep;
    struct wml_json_doc *reply; /* of the timed job; NULL: only samples were salvaged */
    WML_VEC(double) sample, warmup;
    bool interrupted;
    const char *salvaged; /* how the child ended, when it did not end well */
    struct wml_stats stats;
    double on_ep_percent; /* share of nodes on the EP; < 0: not known */
    struct wml_perf_trace trace;
    WML_VEC(const char *) warning;
    char timestamp[40];
};

void wml_perf_warn(struct wml_perf_run *r, struct wml_str text);
/* What the model file says: precision, compiled parts, where its source is. */
bool wml_perf_look(struct wml_perf_run *r, struct wml_err *err);
/* The timed pass. false with samples kept (sample.len > 0) when the child died on the way. */
bool wml_perf_bench(struct wml_perf_run *r, struct wml_err *err);
/* The request of a bench job. csv, profile: NULL for the timed pass. cut: end early without the csv. */
void wml_perf_request(struct wml_perf_run *r, const char *samples, const char *csv, bool cut, const char *profile,
                      struct wml_buf *out);
/* The traced pass; never fails as a whole: see trace.status. */
void wml_perf_trace_run(struct wml_perf_run *r);
/* Looks for the vendor's viewer. Then the traced run also leaves what it needs. */
bool wml_perf_find_viewer(struct wml_perf_run *r);
/* Runs it; on success its rows replace the EP's, else trace.fallback says why not. */
void wml_perf_detail(struct wml_perf_run *r, const char *csv, size_t partitions, const char *ep);
/* The trace's own JSON file. */
void wml_perf_trace_write(struct wml_perf_run *r, const char *path);
void wml_perf_trace_release(struct wml_perf_trace *t);
void wml_perf_report(struct wml_perf_run *r, struct wml_report *out, const struct wml_err *failure);
/* One self-contained page. */
void wml_perf_html(const struct wml_perf_run *r, struct wml_buf *out);
const struct wml_json_val *wml_perf_target(const struct wml_perf_run *r);

#endif
