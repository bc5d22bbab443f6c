/* sysinfo/memory_posix.c - physical memory from /proc/meminfo, else from the system's page count. */
#include "sysinfo/internal.h"

#include <unistd.h>
#include "base/num.h"
#include "os/file.h"

static void run(struct wml_sysinfo *out)
{
    struct wml_buf path = {0}, text = {0};
    wml_buf_fmt(&path, "%s/proc/meminfo", out->root);
    if (wml_file_read(wml_buf_text(&path), 65536, &text, NULL)) {
        struct wml_str rest = wml_buf_view(&text), line;
        while (!out->memory_mib && wml_str_split(&rest, '\n', &line)) {
            uint64_t kib;
            if (!wml_str_starts(line, "MemTotal:") || !wml_str_ends(line, " kB")) continue;
            if (wml_parse_u64(wml_str_trim(wml_str_sub(line, strlen("MemTotal:"), line.len - 3)), &kib))
                out->memory_mib = kib / 1024;
        }
    }
#if defined(_SC_PHYS_PAGES)
    if (!out->memory_mib && !out->root[0]) {
        int64_t pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
        if (pages > 0 && size > 0) out->memory_mib = (uint64_t)pages * (uint64_t)size >> 20;
    }
#endif
    wml_buf_release(&path);
    wml_buf_release(&text);
}

const struct wml_probe wml_probe_memory = {
    .name = "memory",
    .summary = "Physical memory",
    .run = run,
};
