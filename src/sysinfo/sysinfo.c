/* sysinfo/sysinfo.c - runs the probes, and helpers that they share. */
#include "sysinfo/sysinfo.h"

#include "sysinfo/internal.h"

const struct wml_probe *const wml_probes[] = {
#define PROBE(name) &wml_probe_##name,
#include "sysinfo/probes.def"
#undef PROBE
};
const size_t wml_n_probes = WML_COUNT(wml_probes);

void wml_sysinfo_read(struct wml_sysinfo *out, const char *root)
{
    memset(out, 0, sizeof *out);
    out->root = wml_arena_cstr(&out->arena, wml_str(root ? root : ""));
    for (size_t i = 0; i < wml_n_probes; i++) wml_probes[i]->run(out);
}

void wml_sysinfo_release(struct wml_sysinfo *s)
{
    if (!s) return;
    wml_arena_release(&s->arena);
    memset(s, 0, sizeof *s);
}

const char *wml_sys_keep(struct wml_sysinfo *s, struct wml_str text)
{
    text = wml_str_trim(text);
    return text.len ? wml_arena_cstr(&s->arena, text) : NULL;
}

void wml_sys_add(struct wml_sysinfo *s, const struct wml_hw *hw)
{
    struct wml_hw h = *hw;
    h.manufacturer = wml_sys_keep(s, wml_str(h.manufacturer ? h.manufacturer : wml_pci_vendor(h.vendor_id)));
    h.driver = wml_sys_keep(s, wml_str(h.driver));
    h.location = wml_sys_keep(s, wml_str(h.location));
    h.name = wml_sys_keep(s, wml_str(h.name));
    if (!h.name)
        h.name = wml_arena_fmt(&s->arena, "%s%s%s (%04x:%04x)", h.manufacturer ? h.manufacturer : "",
                               h.manufacturer ? " " : "", h.kind == WML_HW_NPU ? "NPU" : "GPU", (unsigned)h.vendor_id,
                               (unsigned)h.device_id)
                     .ptr;
    WML_PUSH_IN(&s->arena, &s->hw, h);
}

const char *wml_pci_vendor(uint32_t id)
{
    static const struct {
        uint32_t id;
        const char *name;
    } vendors[] = {
        {0x8086, "Intel"},
        {0x1002, "AMD"},
        {0x1022, "AMD"},
        {0x10de, "NVIDIA"},
        {0x17cb, "Qualcomm"},
        {0x5143, "Qualcomm"},
        {0x4d4f4351, "Qualcomm"},
        {0x1414, "Microsoft"},
        {0x106b, "Apple"},
        {0x13b5, "Arm"},
        {0x15ad, "VMware"},
        {0x1234, "QEMU"},
        {0x1af4, "Red Hat (virtio)"},
        {0x1b36, "Red Hat"},
        {0x1a03, "ASPEED"},
        {0x102b, "Matrox"},
        {0x1da3, "Habana Labs"},
        {0x1e60, "Hailo"},
        {0x1ac1, "Google"},
        {0x80ee, "VirtualBox"},
    };
    for (size_t i = 0; i < WML_COUNT(vendors); i++)
        if (vendors[i].id == id) return vendors[i].name;
    return NULL;
}

/* Lines: "8086  Intel Corporation", below it "\tid  name", below that "\t\tsubsystem". */
struct wml_str wml_pci_device(struct wml_str ids, uint32_t vendor, uint32_t device)
{
    char vendor_text[12], device_text[12];
    struct wml_str line;
    bool inside = false;
    snprintf(vendor_text, sizeof vendor_text, "%04x  ", (unsigned)vendor);
    snprintf(device_text, sizeof device_text, "\t%04x  ", (unsigned)device);
    while (wml_str_split(&ids, '\n', &line)) {
        if (!line.len || line.ptr[0] == '#') continue;
        if (line.ptr[0] != '\t') {
            if (inside) break;
            inside = wml_str_starts(line, vendor_text);
        } else if (inside && wml_str_starts(line, device_text)) {
            return wml_str_trim(wml_str_sub(line, strlen(device_text), line.len));
        }
    }
    return WML_NO_STR;
}
