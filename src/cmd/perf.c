/* winml perf: how fast a model runs on a device, and where the time goes. */
#include <stddef.h>

#include "cmd/cmd.h"
#include "cmd/perf_live.h"
#include "cmd/shapes.h"
#include "flow/flow.h"
#include "flow/genai.h"
#include "flow/perf.h"
#include "os/file.h"
#include "os/path.h"
#include "text/json.h"

struct perf_args {
    struct wml_common_args common;
    struct wml_opt_str model, output, html, config, precision, task, trace, shape_config, data, level, source_model, runtime;
    struct wml_target_args target;
    struct wml_opt_list shapes, dims;
    struct wml_opt_int iterations, warmup, batch, seed, threads, top_k;
    struct wml_opt_num duration, timeout, fail_on_fallback;
    struct wml_opt_flag overwrite, monitor, memory, compile;
    struct wml_opt_str prompt, prompt_file;
    struct wml_opt_int max_new_tokens;
    struct wml_opt_num compile_timeout, generation_timeout;
    struct wml_opt_flag apply_template;
    struct wml_opt_flag quant, optimize, analyze, use_cache, rebuild, skip_build, allow_unsupported, trust;
    struct wml_opt_str submodel, module, input_specs, export_config, dynamic_axes, compare_devices;
    struct wml_opt_int max_optim;
};

