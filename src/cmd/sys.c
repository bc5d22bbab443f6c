/* winml sys: the machine, its devices, the execution providers. */
#include <stddef.h>

#include "cmd/cmd.h"
#include "flow/flow.h"

struct sys_args {
    struct wml_common_args common;
    struct wml_opt_flag devices, eps;
};

#define ARGS struct sys_args
static const struct wml_opt opts[] = {
    WML_OPT_FLAG(0, "list-device", devices, WML_OPT_SWITCH, NULL, "only the devices"),
    WML_OPT_FLAG(0, "list-ep", eps, WML_OPT_SWITCH, NULL, "only the execution providers: source, version, path, devices"),
    WML_OPT_GROUP(common, wml_common_args, wml_opts_common),
    WML_OPT_END,
};
#undef ARGS

static bool run(const struct wml_call *call, struct wml_err *err)
{
    const struct sys_args *a = call->args;
    bool compact = a->common.format.v && strcmp(a->common.format.v, "compact") == 0;
    struct wml_sys_args in = {.devices = a->devices.v, .eps = a->eps.v, .verbose = a->common.verbose.v > 0,
                              .compact = compact};
    return wml_flow_sys(&in, call->cx, call->report, err);
}

const struct wml_command wml_command_sys = {
    .name = "sys", .group = "Look", .summary = "Show this machine, its devices and execution providers",
    .about = "Every EP library is loaded in a child process of its own, so a broken driver is a line of the "
             "report and not the end of the command.",
    .examples = "winml sys\nwinml sys --list-ep\nwinml sys -f json",
    .opts = opts, .args_size = sizeof(struct sys_args), .formats = "text|json|compact", .run = run,
};
