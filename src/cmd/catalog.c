/* winml catalog: the models that are known to work. */
#include <stddef.h>

#include "cmd/cmd.h"
#include "flow/flow.h"

struct catalog_args {
    struct wml_common_args common;
    struct wml_opt_str model, type, task, ep, device, output;
    struct wml_opt_flag overwrite;
};

#define ARGS struct catalog_args
static const struct wml_opt opts[] = {
    WML_OPT_STR('m', "model", model, "ID", 0, NULL, "only this model, with everything about it"),
    WML_OPT_STR(0, "model-type", type, "TYPE", 0, NULL, "only models of this type, as bert"),
    WML_OPT_STR('t', "task", task, "TASK", 0, NULL, "only models for this task, as fill-mask"),
    {.kind = WML_KIND_STR, .name = "ep", .alias = "execution-provider", .offset = WML_OPT_AT_(ep, struct wml_opt_str),
     .value = "NAME", .help = "only models for this execution provider; all-local: for any that this machine has"},
    WML_OPT_STR('d', "device", device, "cpu|gpu|npu", 0, NULL, "only models for this kind of device"),
    WML_OPT_STR('o', "output", output, "FILE", WML_OPT_PATH, NULL, "write the list to this file, as JSON"),
    WML_OPT_FLAG(0, "overwrite", overwrite, 0, "no", "replace an existing file"),
    WML_OPT_GROUP(common, wml_common_args, wml_opts_common),
    WML_OPT_END,
};
#undef ARGS

static bool run(const struct wml_call *call, struct wml_err *err)
{
    const struct catalog_args *a = call->args;
    struct wml_catalog_args in = {.model = a->model.v, .type = a->type.v, .task = a->task.v, .ep = a->ep.v,
                                  .device = a->device.v, .output = a->output.v, .overwrite = a->overwrite.v};
    return wml_flow_catalog(&in, call->cx, call->report, err);
}

const struct wml_command wml_command_catalog = {
    .name = "catalog", .group = "Look", .summary = "List models that are known to work, by task, type, target",
    .about = "The list is part of the program: no network is asked. Filters are joined by and; an execution provider "
             "and a device together mean that device of that provider.",
    .examples = "winml catalog\nwinml catalog -t image-classification -d npu\nwinml catalog --ep qnn -f json\n"
                "winml catalog -m google/vit-base-patch16-224",
    .opts = opts, .args_size = sizeof(struct catalog_args), .formats = "text|json", .run = run,
};
