/* monitor/load.h - how busy this machine and its accelerators are, as the system tells it.
 *
 * Linux: /proc/stat, the DRM clients of this process (/proc/self/fdinfo), amdgpu's and ivpu's files in /sys.
 * Windows: the performance counters "GPU Engine" and "GPU Process Memory" of this process, GetSystemTimes.
 * Elsewhere nothing is known. What is not known is never a zero. Belongs to one thread. */
#ifndef WML_MONITOR_LOAD_H
#define WML_MONITOR_LOAD_H

#include "base/str.h"

struct wml_load_share { /* percent over the last span_ns; span 0: nothing new, or not known */
    double percent;
    uint64_t span_ns;
};

struct wml_load {
    struct wml_load_share cpu;      /* of the whole machine, all CPUs together 100 */
    struct wml_load_share gpu, npu; /* the busiest engine */
    uint64_t gpu_busy_ns, npu_busy_ns; /* time of all engines since the beginning */
    double local_mb, shared_mb; /* this process' memory on accelerators: their own, the machine's; < 0: not known */
    double used_mb;             /* of the machine's memory; < 0: not known */
};

struct wml_loads;
/* root: a folder that stands for "/" in tests (POSIX), NULL: this machine. Never NULL. The first reading is taken. */
struct wml_loads *wml_loads_open(const char *root);
/* What happened since the last reading. now_ns: wml_now_ns(). last: also what should not be asked often. */
void wml_loads_read(struct wml_loads *l, uint64_t now_ns, bool last, struct wml_load *out);
/* Where the numbers of accelerators come from: "drm_fdinfo", "amdgpu_sysfs", "ivpu_sysfs", "pdh", joined by "+"; ""
 * when from nowhere. Of the readings so far; into out. */
void wml_loads_source(const struct wml_loads *l, struct wml_buf *out);
/* Windows: "0x00000000_0x0000c5f4" of the adapter that was seen; false: not known. */
bool wml_loads_luid(const struct wml_loads *l, bool npu, struct wml_buf *out);
void wml_loads_close(struct wml_loads *l);

#endif
