/* ep/winmlcg.c - Windows' code generator for GPUs: known by name, so that a request for it is answered. */
#include "ep/internal.h"

static const struct wml_pair no_options[] = {{NULL, NULL}};
static const struct wml_ep_device devices[] = {{.type = WML_DEVICE_GPU, .defaults = no_options}};
static const char *const aliases[] = {"winmlcg", NULL};
#if defined(_WIN32)
static const char *const libraries[] = {"WinMLCGEp.dll", NULL};
#define LIBRARIES libraries
#else
#define LIBRARIES NULL
#endif

static const struct wml_ep_want wants[] = {
    {WML_DEVICE_GPU, "normalize-int32-dq", "it takes no zero points of 32 bits", NULL, NULL},
    {WML_DEVICE_GPU, "cgc-constant-folding", "it wants shapes as constants", NULL, NULL},
    {WML_DEVICE_GPU, "deduplicate-opset-imports", "it takes each operator set once", NULL, NULL},
    {WML_DEVICE_GPU, "omit-empty-resize-inputs", "it takes no empty operands of Resize", NULL, NULL},
    {WML_DEVICE_GPU, "resize-tf-half-pixel-for-nn-to-asymmetric", "it has not this way of counting coordinates", NULL, NULL},
    {WML_DEVICE_GPU, "gathernd-to-reshape", "it has no GatherND", NULL, NULL},
    {WML_DEVICE_GPU, "prelu-to-relu", "it has no PRelu", NULL, NULL},
    {WML_DEVICE_GPU, "dft-to-matmul", "it has no DFT", NULL, NULL},
    {WML_DEVICE_GPU, "gridsample-to-gather", "it has no GridSample", NULL, NULL},
};

const struct wml_ep wml_ep_winmlcg = {
    .name = "WinMLCGExecutionProvider",
    .alias = aliases,
    .label = "WinMLCG",
    .library = LIBRARIES,
    .python_module = "windowsml",
    .install = "on Windows: pip install windowsml",
    .device = devices,
    .n_devices = WML_COUNT(devices),
    .no_compile_reason = "winml compiles nothing for it",
    .trace = WML_TRACE_ORT,
    .provider_token = "winmlcg",
    .want = wants,
    .n_wants = WML_COUNT(wants),
};
