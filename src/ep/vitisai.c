/* ep/vitisai.c - AMD's EP for Ryzen AI NPUs. Its plugin comes with Ryzen AI or from the Windows catalogue. */
#include "ep/internal.h"
#include "ep/stage.h"

static const struct wml_pair no_options[] = {{NULL, NULL}};
static const struct wml_pair stage_options[] = {
    {"target", "waic_target_vaiml_cpp_me"},
    {"xmc_runner_config", "1"},
    {"no_linear_slice", "1"},
    {NULL, NULL},
};
static const struct wml_ep_stage stage = {stage_options, .intra_threads = 8, .inter_threads = 1};
static const struct wml_ep_device devices[] = {{.type = WML_DEVICE_NPU, .defaults = no_options}};
static const char *const aliases[] = {"vitisai", NULL};
static const char *const libraries[] = {WML_EP_FILE("onnxruntime_providers_vitisai"), NULL};

const struct wml_ep wml_ep_vitisai = {
    .name = "VitisAIExecutionProvider",
    .alias = aliases,
    .label = "VitisAI",
    .vendor = "AMD",
    .library = libraries,
    .vendor_env = "RYZEN_AI_INSTALLATION_PATH",
    .vendor_below = "deployment",
    .install = "install Ryzen AI software",
    .device = devices,
    .n_devices = WML_COUNT(devices),
    .compiles = true,
    .quantizes = true,
    .trace = WML_TRACE_ORT,
    .stage = &stage,
    .provider_token = "vitisai",
};
