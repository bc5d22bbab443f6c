/* sysinfo/os_win.c - version and build of Windows, and the machine type of the host: an x64 program on an
 * Arm machine still says ARM64. */
#include "sysinfo/internal.h"

#include "sysinfo/registry_win.h"

static DWORD build_number(void)
{
    OSVERSIONINFOW v = {.dwOSVersionInfoSize = sizeof v};
    LONG(WINAPI * get)(OSVERSIONINFOW *) = NULL;
    HMODULE ntdll = GetModuleHandleW(L"ntdll.dll");
    FARPROC f = ntdll ? GetProcAddress(ntdll, "RtlGetVersion") : NULL;
    memcpy(&get, &f, sizeof get);
    return get && get(&v) == 0 ? v.dwBuildNumber : 0;
}

static const char *machine(void)
{
    BOOL(WINAPI * is_wow)(HANDLE, USHORT *, USHORT *) = NULL;
    HMODULE kernel = GetModuleHandleW(L"kernel32.dll");
    FARPROC f = kernel ? GetProcAddress(kernel, "IsWow64Process2") : NULL;
    USHORT process = 0, native = 0;
    memcpy(&is_wow, &f, sizeof is_wow);
    if (is_wow && is_wow(GetCurrentProcess(), &process, &native)) {
        if (native == 0xaa64) return "ARM64";
        if (native == 0x8664) return "AMD64";
        if (native == 0x014c) return "x86";
    }
    SYSTEM_INFO info;
    GetNativeSystemInfo(&info);
    switch (info.wProcessorArchitecture) {
    case PROCESSOR_ARCHITECTURE_AMD64: return "AMD64";
    case 12: return "ARM64";
    case PROCESSOR_ARCHITECTURE_INTEL: return "x86";
    default: return "UNKNOWN";
    }
}

static void run(struct wml_sysinfo *out)
{
    static const wchar_t where[] = L"SOFTWARE\\Microsoft\\Windows NT\\CurrentVersion";
    DWORD build = build_number();
    HKEY key;
    struct wml_buf product = {0}, version = {0};
    out->system = "Windows";
    out->release = build >= 22000 ? "11" : build >= 10240 ? "10" : build ? "older than 10" : NULL;
    out->machine = machine();
    if (RegOpenKeyExW(HKEY_LOCAL_MACHINE, where, 0, KEY_READ, &key) == ERROR_SUCCESS) {
        wml_reg_text(key, L"EditionID", &product);
        wml_reg_text(key, L"DisplayVersion", &version);
        RegCloseKey(key);
    }
    /* ProductName says "Windows 10" on Windows 11 as well, so the text is made from its parts. */
    out->pretty = wml_arena_fmt(&out->arena, "Windows %s%s%s%s%s (build %u)", out->release ? out->release : "",
                                product.len ? " " : "", wml_buf_text(&product), version.len ? " " : "",
                                wml_buf_text(&version), (unsigned)build)
                      .ptr;
    wml_buf_release(&product);
    wml_buf_release(&version);
}

const struct wml_probe wml_probe_os = {
    .name = "os",
    .summary = "Operating system, release and machine type",
    .run = run,
};
