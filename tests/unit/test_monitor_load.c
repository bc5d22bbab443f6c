/* Load of machines made of files: an Intel NPU, an AMD GPU, clients of DRM; names of Windows' counters. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "monitor/load_engines.h"
#include "monitor/sampler.h"
#include "os/file.h"
#include "os/path.h"
#include "os/sys.h"

static const uint64_t S = 1000000000;

static void test_fdinfo(void **state)
{
    (void)state;
    static struct wml_engines e;
    struct wml_drm_client c;
    struct wml_load out = {0};
    const char *const xe = "pos:\t0\nflags:\t02\ndrm-driver:\txe\ndrm-client-id:\t7\ndrm-pdev:\t0000:03:00.0\n"
                           "drm-total-vram0:\t8 MiB\ndrm-resident-vram0:\t3 MiB\ndrm-resident-gtt:\t512 KiB\ndrm-memory-vram:\t99 MiB\n"
                           "drm-engine-render:\t250000000 ns\ndrm-engine-compute:\t1000000000 ns\ndrm-engine-capacity-compute:\t4\n";
    e.len = 0;
    assert_true(wml_drm_parse(wml_str(xe), &e, &c));
    assert_true(wml_str_is(c.driver, "xe") && wml_str_is(c.device, "0000:03:00.0") && wml_str_is(c.id, "7") && !c.npu);
    assert_true(c.any_memory && c.local == 3 << 20 && c.shared == 512 << 10);
    wml_engines_step(&e, S, &out);
    assert_true(out.gpu.span_ns == S && out.gpu.percent == 25 && out.npu.span_ns == 0 && out.gpu_busy_ns == 1250000000);
    out = (struct wml_load){0};
    wml_engines_step(&e, S, &out); /* the client ended */
    assert_true(out.gpu.percent == 0 && out.gpu_busy_ns == 0);
    assert_true(wml_drm_parse(WML_STR("drm-driver: amdxdna\ndrm-engine-npu: 500000000 ns\ndrm-memory-memory: 2048\n"), &e, &c));
    out = (struct wml_load){0};
    wml_engines_step(&e, S, &out);
    assert_true(c.npu && c.shared == 2048 && out.npu.percent == 50 && out.npu_busy_ns == 500000000);
    const char *const none[] = {"", "pos: 1\nflags: 2\n", "drm-engine-x: 1 ns", "drm-driver", "drm-driver:\n"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) assert_false(wml_drm_parse(wml_str(none[i]), &e, &c));
    const char *const odd = "drm-driver: x\ndrm-engine-a: 99999999999999999999999 ns\ndrm-engine-: 1 ns\ndrm-resident-vram: -1 KiB\n"
                            "drm-resident-vram: 18446744073709551615 MiB\ndrm-engine-capacity-: x\n";
    assert_true(wml_drm_parse(wml_str(odd), &e, &c) && c.local == 0);
    for (int i = 0; i < 300; i++) {
        char text[100];
        snprintf(text, sizeof text, "drm-driver: y\ndrm-engine-%d: 1 ns\n", i);
        assert_true(wml_drm_parse(wml_str(text), &e, &c));
    }
    assert_int_equal(e.len, WML_MAX_ENGINES);
}

static void test_instances(void **state)
{
    (void)state;
    static const struct { const char *name, *luid, *engine; uint64_t pid; } row[] = {
        {"pid_4_luid_0x00000000_0x0000C5F4_phys_0_eng_3_engtype_3D", "0x00000000_0x0000C5F4", "3D", 4},
        {"pid_12345_luid_0x00000000_0x00012F01_phys_0_eng_0_engtype_Compute", "0x00000000_0x00012F01", "Compute", 12345},
        {"pid_12345_luid_0x00000000_0x00012F01_phys_0_eng_1_engtype_Compute 1", "0x00000000_0x00012F01", "Compute 1", 12345},
        {"pid_9_luid_0x1_0x2_phys_0", "0x1_0x2", NULL, 9}};
    static const char *const bad[] = {"", "pid_", "pid_x_luid_0x0_0x1", "pid_4", "pid_4_luid_", "pid_4_luid_0x0", "pid_4_luid_1_2", "total"};
    struct wml_gpu_instance in;
    struct wml_adapters a = {0};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        assert_true(wml_gpu_instance_parse(wml_str(row[i].name), &in));
        assert_true(in.pid == row[i].pid && wml_str_is(in.luid, row[i].luid));
        assert_true(row[i].engine ? wml_str_is(in.engine, row[i].engine) : !in.engine.len);
        assert_non_null(wml_adapters_note(&a, &in));
    }
    assert_int_equal(a.len, 3);
    assert_true(!wml_adapter_is_npu(&a.at[0]) && wml_adapter_is_npu(&a.at[1]) && !wml_adapter_is_npu(&a.at[2]));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) assert_false(wml_gpu_instance_parse(wml_str(bad[i]), &in));
    for (int i = 0; i < 40; i++) {
        char name[80];
        snprintf(name, sizeof name, "pid_1_luid_0x0_0x%x_phys_0_eng_0_engtype_Copy", i);
        assert_true(wml_gpu_instance_parse(wml_str(name), &in));
        assert_true((wml_adapters_note(&a, &in) != NULL) == (i < WML_MAX_ADAPTERS - 3 || i == 2));
    }
}

