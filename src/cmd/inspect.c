/* winml inspect: what is in an ONNX file, a bundle, or a Hugging Face model. */
#include <stddef.h>

#include "cmd/cmd.h"
#include "flow/flow.h"
#include "os/path.h"

struct inspect_args {
    struct wml_common_args common;
    struct wml_opt_str model, task, model_type, model_class;
    struct wml_opt_flag all, hierarchy, list_tasks;
};

#define ARGS struct inspect_args
static const struct wml_opt opts[] = {
    WML_OPT_STR('m', "model", model, "MODEL", WML_OPT_PATH, NULL,
                "ONNX file, folder of a Hugging Face model or GenAI bundle, or model id"),
    WML_OPT_STR('t', "task", task, "TASK", 0, NULL, "Hugging Face: what the model is for (default: what its config says)"),
    WML_OPT_FLAG2('H', 'N', "hierarchy", hierarchy, "no", "show the tree of modules"),
    WML_OPT_FLAG(0, "list-tasks", list_tasks, WML_OPT_SWITCH, NULL, "list tasks: all, or those of the model or family"),
    WML_OPT_STR(0, "model-type", model_type, "TYPE", 0, NULL, "family, as config.json calls it: gpt_neo, xlm-roberta"),
    WML_OPT_STR(0, "model-class", model_class, "CLASS", 0, NULL, "class, which says the task: BertForMaskedLM"),
    WML_OPT_FLAG('a', "all", all, WML_OPT_SWITCH, NULL, "ONNX: list every operator, not only the most frequent"),
    WML_OPT_GROUP(common, wml_common_args, wml_opts_common),
    WML_OPT_END,
};
#undef ARGS

static bool run(const struct wml_call *call, struct wml_err *err)
{
    const struct inspect_args *a = call->args;
    const struct wml_inspect_args in = {
        .model = a->model.v, .all = a->all.v, .task = a->task.v, .model_type = a->model_type.v, .model_class = a->model_class.v,
        .hierarchy = a->hierarchy.v, .list_tasks = a->list_tasks.v, .verbose = a->common.verbose.v > 0};
    return wml_flow_inspect(&in, call->cx, call->report, err);
}

const struct wml_command wml_command_inspect = {
    .name = "inspect", .group = "Look", .summary = "Show what is in a model, and what export would make of it",
    .about = "Of an ONNX file: inputs, outputs, opsets, operators, parameters, files it needs beside it, compiled parts (EPContext) and metadata. "
             "Of a Hugging Face folder or id: family, tasks, what export would write, weights, sizes; of an id only its small files are fetched. "
             "Of a GenAI bundle: its stages, what they load, what they run on, what is missing. ONNX Runtime is not needed and weights are not touched.",
    .examples = "winml inspect -m model.onnx\nwinml inspect -m ./bert-base-uncased --hierarchy\nwinml inspect -m microsoft/resnet-50 -f json\n"
                "winml inspect --list-tasks --model-type bert\nwinml inspect -m bundle",
    .opts = opts, .args_size = sizeof(struct inspect_args), .formats = "table|text|json", .run = run,
};
