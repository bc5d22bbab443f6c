/* sysinfo/cpu_win.c - name of the CPU from the registry, cores and threads from the system. */
#include "sysinfo/internal.h"

#include "sysinfo/registry_win.h"

static const char *arch_of(const char *machine)
{
    if (machine && !strcmp(machine, "AMD64")) return "x64";
    return machine ? machine : "UNKNOWN";
}

static void count_cores(struct wml_sysinfo *out)
{
    DWORD bytes = 0;
    GetLogicalProcessorInformationEx(RelationProcessorCore, NULL, &bytes);
    if (!bytes || bytes > 1u << 20) return;
    unsigned char *buffer = wml_xcalloc(1, bytes);
    if (GetLogicalProcessorInformationEx(RelationProcessorCore, (void *)buffer, &bytes)) {
        for (DWORD at = 0; at + 8 <= bytes;) {
            SYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX *p = (void *)(buffer + at);
            if (!p->Size) break;
            out->cores++;
            for (WORD g = 0; g < p->Processor.GroupCount; g++)
                for (KAFFINITY mask = p->Processor.GroupMask[g].Mask; mask; mask &= mask - 1) out->threads++;
            at += p->Size;
        }
    }
    free(buffer);
}

static void run(struct wml_sysinfo *out)
{
    HKEY key;
    struct wml_buf text = {0};
    if (RegOpenKeyExW(HKEY_LOCAL_MACHINE, L"HARDWARE\\DESCRIPTION\\System\\CentralProcessor\\0", 0, KEY_READ, &key) ==
        ERROR_SUCCESS) {
        if (wml_reg_text(key, L"ProcessorNameString", &text)) out->cpu_name = wml_sys_keep(out, wml_buf_view(&text));
        if (wml_reg_text(key, L"VendorIdentifier", &text)) {
            struct wml_str v = wml_buf_view(&text);
            out->cpu_vendor = wml_str_is(v, "GenuineIntel")   ? "Intel"
                              : wml_str_is(v, "AuthenticAMD") ? "AMD"
                              : wml_str_has(v, "Qualcomm")    ? "Qualcomm"
                                                              : NULL;
        }
        RegCloseKey(key);
    }
    count_cores(out);
    if (!out->threads) {
        SYSTEM_INFO info;
        GetNativeSystemInfo(&info);
        out->threads = info.dwNumberOfProcessors;
    }
    if (!out->cores) out->cores = out->threads;
    out->cpu_arch = arch_of(out->machine);
    wml_buf_release(&text);
}

const struct wml_probe wml_probe_cpu = {
    .name = "cpu",
    .summary = "CPU name, cores, threads and architecture",
    .run = run,
};
