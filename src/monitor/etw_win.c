/* Asks the system who has enabled ONNX Runtime's provider, then which session that is. Both answers come as
 * chains of records in one buffer; every step is checked against its end. */
#include "monitor/etw.h"

#include <windows.h>
#include <evntrace.h>
#include <wchar.h>

#include "base/arena.h"

enum { MAX_SESSIONS = 64, MAX_NAME = 1024 };

static const GUID ort_provider = {0x3a26b1ff, 0x7484, 0x7484, {0x74, 0x84, 0x15, 0x26, 0x1f, 0x42, 0x61, 0x4d}};

/* Number of a session that listens; 0: none. */
static USHORT find_listener(void)
{
    GUID guid = ort_provider;
    ULONG size = 0;
    USHORT found = 0;
    EnumerateTraceGuidsEx(TraceGuidQueryInfo, &guid, sizeof guid, NULL, 0, &size);
    if (size < sizeof(TRACE_GUID_INFO) || size > 1 << 20) return 0;
    char *bytes = wml_xcalloc(1, size);
    if (EnumerateTraceGuidsEx(TraceGuidQueryInfo, &guid, sizeof guid, bytes, size, &size) == ERROR_SUCCESS) {
        TRACE_GUID_INFO info;
        memcpy(&info, bytes, sizeof info);
        size_t at = sizeof info;
        for (ULONG i = 0; i < info.InstanceCount && !found && at + sizeof(TRACE_PROVIDER_INSTANCE_INFO) <= size; i++) {
            TRACE_PROVIDER_INSTANCE_INFO p;
            TRACE_ENABLE_INFO e;
            memcpy(&p, bytes + at, sizeof p);
            for (ULONG k = 0; k < p.EnableCount && !found; k++) {
                size_t from = at + sizeof p + k * sizeof e;
                if (from + sizeof e > size) break;
                memcpy(&e, bytes + from, sizeof e);
                if (e.IsEnabled) found = e.LoggerId;
            }
            if (!p.NextOffset) break;
            at += p.NextOffset;
        }
    }
    free(bytes);
    return found;
}

struct session { /* as the system fills it: names follow the properties */
    EVENT_TRACE_PROPERTIES p;
    wchar_t name[MAX_NAME], file[MAX_NAME];
};

static bool name_of(USHORT id, struct wml_buf *out)
{
    struct session *all = wml_xcalloc(MAX_SESSIONS, sizeof *all);
    EVENT_TRACE_PROPERTIES *list[MAX_SESSIONS];
    ULONG n = 0;
    bool found = false;
    for (size_t i = 0; i < MAX_SESSIONS; i++) {
        all[i].p.Wnode.BufferSize = sizeof *all;
        all[i].p.LoggerNameOffset = offsetof(struct session, name);
        all[i].p.LogFileNameOffset = offsetof(struct session, file);
        list[i] = &all[i].p;
    }
    if (QueryAllTracesW(list, MAX_SESSIONS, &n) == ERROR_SUCCESS)
        for (ULONG i = 0; i < n && i < MAX_SESSIONS && !found; i++) {
            char utf8[3 * MAX_NAME];
            if (all[i].p.Wnode.HistoricalContext != id) continue;
            all[i].name[MAX_NAME - 1] = 0;
            found = WideCharToMultiByte(CP_UTF8, 0, all[i].name, -1, utf8, sizeof utf8, NULL, NULL) > 1;
            if (found) wml_buf_cstr(out, utf8);
        }
    free(all);
    return found;
}

bool wml_etw_ort_session(struct wml_buf *out)
{
    USHORT id = find_listener();
    if (!id) return false;
    if (!name_of(id, out)) wml_buf_fmt(out, "number %u", (unsigned)id);
    return true;
}
