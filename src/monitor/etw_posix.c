/* There is no event tracing for Windows here. */
#include "monitor/etw.h"

bool wml_etw_ort_session(struct wml_buf *out)
{
    (void)out;
    return false;
}
