/* sysinfo/cpu_posix.c - the CPU from /proc/cpuinfo: one block per thread. Arm kernels give no model name
 * there; the device tree's model stands in. */
#include "sysinfo/internal.h"

#include "base/num.h"
#include "os/file.h"
#include "os/thread.h"

struct cores { /* pairs of package and core that were seen */
    WML_VEC(uint64_t) v;
};

static void see_core(struct cores *c, uint64_t package, uint64_t core)
{
    uint64_t id = package << 32 | core;
    for (size_t i = 0; i < c->v.len; i++)
        if (c->v.at[i] == id) return;
    WML_PUSH(&c->v, id);
}

static const char *arch_of(const char *machine)
{
    static const struct {
        const char *machine, *arch;
    } names[] = {
        {"x86_64", "x64"},  {"amd64", "x64"}, {"AMD64", "x64"}, {"aarch64", "ARM64"},
        {"arm64", "ARM64"}, {"i686", "x86"},  {"i386", "x86"},  {"armv7l", "ARM"},
    };
    for (size_t i = 0; machine && i < WML_COUNT(names); i++)
        if (!strcmp(machine, names[i].machine)) return names[i].arch;
    return "UNKNOWN";
}

static const char *arm_vendor(struct wml_str implementer)
{
    static const struct {
        const char *id, *name;
    } names[] = {{"0x41", "Arm"}, {"0x51", "Qualcomm"}, {"0x61", "Apple"}, {"0xc0", "Ampere"}, {"0x4e", "NVIDIA"}};
    for (size_t i = 0; i < WML_COUNT(names); i++)
        if (wml_str_is(implementer, names[i].id)) return names[i].name;
    return NULL;
}

static const char *x86_vendor(struct wml_str id)
{
    return wml_str_is(id, "GenuineIntel") ? "Intel" : wml_str_is(id, "AuthenticAMD") ? "AMD" : NULL;
}

static void read_cpuinfo(struct wml_sysinfo *out, struct wml_str text, struct cores *cores)
{
    struct wml_str line;
    uint64_t package = 0, core;
    while (wml_str_split(&text, '\n', &line)) {
        size_t colon = wml_str_find(line, ':');
        if (colon == SIZE_MAX) continue;
        struct wml_str key = wml_str_trim(wml_str_sub(line, 0, colon));
        struct wml_str value = wml_str_trim(wml_str_sub(line, colon + 1, line.len));
        if (wml_str_is(key, "processor"))
            out->threads++;
        else if (wml_str_is(key, "model name") && !out->cpu_name)
            out->cpu_name = wml_sys_keep(out, value);
        else if (wml_str_is(key, "vendor_id") && !out->cpu_vendor)
            out->cpu_vendor = x86_vendor(value);
        else if (wml_str_is(key, "CPU implementer") && !out->cpu_vendor)
            out->cpu_vendor = arm_vendor(value);
        else if (wml_str_is(key, "physical id"))
            wml_parse_u64(value, &package);
        else if (wml_str_is(key, "core id") && wml_parse_u64(value, &core))
            see_core(cores, package, core);
    }
}

static void run(struct wml_sysinfo *out)
{
    struct wml_buf path = {0}, text = {0};
    struct cores cores = {0};
    wml_buf_fmt(&path, "%s/proc/cpuinfo", out->root);
    if (wml_file_read(wml_buf_text(&path), 16 << 20, &text, NULL)) read_cpuinfo(out, wml_buf_view(&text), &cores);
    if (!out->cpu_name) {
        wml_buf_clear(&path);
        wml_buf_clear(&text);
        wml_buf_fmt(&path, "%s/proc/device-tree/model", out->root);
        if (wml_file_read(wml_buf_text(&path), 4096, &text, NULL))
            out->cpu_name = wml_sys_keep(out, wml_str(wml_buf_text(&text)));
    }
    if (!out->threads && !out->root[0]) out->threads = wml_cpu_count();
    out->cores = cores.v.len ? (unsigned)cores.v.len : out->threads;
    out->cpu_arch = arch_of(out->machine);
    WML_VEC_RELEASE(&cores.v);
    wml_buf_release(&path);
    wml_buf_release(&text);
}

const struct wml_probe wml_probe_cpu = {
    .name = "cpu",
    .summary = "CPU name, cores, threads and architecture",
    .run = run,
};
