/* ep/vnpu.c - winml's virtual NPU (tests/virtual_npu): a real plugin without hardware, for tests and as an
 * example. Never chosen automatically. ORT may list its device as NPU or as the CPU that stands in. */
#include "ep/internal.h"

static bool adopt(const struct wml_ort_device *d, enum wml_device_type want, const char *library,
                  struct wml_arena *arena, struct wml_pair *option, size_t *n, bool *simulated)
{
    (void)library;
    (void)arena;
    (void)option;
    (void)n;
    *simulated = true;
    return want == WML_DEVICE_NPU && (d->type == WML_DEVICE_NPU || d->type == WML_DEVICE_CPU);
}

static const struct wml_pair no_options[] = {{NULL, NULL}};
static const struct wml_ep_device devices[] = {{WML_DEVICE_NPU, no_options, NULL}};
static const char *const aliases[] = {"vnpu", NULL};
static const char *const libraries[] = {WML_EP_FILE("winml_virtual_npu"), NULL};

const struct wml_ep wml_ep_vnpu = {
    .name = "VirtualNPUExecutionProvider",
    .alias = aliases,
    .label = "Virtual NPU",
    .library = libraries,
    .install = "build the target winml_virtual_npu",
    .device = devices,
    .n_devices = WML_COUNT(devices),
    .compiles = true,
    .trace = WML_TRACE_QNN_CSV,
    .trace_level_key = "profiling_level",
    .trace_file_key = "profiling_file_path",
    .provider_token = "vnpu",
    .test_only = true,
    .adopt = adopt,
};
