/* The HTP analysis of qnn-profile-viewer from any bytes. */
#include <stddef.h>
#include <stdint.h>

#include "monitor/trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wml_trace t = {0};
    struct wml_err err = {0};
    bool ok = wml_trace_qhas((struct wml_str){(const char *)data, size}, "QNNExecutionProvider", &t, &err);
    if (ok ? !t.row.len || !t.has_qhas : !err.code || !err.msg[0]) abort();
    wml_trace_finish(&t);
    for (size_t i = 0; i < t.row.len; i++)
        if (t.row.at[i].sample_us.len != 1 || !t.row.at[i].htp || !t.row.at[i].name.ptr) abort();
    wml_trace_release(&t);
    return 0;
}