#define ARGS struct perf_args
#define FOR_BUILDS(name, member) WML_OPT_FLAG(0, name, member, WML_OPT_IGNORED, NULL, "for Hugging Face models")
#define FOR_BUILDS_STR(name, member) WML_OPT_STR(0, name, member, "VALUE", WML_OPT_IGNORED, NULL, "for Hugging Face models")
static const struct wml_opt opts[] = {
    WML_OPT_STR('m', "model", model, "FILE", WML_OPT_REQUIRED | WML_OPT_PATH, NULL, "ONNX model, compiled or not; or the folder of a GenAI bundle; with winml-genai also a model id"),
    WML_OPT_INT(0, "iterations", iterations, "N", 0, 1, 1e9, NULL, "timed runs (default: 100, with --op-tracing 10)"),
    WML_OPT_INT(0, "warmup", warmup, "N", 0, 0, 1e9, "10", "runs before, untimed"),
    WML_OPT_NUM(0, "duration", duration, "SECONDS", 0, 1e-3, 1e9, NULL, "run for this long instead of N times"),
    WML_OPT_GROUP(target, wml_target_args, wml_opts_bundle_target),
    WML_OPT_STR('o', "output", output, "FILE", WML_OPT_PATH, NULL, "JSON report (default: in the cache)"),
    WML_OPT_STR(0, "report", html, "FILE", WML_OPT_PATH, NULL, "HTML report, one self-contained file"),
    WML_OPT_FLAG(0, "overwrite", overwrite, 0, "no", "replace existing reports"),
    WML_OPT_INT(0, "batch-size", batch, "N", 0, 1, 1e6, NULL, "size of an open first dimension (default: 1)"),
    WML_OPT_LIST(0, "input-shape", shapes, "NAME=1,3,48,192", 0, "shape of an input; repeatable"),
    WML_OPT_LIST(0, "input-dim", dims, "SYMBOL=N", 0, "size of a named dimension; repeatable"),
    WML_OPT_STR(0, "shape-config", shape_config, "FILE", WML_OPT_PATH | WML_OPT_EXISTS, NULL, "JSON: shapes by input, sizes by symbol"),
    WML_OPT_STR(0, "input-data", data, "FILE", WML_OPT_PATH | WML_OPT_EXISTS, NULL, "inputs: .npz, or a folder of .npy"),
    WML_OPT_INT(0, "seed", seed, "N", 0, 0, 1e9, "0", "of generated inputs"),
    WML_OPT_STR(0, "op-tracing", trace, "basic|detail", 0, NULL, "time of every operator, in a traced pass of its own"),
    WML_OPT_INT(0, "top-k", top_k, "N", 0, 1, 1e6, "10", "operators shown as text; the files have all"),
    WML_OPT_STR(0, "source-model", source_model, "FILE", WML_OPT_PATH | WML_OPT_EXISTS, NULL, "source of a compiled model, for names of operators"),
    WML_OPT_FLAG(0, "monitor", monitor, 0, "no", "load of CPU, GPU, NPU, and memory, while running"),
    WML_OPT_FLAG(0, "memory", memory, 0, "yes", "memory before, after loading, after running, at the peak"),
    WML_OPT_NUM(0, "fail-on-fallback", fail_on_fallback, "PERCENT", 0, 0, 100, NULL, "exit 5 when fewer nodes ran on the EP"),
    WML_OPT_FLAG(0, "compile", compile, 0, "no", "compile the model for the target first: into the cache, or _compiled/ of a bundle"),
    WML_OPT_STR(0, "session-level", level, "all|extended|basic|disabled", 0, "all", "ORT's graph optimisations at load"),
    WML_OPT_INT(0, "threads", threads, "N", 0, 0, 1024, "0", "threads of the CPU EP; 0: ORT's choice"),
    WML_OPT_NUM(0, "timeout", timeout, "SECONDS", 0, 0, 1e9, "0", "limit for each pass; 0: none"),
    WML_OPT_STR('p', "precision", precision, "NAME", 0, "auto", "written into the report"),
    WML_OPT_STR('t', "task", task, "TASK", 0, NULL, "written into the report"),
    WML_OPT_STR('c', "config", config, "FILE", WML_OPT_PATH | WML_OPT_EXISTS, NULL, "JSON: options of this command, or a build config"),
    WML_OPT_STR(0, "runtime", runtime, "auto|winml|winml-ort|winml-genai|ort-genai", 0, "auto", "auto: winml-genai for a folder with genai_config.json"),
    WML_OPT_STR(0, "prompt", prompt, "TEXT", 0, NULL, "winml-genai: what is asked"),
    WML_OPT_STR(0, "prompt-file", prompt_file, "FILE", WML_OPT_PATH | WML_OPT_EXISTS, NULL, "winml-genai: the prompt, UTF-8, as it is"),
    WML_OPT_FLAG(0, "apply-template", apply_template, 0, "yes", "winml-genai: ask in the form of the model's chats"),
    WML_OPT_INT(0, "max-new-tokens", max_new_tokens, "N", 0, 1, 1e7, "128", "winml-genai: tokens of an answer at most"),
    WML_OPT_NUM(0, "compile-timeout", compile_timeout, "SECONDS", 0, 0, 1e9, "300", "winml-genai: limit for each stage; 0: none"),
    WML_OPT_NUM(0, "generation-timeout", generation_timeout, "SECONDS", 0, 0, 1e9, "0", "winml-genai: limit for loading and generating; 0: none"),
    WML_OPT_FLAG(0, "rebuild", rebuild, 0, "no", "winml-genai: build the bundle of a model id anew"),
    FOR_BUILDS("quant", quant), FOR_BUILDS("optimize", optimize), FOR_BUILDS("analyze", analyze),
    FOR_BUILDS("use-cache", use_cache), FOR_BUILDS("skip-build", skip_build),
    FOR_BUILDS("allow-unsupported-nodes", allow_unsupported), FOR_BUILDS("trust-remote-code", trust),
    FOR_BUILDS_STR("submodel", submodel), FOR_BUILDS_STR("module", module), FOR_BUILDS_STR("input-specs", input_specs),
    FOR_BUILDS_STR("export-config", export_config), FOR_BUILDS_STR("dynamic-axes", dynamic_axes),
    FOR_BUILDS_STR("compare-devices", compare_devices),
    WML_OPT_INT(0, "max-optim-iterations", max_optim, "N", WML_OPT_IGNORED, 0, 0, NULL, "for Hugging Face models"),
    WML_OPT_GROUP(common, wml_common_args, wml_opts_common),
    WML_OPT_END,
};
#undef ARGS

