/* winml export: Hugging Face weights to ONNX. */
#include <stddef.h>

#include "cmd/cmd.h"
#include "flow/export.h"
#include "opset/opset.h"

struct export_args {
    struct wml_common_args common;
    struct wml_opt_str model, output, task, submodel, input_specs, shape_config, dynamic_axes, verify, config, export_config, modules;
    struct wml_opt_flag overwrite, hierarchy, report, clean, dynamo;
    struct wml_opt_num tolerance;
    struct wml_opt_int batch, opset;
};

#define ARGS struct export_args
static const struct wml_opt opts[] = {
    WML_OPT_STR('m', "model", model, "MODEL", WML_OPT_PATH, NULL, "Hugging Face model: its folder, or its id, fetched once"),
    WML_OPT_STR('o', "output", output, "FILE", WML_OPT_PATH, NULL, "ONNX file to write"),
    WML_OPT_FLAG(0, "overwrite", overwrite, 0, "no", "replace an existing output"),
    WML_OPT_STR('t', "task", task, "TASK", 0, NULL, "what the model is for (default: what its config says)"),
    WML_OPT_INT(0, "batch-size", batch, "N", 0, 1, 1 << 24, "1", "batch of every input"),
    WML_OPT_INT(0, "opset", opset, "N", 0, WML_OPSET_FIRST, WML_OPSET_LAST, "17", "operator set of ONNX"),
    WML_OPT_STR(0, "submodel", submodel, "NAME", 0, NULL, "of a model in several files: this one alone"),
    WML_OPT_STR(0, "input-specs", input_specs, "FILE", WML_OPT_PATH | WML_OPT_EXISTS, NULL, "JSON: dtype and shape of inputs"),
    WML_OPT_STR(0, "shape-config", shape_config, "FILE", WML_OPT_PATH | WML_OPT_EXISTS, NULL, "JSON: sequence_length, height, width, ..."),
    WML_OPT_STR(0, "dynamic-axes", dynamic_axes, "FILE", WML_OPT_PATH | WML_OPT_EXISTS, NULL, "JSON: axes that stay open, with names"),
    WML_OPT_STR(0, "export-config", export_config, "FILE", WML_OPT_PATH | WML_OPT_EXISTS, NULL, "JSON: opset_version, batch_size, dynamic_axes, ..."),
    WML_OPT_STR('c', "config", config, "FILE", WML_OPT_PATH | WML_OPT_EXISTS, NULL, "build config, whose section export is read; typed options win"),
    WML_OPT_STR(0, "verify-against", verify, "FILE", WML_OPT_PATH | WML_OPT_EXISTS, NULL,
                "safetensors with in.NAME and out.NAME: run the model on the CPU and compare"),
    WML_OPT_NUM(0, "tolerance", tolerance, "X", 0, 0, 1, "1e-4", "largest difference allowed there, of an output's largest value"),
    WML_OPT_FLAG(0, "with-report", report, 0, "no", "write a Markdown report too"),
    WML_OPT_FLAG(0, "hierarchy", hierarchy, 0, "yes", "say in every node's metadata which module it is of"),
    WML_OPT_FLAG(0, "clean-onnx", clean, WML_OPT_SWITCH | WML_OPT_HIDDEN, NULL, "the old name of --no-hierarchy"),
    WML_OPT_FLAG(0, "dynamo", dynamo, WML_OPT_HIDDEN, "no", "of the Python tool: nothing is traced here"),
    WML_OPT_STR(0, "torch-module", modules, "LIST", WML_OPT_HIDDEN, NULL, "of the Python tool: nothing is traced here"),
    WML_OPT_GROUP(common, wml_common_args, wml_opts_common),
    WML_OPT_END,
};
#undef ARGS

static bool run(const struct wml_call *call, struct wml_err *err)
{
    const struct export_args *a = call->args;
    struct wml_export_args in = {
        .model = a->model.v, .output = a->output.v, .overwrite = a->overwrite.v, .task = a->task.v, .submodel = a->submodel.v,
        .batch = a->batch.v, .opset = a->opset.v, .hierarchy = a->hierarchy.v, .with_report = a->report.v,
        .batch_given = wml_opt_is_typed(opts, a, "batch-size"), .opset_given = wml_opt_is_typed(opts, a, "opset"),
        .hierarchy_given = wml_opt_is_typed(opts, a, "hierarchy"), .config = a->config.v,
        .export_config = a->export_config.v, .verify_against = a->verify.v, .tolerance = a->tolerance.v, .input_specs = a->input_specs.v,
        .shape_config = a->shape_config.v, .dynamic_axes = a->dynamic_axes.v};
    if (a->dynamo.v) wml_log(call->cx, WML_LOG_WARN, "--dynamo is ignored: nothing is traced");
    if (a->modules.v) wml_log(call->cx, WML_LOG_WARN, "--torch-module is ignored: nothing is traced");
    if (a->clean.v) wml_log(call->cx, WML_LOG_WARN, "--clean-onnx is deprecated; use --no-hierarchy instead.");
    if (a->clean.v && !wml_opt_is_typed(opts, a, "hierarchy")) in.hierarchy = false, in.hierarchy_given = true;
    if (!in.model || !in.output) return wml_fail(err, WML_E_USAGE, "%s is required", in.model ? "--output" : "--model");
    return wml_flow_export(&in, call->cx, call->report, err);
}

const struct wml_command wml_command_export = {
    .name = "export", .group = "Build", .summary = "Hugging Face weights to ONNX",
    .about = "Reads config.json and the weights of a folder or of a model id, builds the graph and writes it. Nothing is traced, no Python runs.",
    .examples = "winml export -m ./bert-base-uncased -o bert.onnx\n"
                "winml export -m microsoft/resnet-50 -o resnet.onnx --batch-size 8",
    .opts = opts, .args_size = sizeof(struct export_args), .formats = "text|json", .run = run,
};
