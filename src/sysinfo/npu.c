/* sysinfo/npu.c - NPUs: accel devices on Linux, compute accelerators on Windows. */
#include "sysinfo/internal.h"

const struct wml_probe wml_probe_npu = {
    .name = "npu",
    .summary = "NPUs with vendor and driver",
    .run = wml_sys_list_npus,
};