static bool check_model(const char *model, struct wml_err *err)
{
    if (wml_file_exists(model)) return true;
    struct wml_str s = wml_str(model);
    if (wml_flow_is_bundle(model)) {
        wml_fail(err, WML_E_USAGE, "%s is a GenAI bundle, not one model", model);
        return wml_hint(err, "leave --runtime out, or say --runtime winml-genai");
    }
    if (wml_dir_exists(model)) {
        wml_fail(err, WML_E_USAGE, "%s is a folder, neither an ONNX model nor a GenAI bundle", model);
        return wml_hint(err, "make a model of it first: winml export -m %s, or a bundle: winml build -m %s", model, model);
    }
    if (wml_str_ends(s, ".onnx") || wml_path_is_absolute(s) || wml_str_starts(s, "."))
        return wml_fail(err, WML_E_USAGE, "Model path does not exist, or is no file: %s", model);
    wml_fail(err, WML_E_UNSUPPORTED, "'%s' is no file: models of Hugging Face are not available in this version", model);
    return wml_hint(err, "export it to ONNX and give the file");
}

static bool set_option(const struct wml_call *call, const char *name, struct wml_str value, struct wml_err *err)
{
    bool known;
    if (!value.len || wml_str_is(value, "auto")) return true;
    return wml_opt_set(call->command->opts, call->args, wml_str(name), value, WML_FROM_CONFIG, call->arena, &known, err);
}

/* A build config has sections: task and target come from there. Any other file holds options of this command. */
static bool read_config(const struct wml_call *call, const char *path, struct wml_err *err)
{
    struct wml_json_doc *doc = NULL;
    if (!wml_json_load(path, &doc, NULL)) return wml_cli_config(call, path, NULL, err); /* which says why */
    const struct wml_json_val *root = wml_json_root(doc), *loader = wml_json_get(root, "loader"), *compile = wml_json_get(root, "compile");
    bool build = wml_json_is_object(loader) || wml_json_is_object(compile), ok = true;
    if (build) {
        const struct wml_json_val *bound = wml_json_get(compile, "ep_device");
        struct wml_str ep = wml_json_get_str(compile, "execution_provider"), device = wml_json_get_str(compile, "device");
        struct wml_str source = wml_json_get_str(bound, "source");
        if (!ep.len || wml_str_is(ep, "auto")) {
            ep = wml_json_get_str(bound, "ep");
            if (ep.len && source.len) ep = wml_arena_fmt(call->arena, "%.*s@%.*s", WML_ARG(ep), WML_ARG(source));
        }
        if (!device.len || wml_str_is(device, "auto")) device = wml_json_get_str(bound, "device");
        ok = (set_option(call, "task", wml_json_get_str(loader, "task"), err) && set_option(call, "ep", ep, err) &&
              set_option(call, "device", device, err)) || wml_wrap(err, "%s", path);
    }
    wml_json_free(doc);
    return build ? ok : wml_cli_config(call, path, NULL, err);
}

/* --compile: a compiled form in the cache folder, made anew or taken from the compile cache. */
static bool compile_first(const struct wml_call *call, const struct perf_args *a, struct wml_perf_args *in, struct wml_err *err)
{
    if (!call->cx->cache_dir) return wml_fail(err, WML_E_NOT_FOUND, "no cache folder is known for the compiled model");
    struct wml_report *ignored = wml_report_new();
    struct wml_str stem = wml_path_stem(wml_str(in->model));
    const char *out = wml_arena_fmt(call->arena, "%s/perf/%.*s/compiled.onnx", call->cx->cache_dir, WML_ARG(stem)).ptr;
    struct wml_compile_args c = {.model = &in->model, .n_models = 1, .output = out, .compiler = "ort", .overwrite = true,
                                 .isolate = true, .cache = true, .validate = false, .timeout_ms = (uint64_t)(a->timeout.v * 1000),
                                 .target = in->target};
    bool ok = wml_flow_compile(&c, call->cx, ignored, err);
    wml_report_free(ignored);
    if (ok) {
        in->running = out;
        in->source_model = in->source_model ? in->source_model : in->model;
    }
    return ok;
}

static const char *panel_title(const struct wml_call *call, const struct perf_args *a)
{
    return wml_arena_fmt(call->arena, "HW Monitor - %.*s", WML_ARG(wml_path_name(wml_str(a->model.v)))).ptr;
}

static const char *panel_device(const struct wml_call *call, const struct perf_args *a, const char *fallback)
{
    const char *ep = a->target.ep.v ? a->target.ep.v : "", *device = a->target.device.v ? a->target.device.v : fallback;
    return wml_arena_fmt(call->arena, "%s%s%s", ep, ep[0] ? " on " : "", device).ptr;
}

