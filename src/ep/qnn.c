/* ep/qnn.c - Qualcomm's EP. On x86-64 its HTP library is a simulator and the plugin reports the host's CPU
 * as its device, so a request for the NPU is mapped to that device with the library named. */
#include "ep/internal.h"
#include "ep/stage.h"

#include "os/file.h"
#include "os/path.h"

/* backend_path of a library beside the plugin; false when it is not there. */
static bool backend(const char *library, const char *file, struct wml_arena *arena, struct wml_pair *option, size_t *n)
{
    struct wml_buf b = {0};
    if (!library) return false;
    wml_path_join(&b, wml_path_dir(wml_str(library)), wml_str(file));
    bool there = wml_file_exists(wml_buf_text(&b));
    if (there) option[(*n)++] = (struct wml_pair){"backend_path", wml_arena_cstr(arena, wml_buf_view(&b))};
    wml_buf_release(&b);
    return there;
}

static bool adopt(const struct wml_ort_device *d, enum wml_device_type want, const char *library,
                  struct wml_arena *arena, struct wml_pair *option, size_t *n, bool *simulated)
{
    if (d->type == want && want != WML_DEVICE_CPU) return true;
    if (d->type != WML_DEVICE_CPU) return false;
    if (want == WML_DEVICE_NPU) {
        *simulated = WML_EP_IS_X64;
        /* The simulator has no chip of its own: without one it finds too little memory for most models. */
        if (*simulated) option[(*n)++] = (struct wml_pair){"soc_model", "60"};
        return backend(library, WML_EP_FILE("QnnHtp"), arena, option, n);
    }
    /* The GPU library has no simulator. */
    return want == WML_DEVICE_GPU && !WML_EP_IS_X64 && backend(library, WML_EP_FILE("QnnGpu"), arena, option, n);
}

static const struct wml_pair npu_defaults[] = {
    {"htp_performance_mode", "burst"},
    {"htp_graph_finalization_optimization_mode", "3"},
    {NULL, NULL},
};
static const struct wml_pair no_options[] = {{NULL, NULL}};
static const struct wml_pair stage_options[] = {
    {"backend_path", WML_EP_FILE("QnnHtp")},
    {"htp_performance_mode", "burst"},
    {"htp_graph_finalization_optimization_mode", "3"},
    {"soc_model", "60"}, /* Snapdragon X */
    {NULL, NULL},
};
static const struct wml_ep_stage stage = {stage_options, .intra_threads = 2, .inter_threads = 1};
static const struct wml_ep_device devices[] = {
    {.type = WML_DEVICE_NPU, .defaults = npu_defaults},
    {.type = WML_DEVICE_GPU, .defaults = no_options},
};
static const char *const aliases[] = {"qnn", NULL};
static const char *const libraries[] = {WML_EP_FILE("onnxruntime_providers_qnn"), NULL};

static const struct wml_ep_want wants[] = {
    {WML_DEVICE_NPU, "highdimRTR-lowdimRTR", "HTP takes tensors up to rank 5",
     "<ir_version: 8, opset_import: [\"\" : 17]> g (float[4,64] x) => (float[4,64] y) <int64[6] high = {2, 2, 4, 4, 2, 2}, "
     "int64[2] flat = {4, 64}> { a = Reshape(x, high)  b = Transpose<perm = [0, 1, 4, 5, 2, 3]>(a)  y = Reshape(b, flat) }", NULL},
    {WML_DEVICE_NPU, "attention-expandedattention", "Attention as one operator is left to the CPU",
     "<ir_version: 10, opset_import: [\"\" : 23]> g (float[1,2,4,8] q, float[1,2,4,8] k, float[1,2,4,8] v) => "
     "(float[1,2,4,8] y) { y = Attention(q, k, v) }", NULL},
    {WML_DEVICE_NPU, "resize-tf-half-pixel-for-nn-to-asymmetric", "this way of counting coordinates is left to the CPU",
     "<ir_version: 8, opset_import: [\"\" : 17]> g (float[1,2,4,4] x) => (float[1,2,8,8] y) <float[4] by = {1.0, 1.0, 2.0, 2.0}> "
     "{ y = Resize<mode = \"nearest\", nearest_mode = \"floor\", coordinate_transformation_mode = \"tf_half_pixel_for_nn\">"
     "(x, , by) }", NULL},
    {WML_DEVICE_NPU, "gelu-fusion", "Gelu is one operator there, and Erf between integers is left to the CPU",
     "<ir_version: 8, opset_import: [\"\" : 17]> g (uint8[4,64] x) => (uint8[4,64] y) <float s = {0.02}, uint8 z = {128}> "
     "{ a = DequantizeLinear(x, s, z)  b = Erf(a)  y = QuantizeLinear(b, s, z) }", NULL},
    {WML_DEVICE_NPU, "normalize-int32-dq", "zero points of 32 bits are refused", NULL, NULL},
};

const struct wml_ep wml_ep_qnn = {
    .name = "QNNExecutionProvider",
    .alias = aliases,
    .label = "QNN",
    .vendor = "Qualcomm",
    .library = libraries,
    .python_module = "onnxruntime_qnn",
    .nuget_id = "Qualcomm.ML.OnnxRuntime.QNN",
    .install = "pip install onnxruntime-qnn",
    .device = devices,
    .n_devices = WML_COUNT(devices),
    .compiles = true,
    .trace = WML_TRACE_QNN_CSV,
    .trace_level_key = "profiling_level",
    .trace_file_key = "profiling_file_path",
    .provider_token = "qnn",
    .adopt = adopt,
    .stage = &stage,
    .want = wants,
    .n_wants = WML_COUNT(wants),
};
