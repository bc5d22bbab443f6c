/* monitor/trace.h - operator traces: what EPs and ONNX Runtime wrote while a model ran, as one kind of row.
 *
 * Inputs are files of others and are not trusted: sizes are bounded, broken rows are counted and skipped,
 * and a file that makes no sense is an error that names the line. */
#ifndef WML_MONITOR_TRACE_H
#define WML_MONITOR_TRACE_H

#include "base/vec.h"

struct wml_trace_htp { /* of an operator on Qualcomm's HTP; NaN: not known. Bytes. */
    double dominant_us, ops, dram_read, dram_write, vtcm_read, vtcm_write, vtcm_hit;
};
struct wml_trace_fact { const char *key; double v; }; /* a total, by its name in reports */
enum { WML_QHAS_FACTS = 14 };

struct wml_trace_row { /* one operator; strings in the trace's arena */
    struct wml_str name, op_type, ep; /* op_type absent: not known */
    size_t partition;  /* of the EP, from 0 */
    int64_t op_id;     /* -1: none */
    double duration_us; /* mean over the samples */
    double percent;     /* of the trace's total_us */
    double start_us;   /* of the first sample, -1: not known */
    WML_VEC(double) sample_us;
    double cycles;     /* mean; 0: none */
    bool fused;        /* stands for a whole partition of an EP */
    const struct wml_trace_htp *htp; /* NULL: not known */
};

struct wml_trace {
    struct wml_arena arena;
    WML_VEC(struct wml_trace_row) row; /* slowest first once wml_trace_finish was called */
    size_t runs, partitions; /* measured runs; partitions of the EP per run */
    size_t dropped;          /* rows or blocks that were broken or incomplete */
    /* What 100 percent are: the accelerator's own total where it tells one, plus the rows of other EPs. */
    double total_us;
    /* Of the EP's own file. */
    double hvx_threads, accel_cycles, accel_us, finalize_us, execute_us; /* means; 0: not said */
    size_t blocks, node_rows;
    struct wml_trace_fact qhas[WML_QHAS_FACTS]; /* the totals of a detailed trace */
    bool has_qhas;
};

void wml_trace_release(struct wml_trace *t);
/* Sorts by duration and sets percents, but for rows whose percent the EP told (htp). A total_us of 0 becomes the sum
 * of all rows. */
void wml_trace_finish(struct wml_trace *t);

/* The QNN EP's CSV, and others that write the same columns. runs: warmup + measured of the traced session;
 * the blocks of warmup runs are left out. WML_E_FORMAT: a required column is missing, or text is broken. */
bool wml_trace_qnn(struct wml_str csv, size_t warmup, size_t runs, const char *ep, struct wml_trace *out,
                   struct wml_err *err);

/* The analysis that qnn-profile-viewer makes of a detailed trace: one sample per operator, times at the cycles'
 * share of the whole. WML_E_FORMAT names what is missing. */
bool wml_trace_qhas(struct wml_str json, const char *ep, struct wml_trace *out, struct wml_err *err);
/* The name without the compiler's _token_<d>[_<d>]. */
struct wml_str wml_qnn_name(struct wml_str s);

/* ORT's session profile (JSON): a row per node and EP. Nodes that an EP compiled into one are `fused`. With
 * the OpenVINO EP's own events inside a fused node, those become rows and the fused one goes. */
bool wml_trace_ort(struct wml_str json, size_t warmup, size_t runs, struct wml_trace *out, struct wml_err *err);

#endif
