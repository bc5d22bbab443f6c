/* ep/vnpu.c - winml's virtual NPU (tests/virtual_npu): a real plugin without hardware, for tests and as an
 * example. Never chosen automatically. ORT may list its device as NPU or as the CPU that stands in. */
#include "ep/internal.h"
#include "ep/stage.h"

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
static const struct wml_ep_stage stage = {no_options, .intra_threads = 1, .inter_threads = 1};
static const struct wml_ep_device devices[] = {{.type = WML_DEVICE_NPU, .defaults = no_options}};
static const char *const aliases[] = {"vnpu", NULL};
static const char *const libraries[] = {WML_EP_FILE("winml_virtual_npu"), NULL};

/* One that it could do without, and one that is a loss when it is told to refuse Slice: so both rules are tested. */
static const struct wml_ep_want wants[] = {
    {WML_DEVICE_NPU, "highdimRTR-lowdimRTR", "an example: it may be told to refuse Transpose",
     "<ir_version: 8, opset_import: [\"\" : 17]> g (float[4,64] x) => (float[4,64] y) <int64[6] high = {2, 2, 4, 4, 2, 2}, "
     "int64[2] flat = {4, 64}> { a = Reshape(x, high)  b = Transpose<perm = [0, 1, 4, 5, 2, 3]>(a)  y = Reshape(b, flat) }", NULL},
    {WML_DEVICE_NPU, "static-split-to-slice", "an example: Slice instead of Split", NULL, NULL},
};

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
    .stage = &stage,
    .want = wants,
    .n_wants = WML_COUNT(wants),
};
