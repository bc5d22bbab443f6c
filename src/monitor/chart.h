/* monitor/chart.h - the live panel of a benchmark: a chart over time and a few rows, as text. It draws into a
 * buffer and knows no terminal. Belongs to one thread. */
#ifndef WML_MONITOR_CHART_H
#define WML_MONITOR_CHART_H

#include "base/vec.h"

/* How a child tells the newest numbers in the item of its progress: share of one CPU in percent, memory in MB,
 * the last run in ms, load of GPU and NPU in percent (negative: not known). */
#define WML_LIVE_ITEM "cpu %.1f mb %.1f ms %.6f gpu %.1f npu %.1f"

struct wml_chart_point { double t_s, cpu, mb, ms, gpu, npu; }; /* t_s: since the start; cpu: 0..100 of the machine */

struct wml_chart {
    const char *title;      /* "HW Monitor - net.onnx" */
    const char *device;     /* "npu, QNN (simulated)" */
    unsigned cpus;
    double start_s;         /* clock at the first point */
    WML_VEC(struct wml_chart_point) point;
    const char *stage;      /* "Warmup", "Iter", ...; of the last progress */
    uint64_t done, total;
    bool timed;             /* done and total are milliseconds, not runs */
    double batch;
    const char *unit;       /* of the throughput; NULL: "smp/s" */
};

/* Reads an item; false when it is none of ours. now_s: any steady clock, in seconds. */
bool wml_chart_add(struct wml_chart *c, double now_s, struct wml_str item);
/* The panel: lines of at most `width` columns, at most `height` of them, each ended by \n. Colours are escape
 * codes. Returns the number of lines. */
size_t wml_chart_draw(const struct wml_chart *c, unsigned width, unsigned height, bool colour, struct wml_buf *out);
void wml_chart_release(struct wml_chart *c);

#endif
