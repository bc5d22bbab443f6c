/* monitor/etw.h - Windows' event tracing: whether somebody listens to ONNX Runtime. Then the QNN EP sends its
 * profile there and writes no file. */
#ifndef WML_MONITOR_ETW_H
#define WML_MONITOR_ETW_H

#include "base/str.h"

/* True when a session has the provider Microsoft.ML.ONNXRuntime enabled; its name (or number) goes to out. Always
 * false on other systems, and when the system does not tell. */
bool wml_etw_ort_session(struct wml_buf *out);

#endif
