/* The profiling CSV of the QNN EP from any bytes: the first two say how many runs there were. */
#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "monitor/trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wml_trace t = {0};
    struct wml_err err = {0};
    size_t warmup = size > 0 ? data[0] % 4 : 0, runs = size > 1 ? data[1] % 16 : 0;
    struct wml_str csv = {(const char *)data + (size > 2 ? 2 : size), size > 2 ? size - 2 : 0};
    bool ok = wml_trace_qnn(csv, warmup, runs, "QNNExecutionProvider", &t, &err);
    if (!ok && (!err.code || !err.msg[0])) abort();
    wml_trace_finish(&t);
    for (size_t i = 0; i < t.row.len; i++) {
        const struct wml_trace_row *row = &t.row.at[i];
        if (!row->sample_us.len || row->sample_us.len > t.runs || row->partition >= t.partitions) abort();
    }
    if (runs && t.runs > runs) abort();
    wml_trace_release(&t);
    return 0;
}