/* What was typed and means nothing for a bundle is named in one warning. */
static void warn_ignored(const struct wml_call *call, const struct perf_args *a, bool id, bool built)
{
    const struct { const char *name; bool typed; } option[] = {
        {"--task", a->task.v != NULL}, {"--precision", a->precision.from != WML_FROM_DEFAULT && !built}, {"--rebuild", a->rebuild.v && !id}, {"--shape-config", a->shape_config.v != NULL},
        {"--input-shape", a->shapes.v.len > 0}, {"--input-dim", a->dims.v.len > 0}, {"--batch-size", a->batch.set},
        {"--duration", a->duration.set}, {"--op-tracing", a->trace.v != NULL}, {"--report", a->html.v != NULL},
        {"--source-model", a->source_model.v != NULL}, {"--fail-on-fallback", a->fail_on_fallback.set},
        {"--session-level", a->level.from != WML_FROM_DEFAULT}, {"--threads", a->threads.from != WML_FROM_DEFAULT},
        {"--seed", a->seed.from != WML_FROM_DEFAULT}, {"--top-k", a->top_k.from != WML_FROM_DEFAULT}};
    struct wml_buf names = {0};
    for (size_t i = 0; i < WML_COUNT(option); i++)
        if (option[i].typed) wml_buf_fmt(&names, "%s%s", names.len ? ", " : "", option[i].name);
    if (names.len) wml_log(call->cx, WML_LOG_WARN, "ignored with a GenAI bundle: %s", wml_buf_text(&names));
    wml_buf_release(&names);
}

static bool read_prompt(const struct wml_call *call, const struct perf_args *a, struct wml_str *out, struct wml_err *err)
{
    if (a->prompt.v && a->prompt_file.v) return wml_fail(err, WML_E_USAGE, "--prompt and --prompt-file cannot be combined");
    *out = a->prompt.v ? wml_str(a->prompt.v) : WML_STR("Explain the theory of relativity in simple terms.");
    return !a->prompt_file.v || wml_cmd_text_file(a->prompt_file.v, call->arena, out, err);
}

static bool run_genai(const struct wml_call *call, struct wml_err *err)
{
    const struct perf_args *a = call->args;
    struct wml_genai_args in = {
        .bundle = a->model.v, .output = a->output.v, .overwrite = a->overwrite.v, .apply_template = a->apply_template.v,
        .max_new_tokens = (size_t)a->max_new_tokens.v, .iterations = a->iterations.set ? (size_t)a->iterations.v : 10,
        .warmup = a->warmup.from != WML_FROM_DEFAULT ? (size_t)a->warmup.v : 2, .compile = a->compile.v,
        .compile_timeout_s = a->compile_timeout.v,
        .generation_timeout_s = a->generation_timeout.from != WML_FROM_DEFAULT ? a->generation_timeout.v : a->timeout.v,
        .monitor = a->monitor.v, .memory = a->memory.v, .search = {.seed = -1}};
    if (a->data.v || a->module.v || a->submodel.v)
        return wml_fail(err, WML_E_USAGE, "%s cannot be used with a GenAI bundle", a->data.v ? "--input-data" : a->module.v ? "--module" : "--submodel");
    if (wml_str_ends(wml_str(a->model.v), ".onnx")) {
        wml_fail(err, WML_E_USAGE, "--runtime winml-genai needs a bundle, and %s is one model", a->model.v);
        return wml_hint(err, "give the folder that holds genai_config.json, or leave --runtime out");
    }
    if (!read_prompt(call, a, &in.prompt, err) || !wml_cmd_target(&a->target, call->arena, &in.target, err)) return false;
    const struct wml_genai_source source = {.model = in.bundle, .precision = a->precision.v, .rebuild = a->rebuild.v};
    const char *of_id;
    bool built;
    if (!wml_flow_genai_source(&source, call->cx, call->arena, &of_id, &built, err)) return false;
    if (of_id) {
        in.model_id = in.bundle;
        in.bundle = of_id;
    }
    warn_ignored(call, a, of_id != NULL, built);
    struct wml_perf_live *live = a->monitor.v && !a->common.quiet.v ? wml_perf_live_start(call->cx, panel_title(call, a), panel_device(call, a, "config"), 1, "tokens/s") : NULL;
    in.live = live != NULL;
    bool ok = wml_flow_genai_perf(&in, call->cx, call->report, err);
    wml_perf_live_end(live);
    return ok;
}

