/* sysinfo/os_posix.c - kernel and distribution. */
#include "sysinfo/internal.h"

#include <sys/utsname.h>
#include "os/file.h"

static void read_pretty_name(struct wml_sysinfo *out)
{
    struct wml_buf path = {0}, text = {0};
    wml_buf_fmt(&path, "%s/etc/os-release", out->root);
    if (wml_file_read(wml_buf_text(&path), 65536, &text, NULL)) {
        struct wml_str rest = wml_buf_view(&text), line;
        while (!out->pretty && wml_str_split(&rest, '\n', &line)) {
            if (!wml_str_starts(line, "PRETTY_NAME=")) continue;
            struct wml_str name = wml_str_trim(wml_str_sub(line, strlen("PRETTY_NAME="), line.len));
            if (name.len >= 2 && (name.ptr[0] == '"' || name.ptr[0] == '\'')) name = wml_str_sub(name, 1, name.len - 1);
            out->pretty = wml_sys_keep(out, name);
        }
    }
    wml_buf_release(&path);
    wml_buf_release(&text);
}

static void run(struct wml_sysinfo *out)
{
    struct utsname u;
    if (uname(&u) == 0) {
        out->system = wml_sys_keep(out, wml_str(u.sysname));
        out->release = wml_sys_keep(out, wml_str(u.release));
        out->machine = wml_sys_keep(out, wml_str(u.machine));
    }
    read_pretty_name(out);
}

const struct wml_probe wml_probe_os = {
    .name = "os",
    .summary = "Operating system, release and machine type",
    .run = run,
};
