/* ep/cpu.c - ORT's own CPU kernels: always there, the truth that others are compared with. */
#include "ep/internal.h"

static const struct wml_pair no_options[] = {{NULL, NULL}};
static const struct wml_ep_device devices[] = {{.type = WML_DEVICE_CPU, .defaults = no_options}};
static const char *const aliases[] = {"cpu", NULL};

const struct wml_ep wml_ep_cpu = {
    .name = "CPUExecutionProvider",
    .alias = aliases,
    .label = "CPU",
    .device = devices,
    .n_devices = WML_COUNT(devices),
    .no_compile_reason = "it runs kernels and writes no EPContext",
    .trace = WML_TRACE_ORT,
    .provider_token = "cpu",
    .contrib = "*",
};
