/* sysinfo/gpu.c - GPUs: DRM devices on Linux, display adapters on Windows. */
#include "sysinfo/internal.h"

const struct wml_probe wml_probe_gpu = {
    .name = "gpu",
    .summary = "GPUs with vendor, driver and memory",
    .run = wml_sys_list_gpus,
};
