/* sysinfo/memory_win.c - physical memory. */
#include "sysinfo/internal.h"

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

static void run(struct wml_sysinfo *out)
{
    MEMORYSTATUSEX m = {.dwLength = sizeof m};
    if (GlobalMemoryStatusEx(&m)) out->memory_mib = m.ullTotalPhys >> 20;
}

const struct wml_probe wml_probe_memory = {
    .name = "memory",
    .summary = "Physical memory",
    .run = run,
};
