/* sysinfo/devices_win.c - GPUs and NPUs from the registry's driver classes: each sub-key with a number is a
 * device whose driver is installed. */
#include "sysinfo/internal.h"

#include "sysinfo/registry_win.h"

/* The hex number after a mark, as in "PCI\VEN_8086&DEV_7d1d"; 0 when absent. */
static uint32_t id_after(struct wml_str s, const char *mark)
{
    size_t n = strlen(mark);
    for (size_t i = 0; i + n <= s.len; i++) {
        if (!wml_str_ieq(wml_str_sub(s, i, i + n), wml_str(mark))) continue;
        uint32_t v = 0;
        for (i += n; i < s.len; i++) {
            char c = s.ptr[i];
            unsigned digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
                             : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a' + 10)
                             : c >= 'A' && c <= 'F' ? (unsigned)(c - 'A' + 10)
                                                    : 16u;
            if (digit > 15) break;
            v = v << 4 | digit;
        }
        return v;
    }
    return 0;
}

static void add_device(struct wml_sysinfo *s, enum wml_hw_kind kind, HKEY key)
{
    struct wml_buf name = {0}, maker = {0}, driver = {0}, id = {0};
    struct wml_hw hw = {.kind = kind};
    uint64_t bytes = 0;
    wml_reg_text(key, L"MatchingDeviceId", &id);
    hw.vendor_id = id_after(wml_buf_view(&id), "ven_");
    hw.device_id = id_after(wml_buf_view(&id), "dev_");
    bool hardware = wml_str_has(wml_buf_view(&id), "PCI\\") || wml_str_has(wml_buf_view(&id), "pci\\") ||
                    wml_str_has(wml_buf_view(&id), "ACPI\\") || wml_str_has(wml_buf_view(&id), "acpi\\");
    if (hardware && wml_reg_text(key, L"DriverDesc", &name)) {
        if (wml_reg_text(key, L"ProviderName", &maker)) hw.manufacturer = wml_buf_text(&maker);
        if (wml_reg_text(key, L"DriverVersion", &driver)) hw.driver = wml_buf_text(&driver);
        if (wml_reg_number(key, L"HardwareInformation.qwMemorySize", &bytes)) hw.memory_mib = bytes >> 20;
        hw.name = wml_buf_text(&name);
        wml_sys_add(s, &hw);
    }
    wml_buf_release(&name);
    wml_buf_release(&maker);
    wml_buf_release(&driver);
    wml_buf_release(&id);
}

static void list_class(struct wml_sysinfo *s, enum wml_hw_kind kind, const wchar_t *guid)
{
    wchar_t path[160];
    HKEY class, device;
    swprintf(path, WML_COUNT(path), L"SYSTEM\\CurrentControlSet\\Control\\Class\\%ls", guid);
    if (RegOpenKeyExW(HKEY_LOCAL_MACHINE, path, 0, KEY_READ, &class) != ERROR_SUCCESS) return;
    for (DWORD i = 0; i < 64; i++) {
        wchar_t name[16];
        DWORD n = (DWORD)WML_COUNT(name);
        LSTATUS st = RegEnumKeyExW(class, i, name, &n, NULL, NULL, NULL, NULL);
        if (st == ERROR_NO_MORE_ITEMS) break;
        if (st != ERROR_SUCCESS || name[0] < L'0' || name[0] > L'9') continue;
        if (RegOpenKeyExW(class, name, 0, KEY_READ, &device) != ERROR_SUCCESS) continue;
        add_device(s, kind, device);
        RegCloseKey(device);
    }
    RegCloseKey(class);
}

void wml_sys_list_gpus(struct wml_sysinfo *s)
{
    list_class(s, WML_HW_GPU, L"{4d36e968-e325-11ce-bfc1-08002be10318}");
}

void wml_sys_list_npus(struct wml_sysinfo *s)
{
    list_class(s, WML_HW_NPU, L"{f01a9d53-3ff6-48d2-9f97-c8a7004be10c}");
}
