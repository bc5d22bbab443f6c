/* sysinfo/devices_posix.c - GPUs and NPUs as the kernel lists them: /sys/class/drm/cardN and
 * /sys/class/accel/accelN, with PCI ids, driver and address. Names come from pci.ids where the system has
 * it. A Hexagon NPU has no accel device: its FastRPC node in /dev tells of it. */
#include "sysinfo/internal.h"

#include "base/num.h"
#include "os/file.h"
#include "os/path.h"

/* One line of a small file; false when it is not there. */
static bool read_line(const char *dir, const char *file, struct wml_buf *out)
{
    struct wml_buf path = {0};
    wml_buf_clear(out);
    wml_buf_fmt(&path, "%s/%s", dir, file);
    bool ok = wml_file_read(wml_buf_text(&path), 65536, out, NULL);
    wml_buf_release(&path);
    return ok && out->len;
}

/* "0x8086" */
static uint32_t read_hex(const char *dir, const char *file)
{
    struct wml_buf b = {0};
    uint32_t v = 0;
    if (read_line(dir, file, &b)) {
        struct wml_str s = wml_str_trim(wml_buf_view(&b));
        if (wml_str_starts(s, "0x")) s = wml_str_sub(s, 2, s.len);
        for (size_t i = 0; i < s.len && i < 8; i++) {
            char c = s.ptr[i];
            unsigned digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
                             : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a' + 10)
                             : c >= 'A' && c <= 'F' ? (unsigned)(c - 'A' + 10)
                                                    : 16u;
            if (digit > 15) break;
            v = v << 4 | digit;
        }
    }
    wml_buf_release(&b);
    return v;
}

/* KEY=value of the device's uevent. */
static void read_event(const char *dir, const char *key, struct wml_buf *out)
{
    struct wml_buf text = {0};
    if (read_line(dir, "uevent", &text)) {
        struct wml_str rest = wml_buf_view(&text), line;
        while (wml_str_split(&rest, '\n', &line)) {
            size_t eq = wml_str_find(line, '=');
            if (eq == SIZE_MAX || !wml_str_is(wml_str_sub(line, 0, eq), key)) continue;
            wml_buf_str(out, wml_str_trim(wml_str_sub(line, eq + 1, line.len)));
            break;
        }
    }
    wml_buf_release(&text);
}

static void pci_name(struct wml_sysinfo *s, uint32_t vendor, uint32_t device, struct wml_buf *out)
{
    static const char *const files[] = {"/usr/share/hwdata/pci.ids", "/usr/share/misc/pci.ids"};
    struct wml_buf path = {0}, ids = {0};
    for (size_t i = 0; i < WML_COUNT(files) && !out->len; i++) {
        wml_buf_clear(&path);
        wml_buf_clear(&ids);
        wml_buf_fmt(&path, "%s%s", s->root, files[i]);
        if (!wml_file_exists(wml_buf_text(&path)) || !wml_file_read(wml_buf_text(&path), 0, &ids, NULL)) continue;
        struct wml_str name = wml_pci_device(wml_buf_view(&ids), vendor, device);
        const char *maker = wml_pci_vendor(vendor);
        if (name.len) wml_buf_fmt(out, "%s%s%.*s", maker ? maker : "", maker ? " " : "", WML_ARG(name));
    }
    wml_buf_release(&path);
    wml_buf_release(&ids);
}

/* Names of accelerators that pci.ids often lacks. */
static const char *accel_name(const char *driver)
{
    static const struct {
        const char *driver, *name;
    } names[] = {{"intel_vpu", "Intel(R) AI Boost"}, {"amdxdna", "AMD NPU (XDNA)"}, {"qaic", "Qualcomm Cloud AI"},
                 {"habanalabs", "Habana Gaudi"},     {"rocket", "Rockchip NPU"},    {"ethosu", "Arm Ethos-U"}};
    for (size_t i = 0; i < WML_COUNT(names); i++)
        if (!strcmp(driver, names[i].driver)) return names[i].name;
    return NULL;
}

static void add_device(struct wml_sysinfo *s, enum wml_hw_kind kind, const char *dir)
{
    struct wml_buf driver = {0}, address = {0}, name = {0}, vram = {0};
    struct wml_hw hw = {.kind = kind, .vendor_id = read_hex(dir, "vendor"), .device_id = read_hex(dir, "device")};
    uint64_t bytes;
    read_event(dir, "DRIVER", &driver);
    read_event(dir, "PCI_SLOT_NAME", &address);
    if (!hw.vendor_id && !driver.len) goto done; /* nothing behind it */
    if (hw.vendor_id) pci_name(s, hw.vendor_id, hw.device_id, &name);
    hw.name = kind == WML_HW_NPU ? accel_name(wml_buf_text(&driver)) : NULL;
    if (!hw.name && name.len) hw.name = wml_buf_text(&name);
    if (!hw.name && !hw.vendor_id) hw.name = wml_buf_text(&driver);
    hw.driver = driver.len ? wml_buf_text(&driver) : NULL;
    hw.location = address.len ? wml_buf_text(&address) : NULL;
    if (read_line(dir, "mem_info_vram_total", &vram) && wml_parse_u64(wml_str_trim(wml_buf_view(&vram)), &bytes))
        hw.memory_mib = bytes >> 20;
    wml_sys_add(s, &hw);
done:
    wml_buf_release(&driver);
    wml_buf_release(&address);
    wml_buf_release(&name);
    wml_buf_release(&vram);
}

