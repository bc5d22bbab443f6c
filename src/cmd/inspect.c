/* winml inspect: what is in an ONNX file. */
#include <stddef.h>

#include "cmd/cmd.h"
#include "flow/flow.h"
#include "os/path.h"

struct inspect_args {
    struct wml_common_args common;
    struct wml_opt_str model;
    struct wml_opt_flag all, hierarchy;
    struct wml_opt_str task;
};

#define ARGS struct inspect_args
static const struct wml_opt opts[] = {
    WML_OPT_STR('m', "model", model, "FILE", WML_OPT_REQUIRED | WML_OPT_PATH, NULL, "ONNX model, or the folder of a GenAI bundle"),
    WML_OPT_FLAG('a', "all", all, WML_OPT_SWITCH, NULL, "list every operator, not only the most frequent"),
    WML_OPT_STR('t', "task", task, "TASK", WML_OPT_IGNORED, NULL, "for Hugging Face models"),
    WML_OPT_FLAG('H', "hierarchy", hierarchy, WML_OPT_IGNORED, NULL, "for Hugging Face models"),
    WML_OPT_GROUP(common, wml_common_args, wml_opts_common),
    WML_OPT_END,
};
#undef ARGS

static bool run(const struct wml_call *call, struct wml_err *err)
{
    const struct inspect_args *a = call->args;
    struct wml_inspect_args in = {.model = a->model.v, .all = a->all.v};
    return wml_flow_inspect(&in, call->cx, call->report, err);
}

const struct wml_command wml_command_inspect = {
    .name = "inspect", .group = "Look", .summary = "Show what is in an ONNX model or a GenAI bundle",
    .about = "Reads the file without ONNX Runtime and without touching the weights: inputs, outputs, opsets, "
             "operators, parameters, files it needs beside it, compiled parts (EPContext) and metadata. Of a bundle: its stages, what they load, what they run on, what is missing.",
    .examples = "winml inspect -m model.onnx\nwinml inspect -m model.onnx -f json\nwinml inspect -m bundle",
    .opts = opts, .args_size = sizeof(struct inspect_args), .formats = "table|text|json", .run = run,
};
