/* winml build: a checkpoint to a GenAI bundle. */
#include <stddef.h>

#include "cmd/cmd.h"
#include "flow/build.h"

struct build_args {
    struct wml_common_args common;
    struct wml_opt_str model, output, export_type, precision;
    struct wml_opt_flag rebuild;
    struct wml_opt_int cache, block, window, samples;
    struct wml_opt_str text_file, head;
    struct wml_target_args target;
};

#define ARGS struct build_args
static const struct wml_opt opts[] = {
    WML_OPT_STR('m', "model", model, "MODEL", WML_OPT_PATH, NULL, "Hugging Face model: its folder, or its id, fetched once"),
    WML_OPT_STR('o', "output-dir", output, "DIR", WML_OPT_PATH, NULL, "folder of the bundle"),
    WML_OPT_STR(0, "export-type", export_type, "generic|plain|optimized", 0, NULL,
                "plain: a GenAI bundle of one graph, for CPUs and GPUs; optimized: a pipeline for NPUs"),
    WML_OPT_STR('p', "precision", precision, "P", 0, "auto", "plain: fp32 (auto), fp16, int4, w4a16, int8; optimized: w8a16 (auto), fp32"),
    WML_OPT_INT(0, "max-cache-len", cache, "N", 0, 1, 1 << 20, NULL, "tokens that prompt and answer may have (default: the model's positions; of a pipeline 2048)"),
    WML_OPT_INT(0, "prefill-len", window, "N", 0, 1, 1 << 16, "64", "of a pipeline: tokens of the prompt that go through it at once"),
    WML_OPT_INT(0, "block-size", block, "N", 0, 16, 256, "32", "elements of a weight that share a scale: 16, 32, 64, 128, 256"),
    WML_OPT_FLAG(0, "rebuild", rebuild, 0, "no", "reuse nothing of an earlier build"),
    WML_OPT_STR(0, "head-precision", head, "P", 0, NULL, "of a pipeline's lm_head: w4a32, w8a32, fp32 (default: 4 bits where they do, else 8; fp32 beside fp32)"),
    WML_OPT_STR(0, "text-file", text_file, "FILE", WML_OPT_PATH | WML_OPT_EXISTS, NULL, "of a pipeline: prompts to calibrate with, a line each (default: built-in ones)"),
    WML_OPT_INT(0, "samples", samples, "N", 0, 1, 100000, "30", "of a pipeline: prompts to calibrate with at most"),
    WML_OPT_GROUP(target, wml_target_args, wml_opts_target),
    WML_OPT_GROUP(common, wml_common_args, wml_opts_common),
    WML_OPT_END,
};
#undef ARGS

static bool run(const struct wml_call *call, struct wml_err *err)
{
    const struct build_args *a = call->args;
    struct wml_build_args in = {.model = a->model.v, .output = a->output.v, .rebuild = a->rebuild.v, .export_type = a->export_type.v,
                                      .precision = a->precision.v, .max_cache_len = a->cache.v, .block_size = (unsigned)a->block.v, .window = a->window.v,
                                .text_file = a->text_file.v, .head_precision = a->head.v, .samples = a->samples.v};
    if (!in.model || !in.output) return wml_fail(err, WML_E_USAGE, "%s is required", in.model ? "--output-dir" : "--model");
    if (in.block_size & (in.block_size - 1)) return wml_fail(err, WML_E_USAGE, "--block-size must be 16, 32, 64, 128 or 256");
    if (!wml_cmd_target(&a->target, call->arena, &in.target, err)) return false;
    return wml_flow_build(&in, call->cx, call->report, err);
}

const struct wml_command wml_command_build = {
    .name = "build", .group = "Build", .summary = "Hugging Face weights to a GenAI bundle",
    .about = "Makes a folder that text-generation runtimes load: a graph with a cache of keys and values, its weights, tokenizer and config.",
    .examples = "winml build -m ./Qwen3-0.6B -o qwen3 --export-type plain --precision int4",
    .opts = opts, .args_size = sizeof(struct build_args), .formats = "text|json", .run = run,
};