/* prefixN with nothing behind the number: card0, but not card0-HDMI-A-1. */
static bool is_numbered(struct wml_str name, const char *prefix)
{
    uint64_t n;
    return wml_str_starts(name, prefix) && wml_parse_u64(wml_str_sub(name, strlen(prefix), name.len), &n);
}

static size_t list_class(struct wml_sysinfo *s, enum wml_hw_kind kind, const char *class, const char *prefix)
{
    struct wml_buf dir = {0}, device = {0};
    struct wml_dir_list list = {0};
    size_t before = s->hw.len;
    wml_buf_fmt(&dir, "%s/sys/class/%s", s->root, class);
    if (wml_dir_exists(wml_buf_text(&dir)) && wml_dir_list(wml_buf_text(&dir), &list, NULL))
        for (size_t i = 0; i < list.v.len; i++) {
            if (!is_numbered(list.v.at[i].name, prefix)) continue;
            wml_buf_clear(&device);
            wml_buf_fmt(&device, "%s/%.*s/device", wml_buf_text(&dir), WML_ARG(list.v.at[i].name));
            if (wml_dir_exists(wml_buf_text(&device))) add_device(s, kind, wml_buf_text(&device));
        }
    wml_dir_list_release(&list);
    wml_buf_release(&dir);
    wml_buf_release(&device);
    return s->hw.len - before;
}

/* NVIDIA's driver without DRM, as on servers: its own folder names the model. */
static void list_nvidia(struct wml_sysinfo *s)
{
    struct wml_buf dir = {0}, gpu = {0}, text = {0}, name = {0};
    struct wml_dir_list list = {0};
    wml_buf_fmt(&dir, "%s/proc/driver/nvidia/gpus", s->root);
    if (wml_dir_exists(wml_buf_text(&dir)) && wml_dir_list(wml_buf_text(&dir), &list, NULL))
        for (size_t i = 0; i < list.v.len; i++) {
            wml_buf_clear(&gpu);
            wml_buf_clear(&name);
            wml_buf_fmt(&gpu, "%s/%.*s", wml_buf_text(&dir), WML_ARG(list.v.at[i].name));
            if (!read_line(wml_buf_text(&gpu), "information", &text)) continue;
            struct wml_str rest = wml_buf_view(&text), line;
            while (wml_str_split(&rest, '\n', &line))
                if (wml_str_starts(line, "Model:"))
                    wml_buf_str(&name, wml_str_trim(wml_str_sub(line, strlen("Model:"), line.len)));
            struct wml_hw hw = {.kind = WML_HW_GPU,
                                .vendor_id = 0x10de,
                                .driver = "nvidia",
                                .name = wml_buf_text(&name),
                                .location = wml_path_name(wml_buf_view(&gpu)).ptr};
            wml_sys_add(s, &hw);
        }
    wml_dir_list_release(&list);
    wml_buf_release(&dir);
    wml_buf_release(&gpu);
    wml_buf_release(&text);
    wml_buf_release(&name);
}

void wml_sys_list_gpus(struct wml_sysinfo *s)
{
    size_t before = s->hw.len;
    list_class(s, WML_HW_GPU, "drm", "card");
    bool nvidia = false;
    for (size_t i = before; i < s->hw.len; i++) nvidia = nvidia || s->hw.at[i].vendor_id == 0x10de;
    if (!nvidia) list_nvidia(s);
}

void wml_sys_list_npus(struct wml_sysinfo *s)
{
    static const char *const hexagon[] = {"/dev/fastrpc-cdsp", "/dev/fastrpc-cdsp-secure", "/dev/adsprpc-smd"};
    list_class(s, WML_HW_NPU, "accel", "accel");
    struct wml_buf path = {0};
    for (size_t i = 0; i < WML_COUNT(hexagon); i++) {
        wml_buf_clear(&path);
        wml_buf_fmt(&path, "%s%s", s->root, hexagon[i]);
        if (wml_file_info(wml_buf_text(&path)).kind == WML_FILE_NONE) continue;
        wml_sys_add(s, &(struct wml_hw){.kind = WML_HW_NPU,
                                        .name = "Qualcomm(R) Hexagon(TM) NPU",
                                        .manufacturer = "Qualcomm",
                                        .driver = "fastrpc"});
        break;
    }
    wml_buf_release(&path);
}