#ifndef _WIN32
static void put(const char *root, const char *path, const char *text)
{
    struct wml_buf full = {0};
    struct wml_err err = {0};
    wml_buf_fmt(&full, "%s/%s", root, path);
    char *folder = wml_xstrdup(wml_buf_text(&full));
    *strrchr(folder, '/') = 0;
    assert_true(wml_dir_make(folder, &err) && wml_file_write(wml_buf_text(&full), wml_str(text), &err));
    free(folder);
    wml_buf_release(&full);
}

static void put_numbers(const char *root, unsigned busy_ticks, uint64_t npu_us, uint64_t gpu_ns)
{
    char text[200];
    snprintf(text, sizeof text, "cpu  %u 0 100 %u 20 0 0 0 5 0\ncpu0 1 2 3 4\n", busy_ticks, 1000 - busy_ticks);
    put(root, "proc/stat", text);
    snprintf(text, sizeof text, "%u\n", (unsigned)npu_us);
    put(root, "sys/class/accel/accel0/device/npu_busy_time_us", text);
    snprintf(text, sizeof text, "pos:\t0\ndrm-driver:\ti915\ndrm-client-id:\t5\ndrm-pdev:\t0000:00:02.0\ndrm-engine-compute:\t%u ns\n"
                                "drm-memory-vram0:\t1024 KiB\n", (unsigned)gpu_ns);
    put(root, "proc/self/fdinfo/7", text);
    put(root, "proc/self/fdinfo/8", text); /* the same client again */
    put(root, "proc/self/fdinfo/1", "pos:\t0\nflags:\t02\n");
}

static void test_tree(void **state)
{
    (void)state;
    struct wml_buf root = {0}, source = {0};
    struct wml_err err = {0};
    struct wml_load l;
    assert_true(wml_dir_temp(NULL, "wml-load-", &root, &err));
    const char *r = wml_buf_text(&root);
    put(r, "proc/meminfo", "MemTotal:       2048 kB\nMemFree: 1 kB\nMemAvailable:    1024 kB\n");
    put(r, "sys/class/accel/accel0/device/npu_memory_utilization", "2097152\n");
    put(r, "sys/class/drm/card0/device/uevent", "DRIVER=i915\n");
    put(r, "sys/class/drm/card0-eDP-1/device/gpu_busy_percent", "99\n");
    put_numbers(r, 100, 1000, 0);
    struct wml_loads *loads = wml_loads_open(r);
    uint64_t begin = wml_now_ns();
    put_numbers(r, 100, 1000, 0);
    wml_loads_read(loads, begin + 2 * S, false, &l); /* a steady start: spans are exact from here */
    assert_true(l.npu.percent == 0 && l.npu.span_ns > S && l.gpu.percent == 0 && l.gpu.span_ns > S);
    assert_true(l.used_mb == 1 && l.local_mb == 1 && l.shared_mb == 0);
    char all[] = "cpu  350 0 100 1650 20 0 0 0 5 0\n"; /* 1000 ticks more, 250 of them busy */
    put_numbers(r, 100, 501000, 250000000);
    put(r, "proc/stat", all);
    wml_loads_read(loads, begin + 2 * S + S / 2, false, &l);
    assert_true(l.gpu.percent == 50 && l.gpu_busy_ns == 250000000 && l.gpu.span_ns == S / 2 && l.cpu.percent == 25);
    assert_true(l.npu.span_ns == 0); /* not asked more often than once a second */
    wml_loads_read(loads, begin + 3 * S, true, &l);
    assert_true(l.npu.percent == 50 && l.npu.span_ns == S && l.npu_busy_ns == 500000000 && l.gpu.percent == 0);
    wml_loads_source(loads, &source);
    assert_string_equal(wml_buf_text(&source), "drm_fdinfo+ivpu_sysfs");
    wml_loads_close(loads);
    put(r, "sys/class/drm/card1/device/gpu_busy_percent", "40\n");
    put(r, "sys/class/drm/card2/device/gpu_busy_percent", "60\n");
    put(r, "proc/self/fdinfo/7", "");
    put(r, "proc/self/fdinfo/8", "\x01");
    put(r, "proc/stat", "cpu  x y\n");
    loads = wml_loads_open(r);
    wml_loads_read(loads, wml_now_ns() + S, false, &l);
    assert_true(l.gpu.percent == 60 && l.gpu.span_ns >= S && l.cpu.span_ns == 0 && l.local_mb < 0);
    wml_loads_close(loads);
    wml_dir_remove(r);
    loads = wml_loads_open(r); /* nothing there */
    wml_loads_read(loads, wml_now_ns() + S, true, &l);
    assert_true(!l.cpu.span_ns && !l.gpu.span_ns && !l.npu.span_ns && l.local_mb < 0 && l.used_mb < 0);
    wml_loads_close(loads);
    wml_buf_release(&root);
    wml_buf_release(&source);
}
#endif

static void test_this_machine(void **state)
{
    (void)state;
    struct wml_sampler *s = wml_sampler_start(20);
    volatile double sink = 1;
    for (uint64_t end = wml_now_ns() + S / 5; wml_now_ns() < end;) sink = sink * 1.0000001;
    struct wml_usage u = wml_sampler_stop(s);
    assert_true(u.machine.n >= 1 && u.machine.mean > 0 && u.machine.mean <= 100 && u.machine.peak <= 100);
    assert_true(u.used_mb > 1 && u.n >= 2);
    assert_true((u.gpu.n || u.npu.n) == (u.source[0] != 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fdinfo), cmocka_unit_test(test_instances),
#ifndef _WIN32
        cmocka_unit_test(test_tree),
#endif
        cmocka_unit_test(test_this_machine)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