/* auto: a bundle generates, anything else is run as one model. */
static bool is_genai(const struct perf_args *a)
{
    if (strcmp(a->runtime.v, "auto") == 0) return wml_flow_is_bundle(a->model.v);
    return strcmp(a->runtime.v, "winml-genai") == 0 || strcmp(a->runtime.v, "ort-genai") == 0;
}

static bool run(const struct wml_call *call, struct wml_err *err)
{
    const struct perf_args *a = call->args;
    struct wml_cmd_shapes shapes;
    if (a->config.v && !read_config(call, a->config.v, err)) return false;
    if (is_genai(a)) return run_genai(call, err);
    if (a->target.device.v && strcmp(a->target.device.v, "config") == 0)
        return wml_fail(err, WML_E_USAGE, "--device config is for GenAI bundles: --runtime winml-genai");
    if (!wml_cmd_shapes_parse(&a->shapes, &a->dims, call->arena, &shapes, err)) return false;
    int64_t iterations = a->iterations.set ? a->iterations.v : a->trace.v ? 10 : 100;
    struct wml_perf_args in = {
        .model = a->model.v, .output = a->output.v, .html = a->html.v, .overwrite = a->overwrite.v,
        .iterations = (size_t)iterations, .warmup = (size_t)a->warmup.v, .duration_s = a->duration.set ? a->duration.v : 0,
        .shape_config = a->shape_config.v, .precision = a->precision.v, .task = a->task.v, .level = a->level.v,
        .threads = (unsigned)a->threads.v, .monitor = a->monitor.v, .memory = a->memory.v, .trace = a->trace.v,
        .trace_iterations = (size_t)WML_MIN(iterations, 100), .top_k = (size_t)a->top_k.v, .source_model = a->source_model.v,
        .fail_on_fallback = a->fail_on_fallback.set ? a->fail_on_fallback.v : -1, .timeout_ms = (uint64_t)(a->timeout.v * 1000),
        .feed = {.seed = (uint64_t)a->seed.v, .batch = a->batch.set ? a->batch.v : 0, .shape = shapes.shape,
                 .n_shapes = shapes.n_shapes, .dim = shapes.dim, .n_dims = shapes.n_dims, .data = a->data.v}};
    if (a->trace.v && a->duration.set) return wml_fail(err, WML_E_USAGE, "--duration and --op-tracing cannot be combined");
    if (!wml_cmd_target(&a->target, call->arena, &in.target, err) || !check_model(in.model, err)) return false;
    if (a->compile.v && !compile_first(call, a, &in, err)) return false;
    struct wml_perf_live *live = a->monitor.v && !a->common.quiet.v ? wml_perf_live_start(call->cx, panel_title(call, a), panel_device(call, a, "auto"),
                                                                                       (double)WML_MAX(a->batch.v, 1), NULL) : NULL;
    in.live = live != NULL;
    bool ok = wml_flow_perf(&in, call->cx, call->report, err);
    wml_perf_live_end(live);
    return ok;
}

const struct wml_command wml_command_perf = {
    .name = "perf", .group = "Measure", .summary = "Measure latency, memory, placement and operator times of a model",
    .about = "On the CPU EP the runs happen in this process; on any other EP in a child, so a driver that crashes costs "
             "nothing that was measured. Operator tracing is a pass of its own: its latency never mixes with the "
             "measured one, and a trace that cannot be had ends with exit status 4 and the reason.",
    .examples = "winml perf -m model.onnx\n"
                "winml perf -m model.onnx --ep qnn --device npu --op-tracing basic -o r.json\n"
                "winml perf -m model.onnx --duration 10 --report report.html\n"
                "winml perf -m bundle --prompt \"What is the capital of France?\" --max-new-tokens 64",
    .opts = opts, .args_size = sizeof(struct perf_args), .formats = "text|json", .run = run,
};
