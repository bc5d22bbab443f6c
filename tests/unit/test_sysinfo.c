/* Facts of this machine, and of machines made of files: an Intel laptop, a Snapdragon, a server. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "os/file.h"
#include "os/sys.h"
#include "sysinfo/internal.h"

struct file {
    const char *path, *text;
};

static const struct file laptop[] = {
    {"etc/os-release", "NAME=x\nPRETTY_NAME=\"Test Linux 1 (one)\"\n"},
    {"proc/meminfo", "MemTotal:       16384000 kB\nMemFree: 1 kB\n"},
    {"proc/cpuinfo",
     "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Core Y\nphysical id\t: 0\ncore id\t\t: 0\n\n"
     "processor\t: 1\nvendor_id\t: GenuineIntel\nmodel name\t: Core Y\nphysical id\t: 0\ncore id\t\t: 0\n\n"
     "processor\t: 2\nmodel name\t: Core Y\nphysical id\t: 0\ncore id\t\t: 4\n\n"},
    {"sys/class/accel/accel0/device/vendor", "0x8086\n"},
    {"sys/class/accel/accel0/device/device", "0x7d1d\n"},
    {"sys/class/accel/accel0/device/uevent", "DRIVER=intel_vpu\nPCI_SLOT_NAME=0000:00:0b.0\n"},
    {"sys/class/drm/card0/device/vendor", "0x8086\n"},
    {"sys/class/drm/card0/device/device", "0x7d55\n"},
    {"sys/class/drm/card0/device/uevent", "DRIVER=i915\nPCI_SLOT_NAME=0000:00:02.0\n"},
    {"sys/class/drm/card0-eDP-1/device/vendor", "0x8086\n"},
    {"sys/class/drm/card1/device/vendor", "0x1002\n"},
    {"sys/class/drm/card1/device/device", "0xBEEF\n"},
    {"sys/class/drm/card1/device/mem_info_vram_total", "8589934592\n"},
    {"sys/class/drm/card2/device/uevent", "MODALIAS=x\n"},
    {"sys/class/drm/renderD128/device/vendor", "0x8086\n"},
    {"usr/share/misc/pci.ids", "# ids\n1002  AMD\n\tabcd  Other\n8086  Intel Corporation\n\t7d55  Meteor Lake-P [Arc]\n"
                               "\t\t1028 0001  sub\n9999  Nobody\n\tbeef  Wrong\n"},
    {NULL, NULL},
};

static const struct file snapdragon[] = {
    {"proc/cpuinfo", "processor\t: 0\nCPU implementer\t: 0x51\n\nprocessor\t: 1\nCPU implementer\t: 0x51\n"},
    {"proc/device-tree/model", "Laptop with a Snapdragon"},
    {"dev/fastrpc-cdsp", ""},
    {NULL, NULL},
};

static const struct file server[] = {
    {"proc/driver/nvidia/gpus/0000:41:00.0/information", "Model: \t\t NVIDIA L4\nIRQ: 1\n"},
    {"proc/meminfo", "MemTotal: many kB\n"},
    {NULL, NULL},
};

static void read_from(const struct file *f, struct wml_sysinfo *s, struct wml_buf *root)
{
    struct wml_err err = {0};
    assert_true(wml_dir_temp(NULL, "winml-sys-", root, &err));
    for (; f->path; f++) {
        struct wml_buf path = {0};
        wml_buf_fmt(&path, "%s/%s", wml_buf_text(root), f->path);
        size_t slash = wml_str_rfind(wml_buf_view(&path), '/');
        path.ptr[slash] = '\0';
        assert_true(wml_dir_make(path.ptr, &err));
        path.ptr[slash] = '/';
        assert_true(wml_file_write(path.ptr, wml_str(f->text), &err));
        wml_buf_release(&path);
    }
    wml_sysinfo_read(s, wml_buf_text(root));
}

static void clean(struct wml_sysinfo *s, struct wml_buf *root)
{
    wml_sysinfo_release(s);
    wml_sysinfo_release(s);
    wml_dir_remove(wml_buf_text(root));
    wml_buf_release(root);
}

static void need_posix(void)
{
#ifdef _WIN32
    print_message("a tree of /sys and /proc says nothing on Windows\n");
    skip();
#endif
}

static void test_laptop(void **state)
{
    (void)state;
    struct wml_sysinfo s;
    struct wml_buf root = {0};
    need_posix();
    read_from(laptop, &s, &root);
    assert_string_equal(s.pretty, "Test Linux 1 (one)");
    assert_int_equal(s.memory_mib, 16000);
    assert_string_equal(s.cpu_name, "Core Y");
    assert_string_equal(s.cpu_vendor, "Intel");
    assert_int_equal(s.threads, 3);
    assert_int_equal(s.cores, 2);
    assert_int_equal(s.hw.len, 3);
    assert_int_equal(s.hw.at[0].kind, WML_HW_NPU);
    assert_string_equal(s.hw.at[0].name, "Intel(R) AI Boost");
    assert_string_equal(s.hw.at[0].driver, "intel_vpu");
    assert_string_equal(s.hw.at[0].location, "0000:00:0b.0");
    assert_int_equal(s.hw.at[0].device_id, 0x7d1d);
    assert_string_equal(s.hw.at[1].name, "Intel Meteor Lake-P [Arc]");
    assert_string_equal(s.hw.at[2].name, "AMD GPU (1002:beef)");
    assert_string_equal(s.hw.at[2].manufacturer, "AMD");
    assert_int_equal(s.hw.at[2].memory_mib, 8192);
    assert_null(s.hw.at[2].driver);
    clean(&s, &root);
}

static void test_snapdragon(void **state)
{
    (void)state;
    struct wml_sysinfo s;
    struct wml_buf root = {0};
    need_posix();
    read_from(snapdragon, &s, &root);
    assert_string_equal(s.cpu_name, "Laptop with a Snapdragon");
    assert_string_equal(s.cpu_vendor, "Qualcomm");
    assert_int_equal(s.cores, 2);
    assert_int_equal(s.hw.len, 1);
    assert_string_equal(s.hw.at[0].manufacturer, "Qualcomm");
    assert_int_equal(s.memory_mib, 0);
    clean(&s, &root);
}

static void test_server(void **state)
{
    (void)state;
    struct wml_sysinfo s;
    struct wml_buf root = {0};
    need_posix();
    read_from(server, &s, &root);
    assert_int_equal(s.hw.len, 1);
    assert_string_equal(s.hw.at[0].name, "NVIDIA L4");
    assert_string_equal(s.hw.at[0].location, "0000:41:00.0");
    assert_null(s.cpu_name);
    assert_int_equal(s.threads, 0);
    clean(&s, &root);
}

static void test_this_machine(void **state)
{
    (void)state;
    struct wml_sysinfo s;
    uint64_t before = wml_now_ns();
    wml_sysinfo_read(&s, NULL);
    assert_true(wml_now_ns() - before < UINT64_C(1000000000));
    assert_non_null(s.system);
    assert_non_null(s.release);
    assert_non_null(s.machine);
    assert_true(s.memory_mib > 100);
    assert_true(s.threads >= 1 && s.cores >= 1 && s.cores <= s.threads);
    for (size_t i = 0; i < s.hw.len; i++) assert_non_null(s.hw.at[i].name);
    wml_sysinfo_release(&s);
    assert_int_equal(wml_n_probes, 6);
    for (size_t i = 0; i < wml_n_probes; i++)
        assert_true(wml_probes[i]->name && wml_probes[i]->summary && wml_probes[i]->run);
}

static void test_sdk(void **state)
{
    (void)state;
    static const struct file sdk[] = {{"sdk.yaml", "# v\nversion: 2.31.0.250130\n"}, {NULL, NULL}};
    struct wml_sysinfo s;
    struct wml_buf root = {0};
    read_from(sdk, &s, &root);
    wml_sysinfo_release(&s);
    wml_env_set("QNN_SDK_ROOT", "/no/such/folder"); /* set, but nothing there: the second one counts */
    wml_env_set("QAIRT_SDK_ROOT", wml_buf_text(&root));
    wml_sysinfo_read(&s, wml_buf_text(&root));
    assert_int_equal(s.sdk.len, 1);
    assert_string_equal(s.sdk.at[0].name, "qnn");
    assert_string_equal(s.sdk.at[0].source, "QAIRT_SDK_ROOT");
    assert_string_equal(s.sdk.at[0].version, "2.31.0.250130");
    wml_env_set("QNN_SDK_ROOT", NULL);
    wml_env_set("QAIRT_SDK_ROOT", NULL);
    clean(&s, &root);
}

static void test_pci(void **state)
{
    (void)state;
    static const char ids[] = "8086  Intel\n\t1234  A\n8087  Other\n\t1235  B";
    assert_true(wml_str_is(wml_pci_device(wml_str(ids), 0x8086, 0x1234), "A"));
    assert_true(wml_str_is(wml_pci_device(wml_str(ids), 0x8087, 0x1235), "B"));
    assert_null(wml_pci_device(wml_str(ids), 0x8086, 0x1235).ptr);
    assert_null(wml_pci_device(WML_NO_STR, 1, 1).ptr);
    assert_string_equal(wml_pci_vendor(0x17cb), "Qualcomm");
    assert_null(wml_pci_vendor(1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_laptop),       cmocka_unit_test(test_snapdragon), cmocka_unit_test(test_server),
        cmocka_unit_test(test_this_machine), cmocka_unit_test(test_sdk),        cmocka_unit_test(test_pci),
    };
    return cmocka_run_group_tests_name("sysinfo", tests, NULL, NULL);
}
