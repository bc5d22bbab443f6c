/* ep/winmlcg.c - Windows' code generator for GPUs: known by name, so that a request for it is answered. */
#include "ep/internal.h"

static const struct wml_pair no_options[] = {{NULL, NULL}};
static const struct wml_ep_device devices[] = {{WML_DEVICE_GPU, no_options, NULL}};
static const char *const aliases[] = {"winmlcg", NULL};
#if defined(_WIN32)
static const char *const libraries[] = {"WinMLCGEp.dll", NULL};
#define LIBRARIES libraries
#else
#define LIBRARIES NULL
#endif

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
};
